"""`Jacobian`: what `jacfwd`, `jacrev` and `hessian` return, which runs one mode once for each column or row."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType

from .arguments import as_method, name_of, numbers
from .carried import place_of
from .errors import UnsupportedError
from .transformed import Transformed


class Jacobian:
    """A callable: the whole derivative of `inner`, found by `compute(inner, argnums, args, keywords)`."""

    def __init__(self, compute: Callable, inner: Callable, argnums):
        functools.update_wrapper(self, inner, updated=())
        self.compute, self.inner, self.argnums = compute, inner, numbers(argnums)

    def __call__(self, *args, **keywords):
        return self.compute(self.inner, self.argnums, args, keywords)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        inner = self.inner.as_method() if isinstance(self.inner, Transformed) else self.inner
        return MethodType(Jacobian(self.compute, inner, as_method(self.argnums)), instance)

    @property
    def function_for(self):
        """Asked of whatever another transformation is given, or a program calls: this is no program of its own."""
        raise UnsupportedError(f"a whole Jacobian, or Hessian, of {name_of(self.inner)}, transformed or inside a program", None,
                               "transform first and ask for the Jacobian last, e.g. s2s.jacfwd(s2s.grad(f)), or use s2s.jvp, "
                               "s2s.vjp and s2s.hvp inside")

    def __repr__(self) -> str:
        return f"<s2s Jacobian of {name_of(self.inner)!r}>"

    def __reduce__(self):
        return place_of(self) or (Jacobian, (self.compute, self.inner, self.argnums))
