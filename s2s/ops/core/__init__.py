"""Records and what all ops are defined by: rules, shapes, elementwise arithmetic, control flow."""
