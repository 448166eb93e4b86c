"""Text to functions whose errors name the user's line; traps, memory checks, reports."""
