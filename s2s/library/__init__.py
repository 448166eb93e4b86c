"""Functions of Python, NumPy and SciPy as plain Python, which the front end inlines."""
