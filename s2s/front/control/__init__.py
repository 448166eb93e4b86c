"""Branches, loop carries, iterators, generators, recursion, exceptions."""
