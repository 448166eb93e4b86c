"""What ops of arrays are in StableHLO: indexing, reductions, products.

Indices that are slices and single positions are slices, dynamic where a position is computed; all
others are gathers and scatters of a vector, whose places are computed as NumPy's strides have it.
A position out of range, for which NumPy raises, is moved into the range, or nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...errors import UnsupportedError
from ...ir.graph import Op
from ..core.stablehlo_rules import result_dtype
from ..core.stablehlo_text import INTEGER, NotKnownError, Tensor, Text, outline
from .index_pattern import expand, paired

# ----------------------------------------------------------------------------------------- indexing


class Index:
    """The index of an access, entry by entry: known, or a Tensor in the place of an axis."""

    def __init__(self, text: Text, op: Op, shape: tuple[int, ...], operands: tuple):
        self.shape = shape
        self.tensors: dict[int, tuple[int, Tensor]] = {}  # by entry: its axis, and it
        self.entries: list = []
        masks = sum(np.ndim(outline(x)) - 1 for x in operands
                    if np.asarray(outline(x)).dtype == bool)
        for p, x in paired(expand(op.attrs["pattern"], len(shape) - masks), operands):
            axis = sum(np.ndim(e) if np.asarray(e).dtype == bool else 1
                       for e in self.entries if e is not None)
            if isinstance(p, str) and p != "i":
                if any(isinstance(bound, Tensor) for bound in x):
                    raise NotKnownError("a slice whose bounds depend on Tensors", op.line,
                                        "give it bounds that follow from shapes and from Python's "
                                        "numbers")
                self.entries.append(slice(*x))
            elif isinstance(x, Tensor):
                if x.dtype == "bool":
                    raise NotKnownError("a mask, of which only a run knows what it selects",
                                        op.line, "use np.where")
                self.tensors[len(self.entries)] = axis, x
                self.entries.append(np.zeros(x.shape, np.int64)[()])
            else:
                self.entries.append(x)

    def known(self, array: np.ndarray) -> np.ndarray:
        """What the index picks of an array, with 0 in the place of Tensors."""
        return array[tuple(self.entries)]

    @property
    def is_of_slices(self) -> bool:
        """Whether it is made of slices and single positions."""
        return all(e is None or isinstance(e, slice) or np.ndim(e) == 0 and not
                   isinstance(e, (bool, np.bool_)) for e in self.entries)

    @property
    def places(self) -> np.ndarray:
        """Where in the array's order its elements are, for 0 in the place of Tensors."""
        count = int(np.prod(self.shape))
        return np.asarray(self.known(np.arange(count).reshape(self.shape)))

    def starts(self, text: Text, block: list) -> list[Tensor]:
        """Where along each axis a block of these lengths begins: at Tensors, and where the known
        index begins; `block` gets the lengths.
        """
        starts, axis = [], 0
        for k, e in enumerate(self.entries):
            if e is None:
                continue
            n = self.shape[axis]
            if k in self.tensors:
                starts.append(in_range(text, self.tensors[k][1], n))
                block.append(1)
            elif isinstance(e, slice):
                r = range(*e.indices(n))
                low = min(r[0], r[-1]) if r else 0
                starts.append(text.tensor(low, INTEGER))
                block.append(max(r[0], r[-1]) - low + 1 if r else 0)
            else:
                starts.append(text.tensor(int(e) % n if n else 0, INTEGER))
                block.append(1)
            axis += 1
        return starts

    def inside(self) -> tuple:
        """The index of the same elements in the block that `starts` describes."""
        found, axis = [], 0
        for e in self.entries:
            if isinstance(e, slice):
                step = range(*e.indices(self.shape[axis])).step
                found.append(slice(None, None, step))
            else:
                found.append(None if e is None else 0)
            axis += e is not None
        return tuple(found)

    def all_places(self, text: Text, region: tuple[int, ...]) -> Tensor:
        """Where the elements are, as a Tensor of the shape of what the index picks."""
        base = self.places
        total = text.tensor(base.astype(INTEGER)) if base.any() else None
        for k, (axis, x) in self.tensors.items():
            stride = int(np.prod(self.shape[axis + 1:]))
            place = in_range(text, x, self.shape[axis])
            if stride != 1:
                place = text.op("multiply", place, text.tensor(stride, INTEGER, place.shape))
            # which element of x each element of the result uses
            count = x.size
            numbers = np.arange(count).reshape((count,) + (1,) * (len(self.shape) - axis - 1))
            wide = self.shape[:axis] + (count,) + self.shape[axis + 1:]
            entries = list(self.entries)
            entries[k] = np.arange(count).reshape(x.shape)[()]
            used = np.asarray(np.broadcast_to(numbers, wide)[tuple(entries)])
            place = text.pick(place, used)
            total = place if total is None else text.op("add", total, place)
        return text.tensor(0, INTEGER, region) if total is None else total


def in_range(text: Text, x: Tensor, n: int) -> Tensor:
    """A position, counted from the start where it is negative."""
    x = text.tensor(x, INTEGER)
    if text.bounds.get(x.name, (-1, 0))[0] >= 0:
        return x
    zero, count = (text.tensor(k, INTEGER, x.shape) for k in (0, n))
    return text.select(text.compare("LT", x, zero), text.op("add", x, count), x)


def read(text: Text, op: Op, x, *operands):
    """The rule of x[...]."""
    if not any(isinstance(o, Tensor) for o in operands):
        return NotImplemented  # it moves elements
    x = text.tensor(x)
    index = Index(text, op, x.shape, operands)
    shape = index.places.shape
    if 0 in shape:
        return text.tensor(0, x.dtype, shape)
    if not index.is_of_slices:
        places = index.all_places(text, shape)
        return text.gather(text.reshape(x, (x.size,)), places)
    lengths: list[int] = []
    starts = index.starts(text, lengths)
    block = dynamic_slice(text, x, starts, lengths)
    numbers = np.arange(block.size).reshape(block.shape)
    return text.pick(block, np.asarray(numbers[index.inside()]))


def dynamic_slice(text: Text, x: Tensor, starts: list[Tensor], lengths: list[int]) -> Tensor:
    """A block of x of these lengths."""
    if tuple(lengths) == x.shape:
        return x
    return text.op("dynamic_slice", x, *starts, shape=lengths, after=f", sizes = {lengths}")


def written(text: Text, op: Op, x, v, *operands):
    """The rule of x[...] = v, where x is what was there before."""
    return changed(text, op, x, v, operands, adds=False)


def added(text: Text, op: Op, x, v, *operands):
    """The rule of np.add.at."""
    return changed(text, op, x, v, operands, adds=True)


def changed(text: Text, op: Op, x, v, operands: tuple, adds: bool) -> Tensor:
    x = text.tensor(x, result_dtype(op))
    if len(operands) == 1 and isinstance(operands[0], Tensor) and operands[0].dtype == "bool":
        return masked(text, op, x, v, operands[0], adds)
    index = Index(text, op, x.shape, operands)
    places = index.places
    value = of_shape(text, v, x.dtype, places.shape)
    if not places.size:
        return x
    whole = index.is_of_slices and all(e.step in (None, 1) for e in index.entries
                                       if isinstance(e, slice))
    if whole:
        lengths: list[int] = []
        starts = index.starts(text, lengths)
        block = text.reshape(value, lengths)
        if adds:
            block = text.op("add", dynamic_slice(text, x, starts, lengths), block)
        if tuple(lengths) == x.shape:
            return block
        return text.op("dynamic_update_slice", x, block, *starts)
    flat = text.reshape(x, (x.size,))
    updates = text.reshape(value, (places.size,))
    if index.tensors:
        where = text.reshape(index.all_places(text, places.shape), (places.size,))
        found = (text.scatter(flat, where, updates, "add") if adds
                 else last_written(text, flat, where, updates))
    else:
        where = places.ravel()
        if not adds and np.unique(where).size < where.size:  # the last one stays
            kept = where.size - 1 - np.unique(where[::-1], return_index=True)[1]
            updates, where = text.pick(updates, kept), where[kept]
        found = text.scatter(flat, text.tensor(where.astype(INTEGER)), updates,
                             "add" if adds else "")
    return text.reshape(found, x.shape)


def of_shape(text: Text, v, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """What is written, broadcast to the shape of the place; NumPy drops leading axes of 1."""
    v = text.tensor(v, dtype)
    if len(v.shape) > len(shape):
        v = text.reshape(v, v.shape[len(v.shape) - len(shape):])
    return text.tensor(v, dtype, shape)


def last_written(text: Text, flat: Tensor, where: Tensor, updates: Tensor) -> Tensor:
    """A vector with updates at these places, the last one where several have one place: the
    greatest of their numbers is found first.
    """
    numbers = text.tensor(np.arange(updates.size))
    nobody = text.tensor(-1, INTEGER, flat.shape)
    last = text.scatter(nobody, where, numbers, "maximum")
    zero = text.tensor(0, INTEGER, flat.shape)
    new = text.gather(updates, text.op("maximum", last, zero))
    return text.select(text.compare("GE", last, zero), new, flat)


def masked(text: Text, op: Op, x: Tensor, v, mask: Tensor, adds: bool) -> Tensor:
    """x[mask] = v, or += v, for a v that is the same for all that the mask selects."""
    rest = len(x.shape) - len(mask.shape)
    if np.ndim(outline(v)) > rest or mask.shape != x.shape[:len(mask.shape)]:
        raise NotKnownError("a mask, of which only a run knows what it selects", op.line,
                            "use np.where")
    mask = text.reshape(mask, mask.shape + (1,) * rest)
    mask, v = text.tensor(mask, "bool", x.shape), text.tensor(v, x.dtype, x.shape)
    return text.select(mask, text.op("add", x, v) if adds else v, x)


def taken_along(text: Text, op: Op, x, places):
    """The rule of np.take_along_axis."""
    if not isinstance(places, Tensor):
        return NotImplemented
    x, axis = text.tensor(x), op.attrs["axis"]
    if axis is None:
        x, axis = text.reshape(x, (x.size,)), 0
    axis %= len(x.shape)
    shape = tuple(n if k == axis else x.shape[k] for k, n in enumerate(places.shape))
    if shape != places.shape:
        raise NotKnownError("np.take_along_axis that broadcasts", op.line, "broadcast before it")
    if 0 in shape:
        return text.tensor(0, x.dtype, shape)
    numbers = np.arange(x.size).reshape(x.shape)
    base = np.broadcast_to(np.take(numbers, [0], axis), shape)
    stride = int(np.prod(x.shape[axis + 1:]))
    place = in_range(text, places, x.shape[axis])
    place = text.op("multiply", place, text.tensor(stride, INTEGER, shape))
    place = text.op("add", place, text.tensor(base.astype(INTEGER)))
    return text.gather(text.reshape(x, (x.size,)), place)


# --------------------------------------------------------------------------------------- reductions


def axes_of(axis, rank: int) -> list[int]:
    """The axes that an `axis` argument names, counted from 0."""
    axes = range(rank) if axis is None else (axis,) if isinstance(axis, int) else axis
    return sorted(k % rank for k in axes) if rank else []


def extreme(name: str) -> Callable:
    """The rule of np.max and np.min, or of np.nanmax and np.nanmin."""
    rule = combined(*(("maximum", least) if name.endswith("max") else ("minimum", greatest)))
    if not name.startswith("nan"):
        return rule

    def of_others(text: Text, op: Op, x: Tensor) -> Tensor:
        if np.dtype(x.dtype).kind != "f":
            return rule(text, op, x)
        start = (least if name == "nanmax" else greatest)(x.dtype)
        is_nan = text.compare("NE", x, x)
        found = rule(text, op, text.select(is_nan, text.tensor(start, x.dtype, x.shape), x))
        if not isinstance(found, Tensor):
            return found
        axes = axes_of(op.attrs["axis"], len(x.shape))
        all_nan = text.reshape(text.reduce(is_nan, "and", True, axes), found.shape)
        return text.select(all_nan, text.tensor(np.nan, x.dtype, found.shape), found)

    return of_others


def combined(name: str, start) -> Callable:
    """The rule of a reduction by an op of two numbers, which begins with `start`, or start(dtype).
    """

    def rule(text: Text, op: Op, x: Tensor) -> Tensor:
        dtype = result_dtype(op)
        axes = axes_of(op.attrs["axis"], len(x.shape))
        if name in ("maximum", "minimum") and any(x.shape[k] == 0 for k in axes):
            return NotImplemented
        x = text.tensor(x, dtype)
        found = text.reduce(x, name, start(dtype) if callable(start) else start, axes)
        kept = [1 if k in axes else n for k, n in enumerate(x.shape)]
        return text.reshape(found, kept) if op.attrs.get("keepdims") else found

    return rule


def least(dtype: str):
    """The number that no number of this dtype is below."""
    kind = np.dtype(dtype).kind
    return False if kind == "b" else np.iinfo(dtype).min if kind in "iu" else -np.inf


def greatest(dtype: str):
    """The number that no number of this dtype is above."""
    kind = np.dtype(dtype).kind
    return True if kind == "b" else np.iinfo(dtype).max if kind in "iu" else np.inf


def first_extreme(name: str) -> Callable:
    """The rule of np.argmax and np.argmin: the first place of the extreme, or of a NaN."""

    def rule(text: Text, op: Op, x: Tensor) -> Tensor:
        axis, keepdims = op.attrs["axis"], op.attrs.get("keepdims")
        before = x.shape
        if axis is None:
            x = text.reshape(x, (x.size,))
        k, = axes_of(axis or 0, len(x.shape))
        if not x.shape[k]:
            return NotImplemented
        start = (least if name == "maximum" else greatest)(x.dtype)
        best = text.reduce(x, name, start, [k])
        dims = [j for j in range(len(x.shape)) if j != k]
        best = text.op("broadcast_in_dim", best, shape=x.shape, after=f", dims = {dims}")
        is_best = text.compare("EQ", x, best)
        if np.dtype(x.dtype).kind in "fc":
            is_best = text.op("or", is_best, text.compare("NE", x, x))
        numbers = np.arange(x.shape[k]).reshape([-1 if j == k else 1 for j in range(len(x.shape))])
        number = text.tensor(numbers, INTEGER, x.shape)
        beyond = text.tensor(x.shape[k], INTEGER, x.shape)
        found = text.reduce(text.select(is_best, number, beyond), "minimum",
                            greatest(INTEGER), [k])
        if keepdims:
            return text.reshape(found, [1 if axis is None or j == k else n
                                        for j, n in enumerate(before)])
        return found

    return rule


def running(name: str, start: float) -> Callable:
    """The rule of np.cumsum and np.cumprod: sums of 2, 4, 8 ... elements, from shifted ones."""

    def rule(text: Text, op: Op, x: Tensor) -> Tensor:
        axis, dtype = op.attrs["axis"], result_dtype(op)
        x = text.tensor(x, dtype)
        if axis is None:
            x = text.reshape(x, (x.size,))
        k, = axes_of(axis or 0, len(x.shape))
        reach = 1
        while reach < x.shape[k]:
            low = [reach * (j == k) for j in range(len(x.shape))]
            zeros = [0] * len(low)
            first = text.tensor(start, dtype, ())
            shifted = text.op("pad", x, first, shape=x.shape, after=f", low = {low}, high = "
                              f"{[-n for n in low]}, interior = {zeros}")
            x = text.op(name, x, shifted)
            reach *= 2
        return x

    return rule


def of_its_shape(text: Text, op: Op, x) -> np.ndarray:
    """The rule of np.ones_like and np.empty_like."""
    found = op.record.evaluate(outline(x), **op.attrs)
    return np.zeros_like(found) if op.record.unwritten else found


def spread_over(text: Text, op: Op, s: Tensor, like) -> Tensor:
    """The rule of full_like: a value, broadcast to the shape of another."""
    return text.tensor(s, result_dtype(op), np.shape(outline(like)))


def in_order(text: Text, op: Op, x: Tensor):
    """The rule of np.argsort, of real numbers: where several are equal, the first comes first."""
    axis = op.attrs["axis"]
    if x.dtype.startswith("complex") or axis is None:
        return NotImplemented
    return text.order(x, axis % len(x.shape))


def transformed(name: str) -> Callable:
    """The rule of a Fourier transform of the lengths that its operand has: the real one along the
    last axis that it names, the others along the rest.
    """

    def rule(text: Text, op: Op, x: Tensor, *lengths):
        axes, dtype, real = op.attrs["axes"], result_dtype(op), name in ("rfft", "irfft")
        axes = list(range(len(x.shape))) if axes is None else (
            [axes] if isinstance(axes, int) else list(axes))
        axes = [k % len(x.shape) for k in axes]
        sizes = [*lengths] or [x.shape[k] for k in axes[:-1]] + [
            2 * (x.shape[axes[-1]] - 1) if name == "irfft" else x.shape[axes[-1]]]
        wanted = [n // 2 + 1 if name == "irfft" and k == axes[-1] else n
                  for k, n in zip(axes, sizes)]
        if wanted != [x.shape[k] for k in axes]:
            return NotImplemented
        forward = name in ("fft", "rfft")
        # StableHLO divides by the count in the inverse, as norm="backward" does
        count = float(np.prod(sizes))
        power = {"ortho": 0.5, "forward": 1.0}.get(op.attrs["norm"], 0.0) * (-1 if forward else 1)
        steps = [(k, n, "FFT" if forward else "IFFT") for k, n in zip(axes, sizes)]
        if real:
            steps[-1] = (*steps[-1][:2], name.upper())
        for k, n, kind in reversed(steps) if forward else steps:
            last = len(x.shape) - 1
            turn = [j for j in range(len(x.shape)) if j != k] + [k]
            made = "float" if kind == "IRFFT" else "complex"
            if kind != "RFFT":
                x = text.tensor(x, f"complex{bits(dtype)}")
            shape = [x.shape[j] for j in turn]
            shape[last] = n // 2 + 1 if kind == "RFFT" else n
            part = f"float{bits(dtype) // 2}" if made == "float" else f"complex{bits(dtype)}"
            x = text.op("fft", text.transpose(x, turn), dtype=part, shape=shape,
                        after=f", type = {kind}, length = [{n}]")
            x = text.transpose(x, [turn.index(j) for j in range(len(turn))])
        return x if not power else text.op("multiply", x,
                                           text.tensor(count**power, x.dtype, x.shape))

    return rule


def bits(dtype: str) -> int:
    """Of a complex number of the precision of this dtype."""
    return {"float32": 64, "complex64": 64}.get(dtype, 128)


def lower_factor(text: Text, op: Op, a: Tensor) -> Tensor:
    """The rule of np.linalg.cholesky: NaN, where the matrix is not positive definite."""
    factor = text.op("cholesky", text.tensor(a, result_dtype(op)), after=", lower = true")
    kept = np.tri(a.shape[-1], dtype=bool)
    return text.select(text.tensor(kept, "bool", a.shape), factor,
                       text.tensor(0, factor.dtype, a.shape))


# ----------------------------------------------------------------------------- products and joining


def product(text: Text, op: Op, a, b) -> Tensor:
    """The rule of a @ b: matrices along the last two axes, all others broadcast."""
    dtype = result_dtype(op)
    if dtype == "bool":
        return NotImplemented
    a, b = text.tensor(a, dtype), text.tensor(b, dtype)
    rows = len(a.shape) > 1
    if len(b.shape) == 1:
        return contracted(text, a, b, [], [], [len(a.shape) - 1], [0])
    if not rows and len(b.shape) == 2:
        return contracted(text, a, b, [], [], [0], [0])
    stack = np.broadcast_shapes(a.shape[:-2] if rows else (), b.shape[:-2])
    count = len(stack)
    b = text.tensor(b, dtype, stack + b.shape[-2:])
    a = text.tensor(a, dtype, stack + (a.shape[-2:] if rows else a.shape))
    batch = list(range(count))
    return contracted(text, a, b, batch, batch, [len(a.shape) - 1], [count])


def contracted(text: Text, a: Tensor, b: Tensor, batch_a: list, batch_b: list, along_a: list,
               along_b: list) -> Tensor:
    """One dot_general: the axes in common first, then the others of a, then those of b."""
    shape = ([a.shape[k] for k in batch_a]
             + [n for k, n in enumerate(a.shape) if k not in batch_a + along_a]
             + [n for k, n in enumerate(b.shape) if k not in batch_b + along_b])
    batch = f", batching_dims = {batch_a} x {batch_b}" if batch_a else ""
    return text.op("dot_general", a, b, shape=shape,
                   after=f"{batch}, contracting_dims = {along_a} x {along_b}")


def dotted(text: Text, op: Op, a, b) -> Tensor:
    """The rule of np.dot: the last axis of a and the last but one of b, the others side by side."""
    dtype = result_dtype(op)
    a, b = text.tensor(a, dtype), text.tensor(b, dtype)
    if not (a.shape and b.shape):
        return text.op("multiply", *text.together(a, b))
    return contracted(text, a, b, [], [], [len(a.shape) - 1], [max(len(b.shape) - 2, 0)])


def outer_product(text: Text, op: Op, a, b) -> Tensor:
    """The rule of np.outer."""
    dtype = result_dtype(op)
    a, b = text.tensor(a, dtype), text.tensor(b, dtype)
    return contracted(text, text.reshape(a, (a.size,)), text.reshape(b, (b.size,)), [], [], [], [])


def joined(text: Text, op: Op, *parts) -> Tensor:
    """The rule of np.concatenate."""
    parts = [text.tensor(x, result_dtype(op)) for x in parts]
    k, = axes_of(op.attrs["axis"], len(parts[0].shape))
    shape = list(parts[0].shape)
    shape[k] = sum(x.shape[k] for x in parts)
    return text.op("concatenate", *parts, shape=shape, after=f", dim = {k}")


def stacked(text: Text, op: Op, *parts) -> Tensor:
    """The rule of np.stack."""
    return side_by_side(text, op, parts, op.attrs["axis"])


def nested(text: Text, op: Op, *leaves) -> Tensor:
    """The rule of np.array of a nested list of numbers, or of arrays of one shape."""
    found = side_by_side(text, op, leaves, 0)
    return text.reshape(found, (*op.attrs["shape"], *found.shape[1:]))


def side_by_side(text: Text, op: Op, parts: tuple, axis: int) -> Tensor:
    """Parts of one shape along a new axis."""
    dtype = result_dtype(op)
    shapes = {np.shape(outline(x)) for x in parts}
    if len(shapes) != 1:
        raise UnsupportedError("an array of parts of unlike shapes", op.line, "give them one shape")
    (shape,) = shapes
    k = axis % (len(shape) + 1)
    made = [text.reshape(text.tensor(x, dtype), shape[:k] + (1,) + shape[k:]) for x in parts]
    return text.op("concatenate", *made, shape=shape[:k] + (len(made),) + shape[k:],
                   after=f", dim = {k}")
