"""Whole programs, as people write them: a module per field, plain code that knows nothing of s2s.

Each module has `PROGRAMS`, pairs of a function that returns one number and the array at which
`test_whole_programs.py` differentiates it.
"""
