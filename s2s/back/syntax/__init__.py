"""Python syntax trees: builders, names, and text."""
