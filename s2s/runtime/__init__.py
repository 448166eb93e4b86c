"""What runs generated code: loading, compiling, caching, dispatch."""
