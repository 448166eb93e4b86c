"""Generated code and sources kept for other processes: caches on disk, pickles."""
