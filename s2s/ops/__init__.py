"""Every operation s2s knows, one record each, in tables by family."""

from . import (arrange, barrier, calls, cast, control, copy, create, elementwise, index, record,  # noqa: F401
               reduce, shape)
