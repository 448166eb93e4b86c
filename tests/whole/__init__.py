"""Whole programs, as people write them: a module per field, plain code that knows nothing of s2s.

Each module has `PROGRAMS`, pairs of a function that returns one number and the array at which
`test_whole_programs.py` differentiates it; and perhaps `LONG`, those of these functions whose
gradients take more than ten seconds to compile.
"""
