"""Between a caller's arguments and generated code: argument numbers, containers, the fast path."""
