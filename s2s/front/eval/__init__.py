"""Evaluation of statements, expressions and calls."""
