"""CUDA kernels from loops, and the host code that launches them."""
