"""The invariants of the loop form, one function each, beside those of all IR (ir/verify.py).

`S2S_CHECK=ir` checks them after every pass over loops (back/loop_pipeline.py).  What it finds is a
bug in s2s.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import VerifyError
from ..ir.graph import Block, Function, Op, walk
from ..ir.reemit import clone
from ..ir.types import Array, Scalar
from ..ops.arrays.index_pattern import is_basic
from ..ops.core.elementwise import add, subtract
from .loopir.ops import stays_inside_op
from .loops.index_sums import Affine, Atom
from .loops.loop_bounds import Bounds
from .lower.library_calls import is_native
from .lower.lower_function import is_in_order
from .print.insert_copies import copies_in_innermost_loops


def verify_loops(function: Function, copies: int = 0, guarded: bool = True) -> Function:
    """Return `function`, a loop form, if every invariant of loops holds; otherwise raise
    VerifyError.

    Before the passes over loops its writes have copied arrays in `copies` places of innermost
    loops.  Its indices are `guarded` when the pass that guards them has run; those of kernels of
    GPUs never are.
    """
    ops_are_scalar(function)
    writes_are_linear(function, copies)
    if guarded:
        indices_are_guarded(function)
    return function


def ops_are_scalar(function: Function) -> None:
    """Check that no op computes with arrays element by element: that is what loops are for.

    Arrays are read and written at single elements, allocated, copied, viewed, carried, and handed
    to functions.
    """
    for op in walk(function.block):
        arrays = any(isinstance(x.type, Array) for x in (*op.inputs, *op.outputs))
        if arrays and not is_of_loops(op):
            raise VerifyError(f"{op} is left in the loops of {function.name}", op.line)


def is_of_loops(op: Op) -> bool:
    """Whether the loop form may have this op on arrays."""
    if op.record.elementwise:
        return False
    if op.record.indices is not None and isinstance(op.inputs[0].type, Array):
        return is_basic(op.attrs["pattern"], op.inputs[op.record.indices:])
    # what is in order is left to CuPy by the host of kernels
    return is_native(op) or bool(op.record.views) or is_in_order(op)


def writes_are_linear(function: Function, copies: int) -> None:
    """Check that writes of `function` copy arrays in no more places of innermost loops than before,
    in `copies`.

    A write is linear if what it overwrites is not read afterwards: it is done in place.  The
    program itself may read an array on that it has copied and changed; and outside of innermost
    loops a copy takes no longer than the loops beside it.
    """
    more = copies_in_innermost_loops(function) - copies
    if more > 0:
        raise VerifyError(f"{function.name} copies {more} arrays more than before the passes over "
                          "loops, in each trip of an innermost loop")


def indices_are_guarded(function: Function) -> None:
    """Check that every index that is affine in a counter is proved to be in bounds, or compared in
    the bound of a loop around it; and that one read from an array is compared where it is read,
    unless native code compares all.
    """
    Guarded(clone(function)).verify()


class Guarded(Bounds):
    """A walk over a loop form that proves its indices again, by the checks in it."""

    def verify(self) -> None:
        self.visit(self.function.block, None)

    def visit(self, block: Block, owner: Op | None) -> None:
        count = len(self.asked)
        if owner is not None and owner.name == "for":
            self.asked += self.guards(owner)
        super().visit(block, owner)
        del self.asked[count:]

    def access(self, op: Op) -> None:
        super().access(op)
        for i in op.inputs[op.record.indices:] if self.function.bounded else ():
            if isinstance(i.type, Scalar) and any(is_element(atom) for atom, _ in
                                                  self.affine(i).terms):
                raise VerifyError(f"an index of {op} is read from an array, and not compared",
                                  op.line)

    def guards(self, loop: Op) -> Iterator[Affine]:
        """The sums that are not negative in trips of `loop`, as its bounds compare them."""
        pending = list(loop.inputs[:2])
        while pending:
            op = pending.pop().op
            if op is not None and op.record is stays_inside_op:
                _, small, large = map(self.affine, op.inputs)
                yield large.plus(small, -1)
                pending.append(op.inputs[0])
            elif op is not None and op.record in (add, subtract):
                pending += op.inputs

    def emit(self, op: Op, goal: Affine) -> bool:
        """Raise VerifyError where a check could have been emitted, and was not."""
        place = self.place_of(goal)
        if place is None:
            return False
        _, _, least = place
        if least not in self.asked:
            raise VerifyError(f"an index of {op} may be out of bounds", op.line)
        return True


def is_element(atom: Atom) -> bool:
    """Whether the integer is an element of an array."""
    return (atom.kind == "value" and atom.value.op is not None and atom.value.op.name == "getitem"
            and isinstance(atom.value.op.inputs[0].type, Array))
