"""What a program's names stand for while it is run on types: frames, heap, functions, optionals."""
