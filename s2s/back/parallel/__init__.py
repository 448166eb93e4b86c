"""Loops that threads share, and what they cost."""
