"""Loops as CUDA kernels, and the host code that launches them."""
