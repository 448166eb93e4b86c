"""Print IR as a Python module that reads as if a person had written it."""
