"""The IR: structured SSA, typed, verified, interpreted.  Knows no NumPy and no derivatives."""
