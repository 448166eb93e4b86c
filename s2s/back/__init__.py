"""IR to Python text: the readable form, the loop form that Numba compiles, and CUDA kernels."""
