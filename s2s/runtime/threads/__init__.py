"""The thread pool, and loops whose trips it shares."""
