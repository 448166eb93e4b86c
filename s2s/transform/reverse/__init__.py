"""Reverse mode: adjoints, tapes, checkpoints."""
