"""The IR builder, the one place where an op gets its type, and where constants fold.

Passes, inlining, specialising and unrolling are all the same act: emit the ops of a function again,
with better-known inputs.  Rules are ordinary Python run on Values; `current()` is the block they
emit into.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..errors import ArrayNeededError, Line, S2SError, TypeMismatchError, note_line
from .graph import Block, Meeting, Op, Value
from .types import Array, Dim, Extent, List, Scalar, Tuple, Type, Unknown, join

_stack: list[Builder] = []
_watcher: Callable | None = None  # called with each op about to be emitted
_met: list[tuple[Dim, Dim, bool | str]] = []  # the extents that its type requires to be equal


class Builder:
    """An emitter of ops into one block.  Use it as a context manager: rules emit into the innermost
    one.

    `inits`, for the block of an op that the enclosing builder is about to append, maps carry
    parameters to their initial values.  `above` are values from outside whose symbols a new block
    may meet: fresh symbols avoid theirs.  `meetings` collects the extents that ops require to be
    equal: given for a block that every run of a function executes.  `trips` is the range of the
    block's first parameter, for the block of a loop.
    """

    def __init__(self, block: Block | None = None, line: Line | None = None,
                 inits: dict[Value, Value] | None = None, above: Iterable[Value] = (),
                 meetings: list[Meeting] | None = None,
                 trips: tuple[Value, Value, Value] | None = None):
        self.block = Block() if block is None else block
        self.meetings, self.trips = meetings, trips
        outer = _stack[-1] if _stack else None
        self.outer = outer if inits is not None else None
        self.inits = inits or {}
        self.asked: dict[tuple, Value] = {}  # shape queries of inner blocks, emitted here
        # by the value they measure
        self.extents: dict[tuple, Extent] = outer.extents if outer is not None else {}
        self.line = line if line is not None or outer is None else outer.line
        self.counter = outer.counter if outer is not None else [0]
        # the block may be of a function that is made meanwhile, whose symbols the block around has
        # never met
        self.counter[0] = max(self.counter[0], last_symbol([*self.block.params, *above]))

    def __enter__(self) -> Builder:
        _stack.append(self)
        return self

    def __exit__(self, kind, error, place) -> None:
        _stack.pop()
        note_line(error, self.line)


def last_symbol(values: Iterable[Value]) -> int:
    """Return the highest number among the fresh symbols in the types of `values`."""
    found = (FRESH.fullmatch(symbol) for value in values for symbol in symbols_of(value.type))
    return max((int(match[1]) for match in found if match), default=0)


def symbols_of(type: Type) -> Iterator[str]:
    """Return the symbols of the extents and shapes in a type."""
    match type:
        case Array(_, dims):
            yield from (d.symbol for d in dims if isinstance(d, Extent))
        case Unknown(shape):
            yield shape or ""
        case Tuple(items):
            for item in items:
                yield from symbols_of(item)
        case List(item):
            yield from symbols_of(item)


FRESH = re.compile(r"[a-z]+(\d+)")


def current() -> Builder:
    """Return the innermost builder, whose block rules emit into."""
    if not _stack:
        raise RuntimeError("no builder: wrap emission in `with Builder(block):`")
    return _stack[-1]


def in_scope(value: Value) -> bool:
    """Test whether the blocks being emitted into, or those around them, define `value`."""
    return any(value in builder.block.params
               or (value.op is not None and value.op in builder.block.ops) for builder in _stack)


def trips_of(counter: Value) -> tuple[Value, Value, Value] | None:
    """Return the range that `counter` counts through, if it is the counter of a loop being emitted.
    """
    return next((builder.trips for builder in _stack if builder.trips is not None
                 and builder.block.params[0] is counter), None)


class at:
    """Attribute the ops emitted inside `with at(line):` to that line of the user's program."""

    def __init__(self, line: Line | None):
        self.line = line

    def __enter__(self) -> None:
        self.builder = current()
        self.saved, self.builder.line = self.builder.line, self.line or self.builder.line

    def __exit__(self, kind, error, place) -> None:
        note_line(error, self.builder.line)
        self.builder.line = self.saved


class watching:
    """Call `look(record, inputs, attrs, met)` before each op without blocks emitted inside
    `with watching(look):`.

    `met` are the extents, two by two, that the op needs equal, and whether a 1 does as well.
    """

    def __init__(self, look: Callable | None):
        self.look = look

    def __enter__(self) -> None:
        global _watcher
        self.around, _watcher = _watcher, self.look

    def __exit__(self, *exc) -> None:
        global _watcher
        _watcher = self.around


def not_watched() -> watching:
    """Hide the ops emitted inside `with not_watched():` from `watching`."""
    return watching(None)


def fresh_extent(prefix: str = "d") -> Extent:
    """Create a run-time length of which nothing is known."""
    counter = current().counter
    counter[0] += 1
    return Extent(f"{prefix}{counter[0]}")


def meet(a: Dim, b: Dim, broadcasts: bool | str = False) -> None:
    """Record that the op emitted now raises unless these extents are equal, or one is 1 and it
    broadcasts: with "second", unless `b` is 1.
    """
    if a == b or (broadcasts and 1 in ((b,) if broadcasts == "second" else (a, b))):
        return
    if _watcher is not None:
        _met.append((a, b, broadcasts))
    meetings = current().meetings
    if meetings is not None and not any(getattr(d, "accepts_any", False) for d in (a, b)):
        meetings.append(Meeting(a, b, broadcasts, current().line))


def record_effect() -> None:
    """Record that the program may have an effect now, or raise, so that later checks may not be
    reached.
    """
    for builder in _stack:
        builder.meetings = None


def fresh_shape() -> str:
    """Create a symbol for the shape of a value of unknown rank."""
    counter = current().counter
    counter[0] += 1
    return f"s{counter[0]}"


def add_op(record, inputs: Sequence[Value], attrs: dict, types: Iterable[Type],
           blocks: Sequence[Block] = (), names: Sequence[str] = ()) -> Op:
    """Append an op of known output types to the current block."""
    builder = current()
    op = Op(record, list(inputs), attrs, list(blocks), [], builder.line)
    for k, type in enumerate(types):
        op.outputs.append(Value(type, names[k] if k < len(names) else "", op))
    builder.block.ops.append(op)
    if not record.pure:
        record_effect()
    return op


def emit(record, *inputs: Value, **attrs) -> Value | tuple[Value, ...]:
    """Emit one op without blocks: fold it if it folds, else infer its type and append it."""
    if _watcher is not None:
        _watcher(record, inputs, attrs, _met_by(record, inputs, attrs))
    try:
        if record.fold is not None:
            folded = record.fold(*inputs, **attrs)
            if folded is not None:
                return folded
        types = record.infer(*inputs, **attrs)
    except S2SError as error:
        if error.line is None:
            error.line = current().line
        raise
    except AttributeError:  # the type of a text has no dtype
        odd = next((x for x in inputs if not isinstance(x.type, (Scalar, Array, Unknown))), None)
        if odd is None or not record.elementwise:
            raise
        raise ArrayNeededError(odd, current().line, odd.name
                               or f"an operand of {record.name}") from None
    several = isinstance(types, list)
    op = add_op(record, inputs, attrs, types if several else [types])
    return tuple(op.outputs) if several else op.output


def _met_by(record, inputs: tuple, attrs: dict) -> tuple[tuple[Dim, Dim, bool | str], ...]:
    """Return the pairs of extents that this op requires to be equal."""
    builder = current()
    meetings, builder.meetings = builder.meetings, None
    _met.clear()
    try:
        record.infer(*inputs, **attrs)
    except Exception:  # the error is reported when it is emitted
        return ()
    finally:
        builder.meetings = meetings
    return tuple(_met)


def join_types(a: Type, b: Type, what: str = "a value", fresh=fresh_extent) -> Type:
    """Apply `join` with fresh extents from the current builder, or raise an error that names the
    value.
    """
    type = join(a, b, fresh)
    if type is None:
        raise TypeMismatchError(f"{what} is {a} on one path and {b} on another", current().line,
                                "give it one kind of value on all paths")
    return type
