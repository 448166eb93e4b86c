"""Where workers that run one program meet, and what they exchange."""
