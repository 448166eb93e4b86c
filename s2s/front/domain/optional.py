"""Optional values, None on some paths: a flag that says whether there is a value, and the value.

    best = None                                has_best, best = False, 0.0
    for v in xs:                               for v in xs:
        if best is None or v > best:               if not has_best or v > best:
            best = v                                   has_best, best = True, v

The flag and the content are joined by branches and carried by loops like the members of a tuple,
which is why a Maybe is one.  `is None` asks the flag.  Anything else that reads a Maybe needs its
content, and raises a TypeError where the flag does not hold (front/values/unwrap.py), as Python's
operations on None do.  What conditions say of flags (`if best is not None`) is noted in
`Session.assumed` while the side is run on which it holds, so that it is not asked again.

Two other designs were set aside.  A type of its own in the IR would need a rule in every
transformation, for what two ordinary values say as well.  NaN in place of None is shorter, but is
not what the program says of integers, arrays and NaNs of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from ...errors import UnsupportedError
from ...ir.graph import MISSING, Value
from ...ops.core.record import RECORDS


class Maybe(NamedTuple):
    """A binding that is None where `is_set` does not hold."""

    is_set: object  # a Value, True or False
    content: object  # a binding


def is_given(assumed: dict, binding: Maybe) -> bool | Value:
    """Whether the binding is not None: True, False, or the run-time flag."""
    flag = binding.is_set
    if not isinstance(flag, Value):
        return flag
    return bool(flag.constant) if flag.constant is not MISSING else assumed.get(flag, flag)


def resolve_optional(assumed: dict, binding):
    """The binding without its Maybe where it is known to be a value, or None."""
    if not isinstance(binding, Maybe):
        return binding
    known = is_given(assumed, binding)
    return binding.content if known is True else None if known is False else binding


def assume(assumed: dict, condition: Value, holds: bool) -> None:
    """Record what follows from `condition` being true, or false."""
    assumed[condition] = holds
    op = condition.op
    if op is None:
        return
    if op.name == "not_":
        assume(assumed, op.inputs[0], not holds)
    elif op.name == "if":  # `a and b` implies both; not `a or b` implies neither
        k = op.outputs.index(condition)
        ends = [block.yields[k] for block in op.blocks]
        for side, other in ((0, 1), (1, 0)):
            if ends[other].constant is not MISSING and bool(ends[other].constant) is not holds:
                assume(assumed, op.inputs[0], side == 0)
                assume(assumed, ends[side], holds)


def is_none(frame, binding: Maybe):
    """`binding is None`."""
    known = is_given(frame.session.assumed, binding)
    return RECORDS["not_"](known) if isinstance(known, Value) else not known


def has_maybe(binding) -> bool:
    """Whether a binding is, or contains, a Maybe."""
    return (isinstance(binding, Maybe)
            or isinstance(binding, (tuple, list)) and any(map(has_maybe, binding)))


def optional_error(what: str, line) -> UnsupportedError:
    """The error for a Maybe in a place that treats None and numbers differently."""
    return UnsupportedError(f"{what} of what may be None", line, "test it with `is None` first")
