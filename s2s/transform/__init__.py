"""Function -> Function: differentiation, batching and the passes that clean up after them."""
