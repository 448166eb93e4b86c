"""Emit LLVM IR straight from the text of generated code."""
