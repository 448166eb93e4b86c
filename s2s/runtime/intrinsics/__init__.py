"""Intrinsics of native code: element accesses, memory, checks, number functions."""
