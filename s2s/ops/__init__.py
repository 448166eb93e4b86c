"""Every operation s2s knows, one record each, in tables by family."""

from . import (arrange, barrier, calls, cast, control, copy, create, elementwise, index, join,  # noqa: F401
               linalg, pick, record, reduce, repeat, shape, special)
