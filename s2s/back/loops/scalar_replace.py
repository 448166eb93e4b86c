"""Keep elements that one trip leaves to the next in scalars (scalar replacement).

    for j in range(1, n - 1):                                 t = u[0]
        u[j] = 0.5 * (u[j - 1] + u[j + 1])      becomes       for j in range(1, n - 1):
                                                                  t = 0.5 * (t + u[j + 1])
                                                                  u[j] = t

A store that the next trip loads again costs four or five cycles, which is most of the time of a
sweep like this one, and of its adjoint, which adds to three neighbours: both are 1.5 times faster
with scalars. LLVM misses it because stores to other rows come between.

The elements of a row that a trip touches are a *window* that moves by one each trip: an element
enters it at one end, is read and written while it is inside, and leaves at the other. Inside it is
a scalar. It is loaded where it is first read, and stored after the last write to it; the window is
filled before the loop, and what is still to be stored is stored after it. Other writes to the array
must be proved to be to other elements (other offsets of one base, none negative). Loops that carry
no element from trip to trip are left alone: they may be vectorised.

An element that every trip writes at one fixed index (`FixedElement`) is a scalar for the whole loop
(reduction promotion): LLVM proves only sometimes that no other write of the loop aliases it. What
an adjoint accumulates into it is summed from zero, and added to the element after the loop: so
outer loops may still add to it from several threads, and the loop itself to elements that may be
the same, `x_bar[i] -= t` beside `x_bar[j] += t`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...analysis.affine import indices_differ, lower_bound
from ...ir.builder import Builder, add_op, at, current
from ...ir.graph import OPERATORS, Block, Function, Op, Readers, Value, readers_of, walk
from ...ir.substitute import substitute
from ...ir.types import Array, Scalar
from ...ops.arrays.index import additem, getitem, setitem
from ...ops.core.control import if_record
from ...ops.core.identities import base_offset
from ...ops.core.record import value
from ..loopir.reductions import zero_of

WIDEST = 6  # elements: registers are few
# dtypes whose sums are the same in a scalar as in an array
DTYPES = ("float64", "float32", "int64", "complex128")


@dataclass(eq=False)
class Window:
    """Accesses of a loop to one row of an array, along which it moves."""

    carry: int  # number of the array among the loop's carries
    axis: int | None  # the axis that the counter indexes
    others: tuple  # (base, offset) of the other axes
    dtype: str
    # in order, with the offset from the counter
    accesses: list[tuple[Op, int]] = field(default_factory=list)

    def offsets(self, written: bool = False) -> list[int]:
        return sorted({c for op, c in self.accesses if not written or op.record is not getitem})

    def read_from_scalars(self, forwards: bool) -> list[int]:
        """The offsets of elements that a trip reads from scalars.

        All but the newest, if they are not overwritten first.
        """
        offsets = self.offsets()
        inside = range(offsets[0], offsets[-1] + 1)
        first = {c: next((op for op, k in self.accesses if k == c), None) for c in inside}
        return [c for c in (inside[:-1] if forwards else inside[1:]) if first[c] is None
                or first[c].record is not setitem]

    def stored(self, forwards: bool) -> int:
        """The offset after which no access writes to an element any more."""
        return self.offsets(written=True)[0 if forwards else -1]

    def unstored(self, forwards: bool) -> list[int]:
        """The offsets, seen from the trip after the last, of elements still to be stored."""
        first, *_, last = [*self.offsets(written=True)] * 2
        return list(range(first, last) if forwards else range(first + 1, last + 1))

    def incoming(self, forwards: bool) -> list[int]:
        """The offsets of elements that a trip receives in scalars."""
        return sorted({*self.read_from_scalars(forwards), *self.unstored(forwards)})

    def place(self, i: Value, c: int) -> list[Value]:
        index = [base + offset if base is not None and offset else value(offset) if base is None
                 else base for base, offset in self.others]
        if self.axis is not None:
            index.insert(self.axis, i + c if c else i)
        return index

    def step(self, forwards: bool) -> int:
        """The change of an element's offset from one trip to the next."""
        return 1 if forwards else -1

    def term(self, x: Value) -> Value:
        """The term to add to a scalar where `x` is added to an element."""
        return x

    def starts(self, array: Value, i: Value, c: int) -> Value:
        """The initial scalar at offset `c`, before a loop whose first trip is `i`."""
        return self.read(array, i, c)

    def store_last(self, array: Value, x: Value, i: Value, c: int) -> Value:
        """The array after a loop that ends before `i` with `x` in the scalar at `c`."""
        return self.write(array, x, i, c)

    def read(self, array: Value, i: Value | Block, c: int) -> Value:
        """Load the element at offset `c` from `i` or from a loop's counter."""
        index = self.place(i.params[0] if isinstance(i, Block) else i, c)
        return getitem(array, *index, pattern=("i",) * len(index))

    def write(self, array: Value, x: Value, i: Value | Block, c: int) -> Value:
        index = self.place(i.params[0] if isinstance(i, Block) else i, c)
        written = setitem(array, x, *index, pattern=("i",) * len(index))
        written.name = array.name
        return written


class FixedElement(Window):
    """Accesses of a loop to one element, at indices that no trip changes."""

    @property
    def is_sum(self) -> bool:
        """Whether the element is only accumulated into, by an adjoint."""
        return all(is_added(op) for op, _ in self.accesses)

    @property
    def is_taken(self) -> bool:
        """Whether the element is only subtracted from.

        The loop then sums, and the sum is subtracted at the end: LLVM vectorises an ordered sum,
        but not an ordered subtraction.
        """
        return self.is_sum and all(op.inputs[1].op is not None and op.inputs[1].op.name
                                   == "negative" for op, _ in self.accesses)

    def term(self, x: Value) -> Value:
        return x.op.inputs[0] if self.is_taken else x

    def is_worth_it(self) -> bool:
        return self.is_sum or len({op.name == "getitem" for op, _ in self.accesses}) == 2

    def stored(self, forwards: bool) -> None:
        return None

    def unstored(self, forwards: bool) -> list[int]:
        return [0]

    def incoming(self, forwards: bool) -> list[int]:
        return [0]

    def step(self, forwards: bool) -> int:
        return 0

    def starts(self, array: Value, i: Value, c: int) -> Value:
        return zero_of(self.dtype) if self.is_sum else super().starts(array, i, c)

    def store_last(self, array: Value, x: Value, i: Value, c: int) -> Value:
        if not self.is_sum:
            return super().store_last(array, x, i, c)
        index = self.place(i, c)
        added = additem(array, OPERATORS["negative"](x) if self.is_taken else x, *index,
                        pattern=("i",) * len(index))
        added.name = array.name
        return added


def is_added(op: Op) -> bool:
    """Whether `op` is an adjoint's accumulation into an element, whose order is free."""
    return op.name == "additem" and op.line is not None and op.line.backwards


def replace_by_scalars(function: Function) -> Function:
    """Replace elements that loops of `function`, a loop form, pass from trip to trip by scalars."""
    counters = {op.blocks[0].params[0]: op for op in walk(function.block) if op.name == "for"}
    same: dict[Value, Value] = {}
    _block(function.block, readers_of(function.block), counters, same)
    substitute(function.block, same)
    return function


def _block(block: Block, readers: Readers, counters: dict[Value, Op],
           same: dict[Value, Value]) -> None:
    ops, block.ops = block.ops, []
    for op in ops:
        for inner in op.blocks:
            _block(inner, readers, counters, same)
        windows = _windows(op, readers, counters) if op.name == "for" else []
        if windows:
            with Builder(block), at(op.line):
                same.update(_rewrite(op, windows))
        else:
            block.ops.append(op)


# ------------------------------------------------------------------------------------------ finding


def _windows(loop: Op, readers: Readers, counters: dict[Value, Op]) -> list[Window]:
    if loop.attrs["breaks"] or loop.inputs[2].constant not in (1, -1):
        return []
    body = loop.blocks[0]
    inside = {v for v in body.params} | {v for op in walk(body) for v in op.outputs}
    found = []
    for k, param in enumerate(body.params[1:]):
        is_array = isinstance(param.type, Array) and param.type.dtype in DTYPES
        accesses = _accesses(body, param, body.yields[k], readers) if is_array else None
        if accesses:
            found += _moving_windows(loop, k, accesses, inside, counters)
    return found


def _accesses(body: Block, param: Value, end: Value, readers: Readers) -> list[Op] | None:
    """The element accesses to an array, in order; None if the body does anything else with it."""
    versions, version = [param], param
    while version is not end:
        writes = [op for op, _ in readers[version] if op is not None
                  and op.record.writes is not None and op.inputs[0] is version]
        if len(writes) != 1:
            return None
        version = writes[0].output
        versions.append(version)
    position = {op: n for n, op in enumerate(body.ops)}
    found = []
    for version in versions:
        for op, _ in readers[version]:
            if op is None and version is end and body.yields.count(end) == 1:
                continue
            if op not in position or op.record.indices is None or op.inputs.count(version) != 1:
                return None
            if (op.inputs[0] is not version or set(op.attrs["pattern"]) != {"i"}
                    or not isinstance(op.output.type, Scalar) and op.name == "getitem"):
                return None
            if any(not isinstance(x.type, Scalar) or x.type.dtype != "int64" for x in _index(op)):
                return None
            if (op.name != "getitem"
                    and getattr(op.inputs[1].type, "dtype", None) != param.type.dtype):
                return None
            found.append(op)
    found.sort(key=position.get)
    return found if _one_after_another(found, param) else None


def _one_after_another(accesses: list[Op], version: Value) -> bool:
    """Whether each access is to the latest version; a read of an older one would need a copy."""
    for op in accesses:
        if op.inputs[0] is not version:
            return False
        if op.record is not getitem:
            version = op.output
    return True


def _index(op: Op) -> list[Value]:
    return op.inputs[1 if op.name == "getitem" else 2:]


def _moving_windows(loop: Op, k: int, accesses: list[Op], inside: set[Value],
            counters: dict[Value, Op]) -> list[Window]:
    """The profitable windows of one array, if all other accesses are to other elements."""
    counter, forwards = loop.blocks[0].params[0], loop.inputs[2].constant == 1
    windows: dict[tuple, Window] = {}
    for op in accesses:
        places = [base_offset(i) for i in _index(op)]
        axes = [axis for axis, (base, _) in enumerate(places) if base is counter]
        others = tuple(place for axis, place in enumerate(places) if axis not in axes)
        if (len(axes) > 1 or len(places) != loop.outputs[k].type.rank
                or any(base in inside for base, _ in others)):
            continue
        if axes:
            window, c = (windows.setdefault((*axes, others),
                                            Window(k, *axes, others, loop.outputs[k].type.dtype)),
                         places[axes[0]][1])
        else:
            window, c = windows.setdefault((None, others),
                                           FixedElement(k, None, others,
                                                        loop.outputs[k].type.dtype)), 0
        window.accesses.append((op, c))
    found = []
    for window in windows.values():
        mine = {op for op, _ in window.accesses}
        if not (window.is_worth_it() if isinstance(window, FixedElement)
                else _is_handed_on(window, counter, forwards, counters)):
            continue
        if any(_maybe_negative(place, counters) for place in window.others):
            continue
        commutes = (is_added if isinstance(window, FixedElement) and window.is_sum
                    else lambda op: False)
        rest = [op for op in accesses if op not in mine and not commutes(op)]
        if all(_apart(window, op, counters) for op in rest):
            found.append(window)
    return found


def _is_handed_on(window: Window, counter: Value, forwards: bool,
                  counters: dict[Value, Op]) -> bool:
    """Whether trips pass elements on in `window`, in few registers, with no index from the end."""
    offsets, low = window.offsets(), lower_bound(counter, counters)
    if (not window.offsets(written=True) or not window.read_from_scalars(forwards)
            or offsets[-1] - offsets[0] >= WIDEST):
        return False
    return low is not None and low + offsets[0] >= 0


def _maybe_negative(place: tuple, counters: dict[Value, Op]) -> bool:
    base, offset = place
    low = 0 if base is None else lower_bound(base, counters)
    return low is None or low + offset < 0


def _apart(window: Window, op: Op, counters: dict[Value, Op]) -> bool:
    """Whether `op` is proved to access an element of another row."""
    a, b = _index(window.accesses[0][0]), _index(op)
    return any(axis != window.axis and indices_differ(i, j, counters)
               for axis, (i, j) in enumerate(zip(a, b)))


# ---------------------------------------------------------------------------------------- rewriting


def _rewrite(loop: Op, windows: list[Window]) -> dict[Value, Value]:
    """Emit `loop` with these windows in scalars; return the replacements of its outputs."""
    lo, hi, step = loop.inputs[:3]
    outputs, inits = list(loop.outputs), loop.inputs[3:]
    loop.outputs = [Value(y.type, y.name, loop) for y in outputs]
    runs = OPERATORS["less" if step.constant == 1 else "greater"](lo, hi)
    if runs.constant is True:
        return dict(zip(outputs, _emit_windowed(loop, windows)))
    arm, other = Block(), Block(yields=inits)
    with Builder(arm):
        arm.yields = _emit_windowed(loop, windows)
    new = add_op(if_record, [runs], {}, [y.type for y in outputs], [arm, other],
                 [y.name for y in outputs])
    new.outputs = outputs
    for y in outputs:
        y.op = new
    return {}


def _emit_windowed(loop: Op, windows: list[Window]) -> list[Value]:
    """Emit the loop with windows; return the new values of its outputs."""
    body, forwards = loop.blocks[0], loop.inputs[2].constant == 1
    lo, hi = loop.inputs[:2]
    results = list(loop.outputs)
    slots = [(w, c) for w in windows for c in w.incoming(forwards)]
    state: dict[Window, dict[int, Value]] = {w: {} for w in windows}
    for w, c in slots:
        loop.inputs.append(w.starts(loop.inputs[3 + w.carry], lo, c))
        state[w][c] = Value(Scalar(w.dtype))
        body.params.append(state[w][c])
        loop.outputs.append(Value(Scalar(w.dtype), "", loop))
    _scalars(body, {op: (w, c) for w in windows for op, c in w.accesses}, state)
    with Builder(body):
        for w in windows:
            if (c := w.stored(forwards)) is not None:
                body.yields[w.carry] = w.write(body.yields[w.carry], state[w][c], body, c)
    body.yields += [state[w][c + w.step(forwards)] for w, c in slots]
    current().block.ops.append(loop)
    for (w, c), left in zip(slots, loop.outputs[len(results):]):
        if c in w.unstored(forwards):
            results[w.carry] = w.store_last(results[w.carry], left, hi, c)
    return results


def _scalars(body: Block, mine: dict[Op, tuple[Window, int]],
             state: dict[Window, dict[int, Value]]) -> None:
    """Replace the accesses in `mine` by the scalars of `state`."""
    ops, body.ops = body.ops, []
    same: dict[Value, Value] = {}

    def final(x: Value) -> Value:
        while x in same:
            x = same[x]
        return x

    with Builder(body):
        for op in ops:
            if op not in mine:
                body.ops.append(op)
                continue
            (w, c), array = mine[op], final(op.inputs[0])
            now = state[w]
            with at(op.line):
                if op.record is setitem:
                    now[c] = final(op.inputs[1])
                elif c not in now:  # it enters the window here
                    now[c] = w.read(array, body, c)
                if op.name == "additem":
                    now[c] = OPERATORS["add"](now[c], final(w.term(op.inputs[1])))
            same[op.output] = now[c] if op.record is getitem else array
    substitute(body, same)
