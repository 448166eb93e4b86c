"""Source code: finding, parsing and desugaring it, and tracking what it depends on."""
