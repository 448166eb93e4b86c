"""Persistence of generated code and sources across processes: caches on disk, pickles."""
