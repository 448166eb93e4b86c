"""Statements, expressions and calls, evaluated."""
