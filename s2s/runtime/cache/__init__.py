"""Machine code and programs on disk."""
