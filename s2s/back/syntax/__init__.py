"""Python's syntax trees: building them, names in them, their text."""
