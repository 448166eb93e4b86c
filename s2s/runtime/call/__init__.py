"""Compiled functions, their argument guards and their fallbacks."""
