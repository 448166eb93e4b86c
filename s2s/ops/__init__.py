"""Every operation s2s knows, one record each, in tables by family."""

from . import control, elementwise, index, record, reduce, shape  # noqa: F401
