"""Functions with derivative rules of their own."""
