"""Rewrites before differentiation that keep derivatives finite wherever they exist."""
