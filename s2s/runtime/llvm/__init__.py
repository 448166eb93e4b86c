"""Modules of LLVM: helper functions, splitting them, compiling them in two threads."""
