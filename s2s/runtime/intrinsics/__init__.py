"""Elements and memory of arrays in native code."""
