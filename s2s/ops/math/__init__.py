"""Special functions, Python's math and cmath, and arguments of ufuncs."""
