"""Branches, loop carries, iterators, generators, recursion and exceptions."""
