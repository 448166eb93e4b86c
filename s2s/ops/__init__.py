"""Every operation s2s knows, one record each, in tables by family."""

from . import (arrange, barrier, calls, cast, control, copy, elementwise, index, record, reduce,  # noqa: F401
               shape)
