"""Passes over loops: fusion, distribution, contraction, hoisting, scalar replacement."""
