"""Passes over whole arrays, before they are lowered to loops."""
