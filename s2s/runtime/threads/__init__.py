"""Thread pool and parallel loops."""
