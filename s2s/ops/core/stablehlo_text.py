"""The text of a program in StableHLO, emitted op by op for arguments of known shapes.

A value is a `Tensor`, a name in the text of known shape and dtype, or it is known: a Python number,
an array of NumPy, a container or list of values.  What is known is computed while the text is
written, as the op's record computes it; so are lengths, and whatever follows from them.  For an op
with a Tensor among its inputs, the record's `stablehlo` says what is emitted (Note [StableHLO]).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ...errors import Line, S2SError, UnsupportedError
from ...ir.builder import Builder
from ...ir.graph import Block, Op, Value
from ...ir.treedef import form_of, is_container
from .record import value

ELEMENTS = {"bool": "i1", "float16": "f16", "float32": "f32", "float64": "f64",
            "complex64": "complex<f32>", "complex128": "complex<f64>",
            **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
            **{f"uint{n}": f"ui{n}" for n in (8, 16, 32, 64)}}
INTEGER = "int64"  # the dtype of lengths, counters and indices


class NotKnownError(UnsupportedError):
    """Something that has to be known while the text is written, and depends on Tensors."""


class Tensor:
    """A value that is computed when the text is run."""

    __slots__ = "name", "dtype", "shape"

    def __init__(self, name: str, dtype: str, shape: tuple[int, ...]):
        self.name, self.dtype, self.shape = name, dtype, shape

    @property
    def type(self) -> str:
        """Its type, as StableHLO writes it: tensor<3x4xf64>."""
        return type_text(self.dtype, self.shape)

    @property
    def size(self) -> int:
        """The number of its elements."""
        return int(np.prod(self.shape))

    @property
    def hollow(self) -> np.ndarray:
        """An array of this shape and dtype that takes no memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)


def type_text(dtype: str, shape: Sequence[int]) -> str:
    """Return the type of tensors of this dtype and shape."""
    return f"tensor<{''.join(f'{n}x' for n in shape)}{ELEMENTS[dtype]}>"


class Text:
    """The lines of a program, to which rules append."""

    def __init__(self):
        self.lines: list[str] = []
        self.depth = 2
        self.count = 0
        # number -> the name of the program's that stands for it in the end
        self.names: dict[str, str] = {}
        self.constants: list[dict[tuple, Tensor]] = [{}]  # of each region around
        # the least and the greatest number that integers can be, where that is known
        self.bounds: dict[str, tuple[int, int]] = {}
        self.line: Line | None = None
        self.said = ""  # the line of the last comment

    # --------------------------------------------------------------------------------- the program

    def run(self, block: Block, args: Sequence, outer: dict[Value, object] | None = None,
            lowered: bool = False) -> list:
        """Emit the ops of `block` for these arguments; return the values of its yields.

        `lowered` is for what a lowering rule has emitted, whose ops are not lowered in turn.
        """
        env = {**(outer or {}), **dict(zip(block.params, args, strict=True))}
        for op in block.ops:
            line, self.line = self.line, op.line or self.line
            before, said = len(self.lines), self.said
            if op.blocks:
                self.comment(before, said)
            try:
                found = self.emitted(op, [env[x] for x in op.inputs], env, lowered)
            except S2SError as error:
                error.line = error.line or self.line
                raise
            if len(self.lines) > before and not op.blocks:
                self.comment(before, said)
            self.line = line
            env.update(zip(op.outputs, found, strict=True))
            for y, x in zip(op.outputs, found):
                if isinstance(x, Tensor):
                    self.call(x, y.name)
        return [env[y] for y in block.yields]

    def comment(self, before: int, said: str) -> None:
        """Name the line of the program in a comment before what it has emitted, unless that is the
        line that was `said` last.
        """
        if self.line is not None:
            self.said = self.line.text
            if self.said != said:
                self.lines.insert(before, f"{'  ' * self.depth}// line {self.line.number}: "
                                  f"{self.said}")

    def emitted(self, op: Op, xs: list, env: dict, lowered: bool) -> list:
        """Return the results of one op."""
        record, found = op.record, NotImplemented
        xs = [x.hollow if k in record.shapes and isinstance(x, Tensor) else x
              for k, x in enumerate(xs)]
        if record.run is not None:
            if not op.blocks:  # a call
                return self.run(op.attrs["callee"].function_for(op.inputs).block, xs)
            if record.stablehlo is None:
                raise self.refusal(op)
            return record.stablehlo(self, op, env, *xs)
        if record.structural or record.on_tapes or not any(map(has_tensor, xs)):
            if not (record.pure or record.only_raises):
                raise self.refusal(op)
            found = record.evaluate(*xs, **op.attrs)
            if record.unwritten:
                found = np.zeros_like(found)
            return list(found) if len(op.outputs) > 1 else [found]
        if record.stablehlo is not None:
            found = record.stablehlo(self, op, *xs)
        if found is NotImplemented and moves_its_first(record) and len(op.outputs) == 1:
            found = self.moved(op, *xs)
        if found is NotImplemented and record.lower is not None and not lowered:
            found = self.inlined(lambda *values: record.lower(op, *values), op.inputs, xs)
        if found is NotImplemented:
            raise self.refusal(op)
        return [self.as_typed(x, y) for x, y in
                zip(found if len(op.outputs) > 1 else [found], op.outputs, strict=True)]

    def as_typed(self, x, y: Value):
        """Return the result `x` of an op in the dtype that it has in the program."""
        dtype = getattr(y.type, "dtype", None)
        return self.tensor(x, dtype) if isinstance(x, Tensor) and dtype is not None else x

    def inlined(self, rule: Callable, inputs: Sequence[Value], xs: Sequence):
        """Return what the ops compute that rule(*values) emits; NotImplemented where it is None."""
        params = [Value(x.type, x.name) for x in inputs]
        block = Block(params)
        with Builder(block, self.line):
            made = rule(*(value(x.constant) if x.op is not None and x.op.name == "constant" else p
                          for x, p in zip(inputs, params)))
            if made is None:
                return NotImplemented
            block.yields = [value(made)]
        return self.run(block, xs, lowered=True)[0]

    def refusal(self, op: Op) -> NotKnownError:
        """Return the error that says that there is no such op, of Tensors."""
        return NotKnownError(f"{op.name} in StableHLO, which has no such operation", op.line,
                                "leave it to s2s.jit, or compute it before and pass it")

    # ------------------------------------------------------------------------------------- emitting

    def append(self, line: str) -> None:
        """Append one line of text."""
        self.lines.append("  " * self.depth + line)

    def fresh(self) -> str:
        """Return a new name, a number."""
        self.count += 1
        return f"%{self.count - 1}"

    def call(self, x: Tensor, name: str) -> None:
        """Call `x` what the program calls it, unless it has a name."""
        if name.isidentifier() and x.name[1:].isdigit() and x.name not in self.names:
            self.names[x.name] = self.unused(name)

    def unused(self, name: str) -> str:
        """Return a name like this one, which nothing has."""
        taken, k = set(self.names.values()), 0
        while (found := f"%{name}_{k}" if k else f"%{name}") in taken:
            k += 1
        return found

    def define(self, text: str, dtype: str, shape: Sequence[int]) -> Tensor:
        """Append `name = stablehlo.text`, the definition of a Tensor."""
        made = Tensor(self.fresh(), dtype, tuple(shape))
        self.append(f"{made.name} = stablehlo.{text}")
        return made

    def op(self, name: str, *xs: Tensor, dtype: str = "", shape: Sequence[int] | None = None,
           after: str = "") -> Tensor:
        """Emit an op of Tensors, `after` being its attributes: of the first one's dtype and shape,
        unless said.
        """
        dtype = dtype or xs[0].dtype
        shape = xs[0].shape if shape is None else tuple(shape)
        types = ", ".join(x.type for x in xs)
        made = self.define(f"{name} {', '.join(x.name for x in xs)}{after} : ({types}) -> "
                           f"{type_text(dtype, shape)}", dtype, shape)
        if name in ("add", "subtract") and all(x.name in self.bounds for x in xs):
            (a, b), (c, d) = (self.bounds[x.name] for x in xs)
            self.bounds[made.name] = (a + c, b + d) if name == "add" else (a - d, b - c)
        return made

    def tensor(self, x, dtype: str | None = None, shape: Sequence[int] | None = None) -> Tensor:
        """Return `x` as a Tensor, converted to `dtype` and broadcast to `shape`."""
        if isinstance(x, Tensor):
            return self.broadcast(self.converted(x, dtype or x.dtype), shape)
        if not isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
            raise NotKnownError(f"{x!r} where StableHLO needs numbers", self.line)
        array = np.asarray(x) if dtype is None else np.asarray(x).astype(dtype)
        if shape is not None and array.size == 1:
            array = np.broadcast_to(array.reshape(()), shape)
        return self.broadcast(self.constant(array), shape)

    def constant(self, array: np.ndarray) -> Tensor:
        """Return a known array as a Tensor, the same one where there is one."""
        key = array.dtype.name, array.shape, array.tobytes() if array.size else b""
        for known in self.constants:
            if key in known:
                return known[key]
        text = f"constant dense<{elements_text(array)}> : {type_text(key[0], array.shape)}"
        made = self.constants[-1][key] = self.define(text, key[0], array.shape)
        if key[0] == INTEGER and array.size:
            self.bounds[made.name] = int(array.min()), int(array.max())
        return made

    def converted(self, x: Tensor, dtype: str) -> Tensor:
        """Convert as NumPy does: numbers are true where they are not 0, complex ones lose their
        imaginary part.
        """
        if x.dtype == dtype:
            return x
        if dtype == "bool":
            return self.compare("NE", x, self.tensor(0, x.dtype, x.shape))
        if x.dtype.startswith("complex") and not dtype.startswith("complex"):
            x = self.op("real", x, dtype=part_dtype(x.dtype))
        return x if x.dtype == dtype else self.op("convert", x, dtype=dtype)

    def broadcast(self, x: Tensor, shape: Sequence[int] | None) -> Tensor:
        """Broadcast as NumPy does."""
        if shape is None or x.shape == tuple(shape):
            return x
        dims = list(range(len(shape) - len(x.shape), len(shape)))
        return self.op("broadcast_in_dim", x, shape=shape, after=f", dims = {dims}")

    def together(self, *xs, dtype: str | None = None) -> list[Tensor]:
        """Return values as Tensors of one shape, that to which they broadcast."""
        shape = np.broadcast_shapes(*map(np.shape, map(outline, xs)))
        return [self.tensor(x, dtype, shape) for x in xs]

    def compare(self, how: str, a: Tensor, b: Tensor) -> Tensor:
        """Compare two Tensors of one dtype and shape: how is LT, LE, GT, GE, EQ or NE."""
        kind = {"i": "SIGNED", "f": "FLOAT", "c": "FLOAT"}.get(np.dtype(a.dtype).kind, "UNSIGNED")
        made = Tensor(self.fresh(), "bool", a.shape)
        self.append(f"{made.name} = stablehlo.compare {how}, {a.name}, {b.name}, {kind} : "
                    f"({a.type}, {b.type}) -> {made.type}")
        return made

    def select(self, condition: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """Choose between two Tensors of one dtype and shape."""
        return self.op("select", condition, a, b, dtype=a.dtype, shape=a.shape)

    def reshape(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Return the elements of `x`, in their order, in another shape."""
        return x if x.shape == tuple(shape) else self.op("reshape", x, shape=shape)

    def reduce(self, x: Tensor, name: str, start, axes: Sequence[int]) -> Tensor:
        """Combine the elements of `x` along axes, by an op of two numbers that begins with `start`.
        """
        first = self.tensor(start, x.dtype, ())
        shape = [n for k, n in enumerate(x.shape) if k not in axes]
        return self.define(f"reduce({x.name} init: {first.name}) applies stablehlo.{name} across "
                           f"dimensions = {list(axes)} : ({x.type}, {first.type}) -> "
                           f"{type_text(x.dtype, shape)}", x.dtype, shape)

    def summed(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """Sum `x` along the axes along which something of this shape was broadcast to it."""
        extra = len(x.shape) - len(shape)
        axes = [k for k, n in enumerate(x.shape) if k < extra or shape[k - extra] == 1 != n]
        return self.reshape(self.reduce(x, "add", 0, axes), shape) if axes else x

    def pick(self, x: Tensor, places: np.ndarray) -> Tensor:
        """Return the elements of `x` that have these places in its order: by slices, transposes and
        broadcasts, where that is what they are.
        """
        if places.size == x.size and np.array_equal(places.ravel(), np.arange(x.size)):
            return self.reshape(x, places.shape)
        steps = steps_of(places)
        axes = None if steps is None else axes_of_steps(x.shape, places, steps)
        if axes is None:
            flat = self.reshape(x, (x.size,))
            return self.gather(flat, self.tensor(places.astype(INTEGER)))
        return self.view(x, np.unravel_index(int(places.flat[0]), x.shape), axes, places.shape)

    def view(self, x: Tensor, start: Sequence[int], axes: list[tuple[int, int] | None],
             shape: Sequence[int]) -> Tensor:
        """Return a strided view of `x`, whose axes are (axis of x, step), or None where it repeats.
        """
        steps = {axis: (step, n) for n, found in zip(shape, axes) if found is not None
                 for axis, step in [found]}
        bounds, lengths = [], []
        for k, first in enumerate(map(int, start)):
            step, n = steps.get(k, (1, 1))
            last = first + step * (n - 1)
            low, high = min(first, last), max(first, last) + 1
            bounds.append(f"{low}:{high}:{abs(step)}" if abs(step) != 1 else f"{low}:{high}")
            lengths.append(n)
        if tuple(lengths) != x.shape:
            x = self.op("slice", x, shape=lengths, after=f" [{', '.join(bounds)}]")
        if turned := [k for k, (step, _) in steps.items() if step < 0]:
            x = self.op("reverse", x, after=f", dims = {sorted(turned)}")
        kept = [found[0] for found in axes if found is not None]
        order = kept + [k for k in range(len(lengths)) if k not in kept]
        x = self.transpose(x, order)
        x = self.reshape(x, [n for n, found in zip(shape, axes) if found is not None])
        if x.shape == tuple(shape):
            return x
        dims = [k for k, found in enumerate(axes) if found is not None]
        return self.op("broadcast_in_dim", x, shape=shape, after=f", dims = {dims}")

    def transpose(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """Return `x` with its axes in another order."""
        if list(order) == list(range(len(x.shape))):
            return x
        return self.op("transpose", x, shape=[x.shape[k] for k in order],
                       after=f", dims = {list(order)}")

    def gather(self, flat: Tensor, places: Tensor) -> Tensor:
        """Return the elements of a vector at these places."""
        rank = len(places.shape)
        made = Tensor(self.fresh(), flat.dtype, places.shape)
        self.append(f'{made.name} = "stablehlo.gather"({flat.name}, {places.name}) <{{'
                    "dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], "
                    f"start_index_map = [0], index_vector_dim = {rank}>, slice_sizes = array<i64: "
                    f"1>}}> : ({flat.type}, {places.type}) -> {made.type}")
        return made

    def scatter(self, flat: Tensor, places: Tensor, updates: Tensor, name: str) -> Tensor:
        """Return a vector in which the op `name` has combined elements with updates at these
        places; without a name, updates are written there.
        """
        rank = len(places.shape)
        made, number = Tensor(self.fresh(), flat.dtype, flat.shape), type_text(flat.dtype, ())
        a, b, c = (self.fresh() for _ in range(3))
        self.append(f'{made.name} = "stablehlo.scatter"({flat.name}, {places.name}, '
                    f"{updates.name}) <{{scatter_dimension_numbers = #stablehlo.scatter<"
                    "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                    f"index_vector_dim = {rank}>}}> ({{")
        self.append(f"^bb0({a}: {number}, {b}: {number}):")
        if name:
            self.append(f"  {c} = stablehlo.{name} {a}, {b} : {number}")
        self.append(f"  stablehlo.return {c if name else b} : {number}")
        self.append(f"}}) : ({flat.type}, {places.type}, {updates.type}) -> {made.type}")
        return made

    def order(self, x: Tensor, axis: int) -> Tensor:
        """Return the places of the elements along an axis in increasing order, NaN last."""
        places = np.arange(x.shape[axis]).reshape([-1 if k == axis else 1
                                                   for k in range(len(x.shape))])
        numbers = self.tensor(places, INTEGER, x.shape)
        if np.dtype(x.dtype).kind == "f":  # a total order begins with the negative NaN
            x = self.select(self.compare("NE", x, x), self.tensor(np.nan, x.dtype, x.shape), x)
        name, less = self.fresh(), self.fresh()
        a, b, c, d = (Tensor(self.fresh(), dtype, ()) for dtype in (x.dtype,) * 2 + (INTEGER,) * 2)
        kind = {"f": "TOTALORDER", "i": "SIGNED"}.get(np.dtype(x.dtype).kind, "UNSIGNED")
        self.append(f'{name}:2 = "stablehlo.sort"({x.name}, {numbers.name}) <{{dimension = {axis} '
                    ": i64, is_stable = true}> ({")
        self.append(f"^bb0({', '.join(f'{v.name}: {v.type}' for v in (a, b, c, d))}):")
        self.append(f"  {less} = stablehlo.compare LT, {a.name}, {b.name}, {kind} : "
                    f"({a.type}, {b.type}) -> tensor<i1>")
        self.append(f"  stablehlo.return {less} : tensor<i1>")
        self.append(f"}}) : ({x.type}, {numbers.type}) -> ({x.type}, {numbers.type})")
        return Tensor(f"{name}#1", INTEGER, x.shape)

    def moved(self, op: Op, x: Tensor, *rest):
        """Emit an op that moves the elements of its first input, and may leave zeros: where it
        moves them, its record says.
        """
        if any(map(has_tensor, rest)) or not isinstance(x, Tensor):
            return NotImplemented
        places = op.record.evaluate(np.arange(1, x.size + 1).reshape(x.shape), *rest, **op.attrs)
        if np.asarray(places).dtype != INTEGER:
            return NotImplemented
        found = self.pick(x, np.maximum(places - 1, 0))
        if np.all(places):
            return found
        return self.select(self.tensor(places > 0), found, self.tensor(0, x.dtype, found.shape))

    # -------------------------------------------------------------------------------------- regions

    @contextmanager
    def region(self) -> Iterator[None]:
        """Append what is emitted inside to a region, whose constants are its own."""
        self.depth += 1
        self.constants.append({})
        try:
            yield
        finally:
            self.constants.pop()
            self.depth -= 1

    def captured(self, emit: Callable) -> tuple[object, list[str]]:
        """Return emit() and the lines that it has appended, which are taken away again."""
        before = len(self.lines)
        with self.region():
            found = emit()
        lines = self.lines[before:]
        del self.lines[before:]
        return found, lines

    def attempt(self, emit: Callable):
        """Return emit(), or its NotKnownError, after which the text is as it was."""
        before = self.state()
        try:
            return emit()
        except NotKnownError as error:
            self.go_back(before)
            return error

    def tried(self, emit: Callable):
        """Return emit(), after which the text is as it was."""
        before = self.state()
        try:
            return emit()
        finally:
            self.go_back(before)

    def state(self) -> tuple:
        """Return all that emitting changes."""
        return (len(self.lines), self.count, dict(self.names), dict(self.bounds), self.depth,
                self.said, [dict(known) for known in self.constants])

    def go_back(self, state: tuple) -> None:
        """Take away what has been emitted since."""
        count, *rest = state
        del self.lines[count:]
        (self.count, self.names, self.bounds, self.depth, self.said, self.constants) = rest

    def text(self, name: str, params: Sequence[Tensor], results: Sequence[Tensor]) -> str:
        """Return the module, whose function `main` has these parameters and results."""
        types = ", ".join(x.type for x in results)
        lines = [f"module @{name} {{",
                 f"  func.func public @main({', '.join(f'{x.name}: {x.type}' for x in params)}) -> "
                 f"({types}) {{", *self.lines,
                 f"    return {', '.join(x.name for x in results)} : {types}".replace("return  : ",
                                                                                      "return"),
                 "  }", "}"]
        return re.sub(r"%\d+\b", lambda found: self.names.get(found[0], found[0]),
                      "\n".join(lines)) + "\n"


def moves_its_first(record) -> bool:
    """Test whether an op moves elements of its first input, and of no other."""
    return len(record.moves) == 1 and record.moves[0] == 0


def outline(x):
    """Return an array of the shape of a value."""
    return x.hollow if isinstance(x, Tensor) else x


def part_dtype(dtype: str) -> str:
    """Return the dtype of the real and imaginary parts of complex numbers."""
    return np.zeros((), dtype).real.dtype.name


def has_tensor(x) -> bool:
    """Test whether a value is a Tensor, or has one inside."""
    if isinstance(x, Tensor):
        return True
    if isinstance(x, (list, tuple)):
        return any(map(has_tensor, x))
    return is_container(x) and any(map(has_tensor, form_of(x).members(x)))


def steps_of(places: np.ndarray) -> tuple[int, ...] | None:
    """Return by how much places grow along each axis, if that is the same everywhere."""
    if not places.size:
        return None
    first = (0,) * places.ndim
    steps = []
    for k, n in enumerate(places.shape):
        second = tuple(int(j == k) for j in range(places.ndim))
        steps.append(int(places[second] - places[first]) if n > 1 else 0)
    expected = places[first] + sum(step * np.arange(n).reshape((-1,) + (1,) * (places.ndim - 1 - k))
                                   for k, (step, n) in enumerate(zip(steps, places.shape)))
    return tuple(steps) if np.array_equal(np.broadcast_to(expected, places.shape), places) else None


def axes_of_steps(shape: Sequence[int], places: np.ndarray,
                  steps: Sequence[int]) -> list[tuple[int, int] | None] | None:
    """Return for each axis of `places` the axis of an array of `shape` along which it goes, and its
    step there; None for one along which nothing changes.  None where one goes along no axis.
    """
    strides = [int(np.prod(shape[k + 1:])) for k in range(len(shape))]
    start = np.unravel_index(int(places.flat[0]), shape)
    found: list[tuple[int, int] | None] = []
    for step, n in zip(steps, places.shape):
        if step == 0:
            found.append(None)
            continue
        fits = [(k, step // stride) for k, stride in enumerate(strides)
                if step % stride == 0 and all(f is None or f[0] != k for f in found)
                and 0 <= start[k] + (n - 1) * (step // stride) < shape[k]]
        if not fits:
            return None
        found.append(max(fits, key=lambda fit: strides[fit[0]]))
    return found


def elements_text(array: np.ndarray) -> str:
    """Return the elements of an array, as StableHLO writes them; one, where all are the same."""
    if not array.size:
        return ""
    raw = np.ascontiguousarray(array).reshape(-1)
    if raw.tobytes() == raw[:1].tobytes() * raw.size:
        return number_text(raw[0])

    def nested(part: np.ndarray) -> str:
        return (number_text(part[()]) if not part.ndim
                else f"[{', '.join(map(nested, part))}]")

    return nested(array)


def number_text(x) -> str:
    """Return one number, as StableHLO writes it: floats with a point, those that are not finite by
    their bits.
    """
    if isinstance(x, np.bool_):
        return str(bool(x)).lower()
    if isinstance(x, np.complexfloating):
        return f"({number_text(x.real)}, {number_text(x.imag)})"
    if isinstance(x, np.integer):
        return str(int(x))
    x = np.asarray(x)[()]
    if not np.isfinite(x):
        return f"0x{x.view(f'uint{8 * x.nbytes}'):0{2 * x.nbytes}X}"
    text = repr(float(x)) if x.dtype == np.float64 else str(x)
    digits, e, exponent = text.partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{e}{exponent}"


