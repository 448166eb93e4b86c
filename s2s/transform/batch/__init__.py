"""Batching (vmap): one lane becomes many."""
