"""BLAS, LAPACK, SciPy and vector math in native code, and the calls of them."""
