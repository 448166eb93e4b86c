"""Numba's compiler, configured for generated modules."""
