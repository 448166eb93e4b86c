"""Ops on arrays become loop nests over numbers."""
