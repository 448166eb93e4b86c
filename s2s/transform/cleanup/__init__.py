"""Passes that keep what a function computes: simplification, CSE, dead code, inlining."""
