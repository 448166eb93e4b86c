"""Load generated text as functions whose errors name the user's line; traps, memory checks,
reports.
"""
