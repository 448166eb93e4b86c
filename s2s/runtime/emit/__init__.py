"""From the text of generated code to LLVM's code."""
