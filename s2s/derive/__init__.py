"""Functions that users ask for (grad, jacobian, hvp, linear maps), made of what `transform` gives.
"""
