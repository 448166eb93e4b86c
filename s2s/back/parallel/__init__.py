"""Parallel loops: outlining, independent sections, and a cost model."""
