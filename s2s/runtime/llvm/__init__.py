"""LLVM modules: helper functions, splitting, compilation in two threads."""
