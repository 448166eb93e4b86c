"""Sparse Jacobians and Hessians: the pattern of a program, its colours, and as many sweeps as there
are colours.
"""
