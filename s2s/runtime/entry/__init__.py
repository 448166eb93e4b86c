"""Entry of native code: checks and conversions of its arguments before it runs."""
