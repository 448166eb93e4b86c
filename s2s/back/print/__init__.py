"""IR to a Python module that a person would have written."""
