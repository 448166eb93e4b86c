"""Ops that the loop form keeps: they take arrays in memory and are done by BLAS, LAPACK or NumPy."""

from __future__ import annotations

from ..ir.graph import Op

KEPT = frozenset({"matmul", "solve", "inv", "det", "cholesky", "sign_of_det", "log_of_det", "cumprod", "argsort",
                  "diagonal", "triu", "tril", "tuple", "call", "tape_push"})


def is_opaque(op: Op) -> bool:
    """Whether `op` needs its array operands in memory, in one piece."""
    return op.name in KEPT
