"""What native code asks of its arguments, and does to them, before it runs."""
