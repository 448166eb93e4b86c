"""Numba's compiler, as s2s sets it up for generated modules."""
