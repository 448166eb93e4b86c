"""Source: finding, reading and desugaring it, and what it depends on."""
