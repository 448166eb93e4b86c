"""Is this call like the last one?  The question that every call of a transformed function asks first.

Most calls pass arguments of the same kinds as the call before.  `matcher(args)` is a function, written for
just these kinds, that says so for other arguments in a few attribute reads, with no dictionary and no tuple:

    def matches(a0, a1):
        return type(a0) is float and type(a1) is ndarray and a1.dtype is float64 and a1.ndim == 2 and 1 not in a1.shape

Which extents are 1 is part of the kind (ir/types.py, Note [Which extents are 1]); other lengths are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

PLAIN = (float, int, bool, complex)


def matcher(args: Sequence, agreed: Sequence[str] = ()) -> Callable[..., bool] | None:
    """Whether other arguments are of the same kinds as `args`; None for kinds that take a longer look.

    `agreed` are more conditions on `a0`, `a1`, ..., which hold of calls that are in order.
    """
    names: dict[str, object] = {"ndarray": np.ndarray}
    conditions = []
    for k, x in enumerate(args):
        kind = type(x)
        if kind in PLAIN:
            conditions.append(f"type(a{k}) is {kind.__name__}")
        elif kind is np.ndarray and x.ndim and x.dtype.kind in "biufc":
            names[f"d{k}"] = x.dtype
            conditions.append(f"type(a{k}) is ndarray and a{k}.dtype is d{k} and a{k}.ndim == {x.ndim}")
            ones = [n == 1 for n in x.shape]
            if any(ones):
                conditions += [f"a{k}.shape[{axis}] {'==' if one else '!='} 1" for axis, one in enumerate(ones)]
            else:
                conditions.append(f"1 not in a{k}.shape")
        else:
            return None
    conditions += [f"({text})" for text in agreed]
    parameters = ", ".join(f"a{k}" for k in range(len(args)))
    return eval(f"lambda {parameters}: {' and '.join(conditions) or 'True'}", names)
