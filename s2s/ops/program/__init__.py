"""Ops beyond arithmetic: effects, random draws, lists, checkpoints, calls with custom rules."""
