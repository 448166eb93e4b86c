"""The intermediate representation: structured SSA, typed, verified, interpreted, without NumPy or
derivatives.
"""
