"""A compiled function, its guards and its fallbacks."""
