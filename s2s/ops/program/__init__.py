"""Ops that are more than arithmetic: effects, random draws, lists, checkpoints, calls with rules.
"""
