"""Lowering of array ops to loop nests over numbers."""
