"""Array ops: creation, indexing, reshaping, reductions, products."""
