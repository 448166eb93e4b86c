"""Track numbers that may be Python's at run time, though their type is NumPy's.

    total = 0.0                      # Python's
    for v in x:
        total = total + v            # NumPy's, after the first trip
    mean = total / len(x)            # raises ZeroDivisionError where there was no trip;
                                     # of NumPy's numbers it is nan

A type that joins both kinds is NumPy's, for that decides dtypes (NEP 50).  Where an op raises for
Python's numbers alone, native code has to ask which of them there are: here, as a truth value of
the run, or True where the run does not tell.  True is safe, for where native code raises the
interpreted form has the last word (back/arrays/python_errors.py).

Considered: a third kind of scalar in types, which every rule of promotion, every printer and every
cache key would know, for the few ops that raise; and a flag carried along with each number, which
costs loops a carry.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.graph import MISSING, Block, Op, Value, walk
from ..ir.types import Array, Scalar
from ..ops.core.raise_conditions import all_of, either, equals, is_at_most, negated
from ..ops.core.record import RECORDS

DEPTH = 60  # the most ops to follow behind a number


class PythonNumbers:
    """The numbers of the program being lowered that are Python's in a run."""

    def __init__(self, block: Block):
        # a parameter of a loop -> the loop, and which of its carries
        self.carries: dict[Value, tuple[Op, int]] = {}
        self.known: dict[Value, bool] = {}
        for op in walk(block):
            count = len(op.outputs)
            for inner in op.blocks if op.name in ("for", "while") and count else ():
                self.carries.update((p, (op, k)) for k, p in enumerate(inner.params[-count:]))

    def are_possible(self, xs) -> bool:
        """Test whether all of `xs` may be Python's."""
        return all(self.is_possible(x, {}) for x in xs)

    def is_possible(self, x: Value, open_: dict[Value, bool], depth: int = DEPTH) -> bool:
        """Test whether `x` may be Python's, assuming for the carries in `open_`, which are being
        analysed, what it says.
        """
        if not isinstance(x.type, Scalar):
            return False
        if x.type.weak or not depth:
            return True
        if x in open_:
            return open_[x]
        if x not in self.known:
            found = (self._carry(x, open_, depth) if x in self.carries else x.op is not None
                     and self._output(x, open_, depth))
            if open_:
                return found  # valid only under these assumptions
            self.known[x] = found
        return self.known[x]

    def _carry(self, param: Value, open_: dict[Value, bool], depth: int) -> bool:
        op, k = self.carries[param]
        before = self.is_possible(op.inputs[k - len(op.outputs)], open_, depth - 1)
        return before or self._is_end_possible(op, k, before, open_, depth)

    def _is_end_possible(self, op: Op, k: int, before: bool, open_: dict[Value, bool],
                         depth: int) -> bool:
        """Test whether a carry may be Python's at the end of a trip, given whether it is at the
        start.
        """
        count, body = len(op.outputs), op.blocks[-1]
        opened = {**open_, **{block.params[k - count]: before for block in op.blocks}}
        return self.is_possible(body.yields[k - count], opened, depth - 1)

    def _output(self, x: Value, open_: dict[Value, bool], depth: int) -> bool:
        op = x.op
        k = op.outputs.index(x)
        if op.name == "if":
            return any(self.is_possible(block.yields[k], open_, depth - 1) for block in op.blocks)
        if op.name in ("for", "while"):
            before = self.is_possible(op.inputs[k - len(op.outputs)], open_, depth - 1)
            return before or self._is_end_possible(op, k, before, open_, depth)
        if op.record.from_zero:
            return True
        if op.record.returns_operand:
            return any(self.is_possible(each, open_, depth - 1)
                       for each in op.inputs[op.record.selects:])
        return _is_pythons_of_pythons(op) and all(self.is_possible(each, open_, depth - 1)
                                                  for each in op.inputs)

    def asked(self, x: Value, whole: Callable, extent: Callable):
        """Return whether `x`, which may be Python's, is: True, or a truth value emitted now.

        `whole` gives the number that one of the program has become, `extent` the length of the
        first axis of an array.
        """
        op = x.op
        if x.type.weak or op is None:
            return True
        if op.record.from_zero:
            (terms,) = op.inputs
            return equals(extent(terms) if isinstance(terms.type, Array)
                          else RECORDS["tape_len"](whole(terms)), 0)
        if op.name == "for" and op.inputs[2].constant == 1:
            k = op.outputs.index(x)
            if not self._is_end_possible(op, k, True, {}, DEPTH):
                lo, hi = op.inputs[:2]
                none = (is_at_most(whole(hi), lo.constant) if type(lo.constant) is int
                        else is_at_most(whole(hi) - whole(lo), 0))
                return all_of(none, self.asked(op.inputs[k - len(op.outputs)], whole, extent))
        if op.name in ("if", "select"):
            k = op.outputs.index(x)
            ends = [block.yields[k] for block in op.blocks] or op.inputs[1:]
            yes, no = (self.is_possible(each, {}) for each in ends)
            if yes is not no:
                return whole(op.inputs[0]) if yes else negated(whole(op.inputs[0]))
        if op.record.returns_operand:
            pythons = [each for each in op.inputs if self.is_possible(each, {})]
            if all(type(each.constant) in (int, float) for each in pythons):
                found = None
                for each in pythons:
                    found = either(found, equals(whole(x), each.constant))
                return found
        return True


def _is_pythons_of_pythons(op: Op) -> bool:
    """Test whether the op returns a Python number if all its operands are Python's."""
    if not op.record.elementwise or not all(isinstance(x.type, Scalar) for x in op.inputs):
        return False
    plain = [x if x.constant is not MISSING else Value(Scalar(x.type.dtype, weak=True))
             for x in op.inputs]
    try:
        type = op.record.infer(*plain, **op.attrs)
    except Exception:  # no Python numbers have such dtypes
        return False
    return isinstance(type, Scalar) and type.weak
