"""Sums and products in an order that no program states: factoring, shorter recurrences."""
