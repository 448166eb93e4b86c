"""Ops that make, index, rearrange, reduce and multiply arrays."""
