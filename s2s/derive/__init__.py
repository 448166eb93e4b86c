"""Functions of the public API (grad, jacobian, hvp, linear maps), built from the transformations.
"""
