"""Sparse Jacobians and Hessians: sparsity patterns, colourings, and one sweep per colour."""
