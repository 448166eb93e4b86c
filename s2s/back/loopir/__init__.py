"""The loop form: its ops, reductions, lazy arrays, and builders of loops."""
