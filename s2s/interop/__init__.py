"""Programs inside other systems: PyTorch and JAX."""
