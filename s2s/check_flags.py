"""The environment variables S2S_CHECK, which selects run-time and IR checks, S2S_NUMBA and
S2S_LLVM_OPTIONS.

    S2S_CHECK=1               everything
    S2S_CHECK=ir              the IR is verified after every pass (ir/verify.py), loops after every
                              pass over them (back/verify_loops.py), and where values are printed
                              (back/print/inlining.py)
    S2S_CHECK=nan             generated code stops at the first NaN or inf
                              (runtime/debug/nan_trap.py)
    S2S_CHECK=memory          native code stops before it touches memory that is not its own
                              (runtime/debug/sanitizer.py)
    S2S_CHECK=conventions     calls of derivatives warn of what a convention decided
                              (conventions.py)
    S2S_CHECK=ir,memory       several of these

    S2S_NUMBA=public          native code is compiled by Numba's documented interface alone
                              (runtime/call/plain_function.py)

    S2S_LLVM_OPTIONS=0        none of LLVM's options for the process are set when Numba is loaded
                              (runtime/kernels/vector_math, runtime/numba/compiler.py)

They are read when code is generated.  A general test run wants the memory checked, but may
make NaN; so each check has a word of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import S2SError

CHECKS = ("ir", "nan", "memory", "conventions")
_checking: ContextVar[bool] = ContextVar("checking", default=False)


def requested_checks() -> tuple[str, ...]:
    """Return the words of CHECKS that S2S_CHECK names; raise S2SError for an unknown word.

    >>> os.environ["S2S_CHECK"] = "nan,ir"
    >>> requested_checks()
    ('ir', 'nan')
    >>> del os.environ["S2S_CHECK"]
    """
    value = os.environ.get("S2S_CHECK", "0").strip()
    if value in ("", "0"):
        return ()
    if value == "1":
        return CHECKS
    words = [word.strip() for word in value.split(",")]
    for word in words:
        if word not in CHECKS:
            raise S2SError(
                f"S2S_CHECK={value}: there is no check {word!r}",
                None,
                f"set it to 1 for all checks, or to some of {', '.join(CHECKS)}",
            )
    return tuple(check for check in CHECKS if check in words)


def wants_public_numba() -> bool:
    """Test whether S2S_NUMBA is `public`; raise S2SError for a word that it does not have.

    >>> os.environ["S2S_NUMBA"] = "public"
    >>> wants_public_numba()
    True
    >>> del os.environ["S2S_NUMBA"]
    """
    value = os.environ.get("S2S_NUMBA", "").strip()
    if value not in ("", "public"):
        raise S2SError(f"S2S_NUMBA={value}", None, "set it to public, or not at all")
    return value == "public"


def may_set_llvm_options() -> bool:
    """Test whether S2S_LLVM_OPTIONS is not 0."""
    return os.environ.get("S2S_LLVM_OPTIONS", "1").strip() not in ("", "0")


def is_requested(check: str) -> bool:
    """Test whether S2S_CHECK requests this check, one of CHECKS."""
    return check in requested_checks()


@contextmanager
def checked() -> Iterator[None]:
    """Verify the IR after every pass inside this context, as with S2S_CHECK=ir."""
    token = _checking.set(True)
    try:
        yield
    finally:
        _checking.reset(token)


def is_checking() -> bool:
    """Test whether the IR is to be verified after every pass."""
    return _checking.get() or is_requested("ir")
