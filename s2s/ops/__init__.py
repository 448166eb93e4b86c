"""Every operation s2s knows, one record each, in tables by family."""

from . import (  # noqa: F401
    acts,
    arrange,
    barrier,
    calls,
    cast,
    control,
    copy,
    create,
    einsum,
    elementwise,
    index,
    join,
    linalg,
    pick,
    record,
    reduce,
    repeat,
    running,
    shape,
    special,
)
