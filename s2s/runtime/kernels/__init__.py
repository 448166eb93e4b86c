"""BLAS, LAPACK, SciPy and vector math in native code, and the ops that call them."""
