"""Rewrites before differentiation, after which derivatives are finite wherever they exist."""
