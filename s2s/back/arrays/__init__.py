"""Passes over whole arrays, before loops are made of them."""
