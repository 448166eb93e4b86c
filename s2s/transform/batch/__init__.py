"""Batching: one lane becomes many."""
