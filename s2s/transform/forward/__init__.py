"""Forward mode: tangents, at once or as a linear function."""
