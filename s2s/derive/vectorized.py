"""vectorize: apply a function of core arrays to stacks of them, broadcast against one another.

    f(x, y) with "(n),(n)->()"    becomes    f_vectorized(x, y), with loop axes in front of x and y

One batch per loop axis, the last one innermost.  An argument is batched along an axis unless it
lacks it, or has length 1 there and another has not.  A signature is in NumPy's gufunc notation,
with sizes as names or numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .. import pipeline
from ..errors import TypeMismatchError, UnsupportedError
from ..ir.builder import Builder
from ..ir.graph import Block, Function, Meeting, Value
from ..ir.reemit import emit_block
from ..ir.types import Array, Extent, Scalar, Tuple, Type, Unknown
from ..ops.arrays.axes import squeeze
from ..ops.core.batch_rules import same_core
from ..ops.core.record import array_type, dims_of, value
from ..ops.core.shape import length
from .assemble import describe_arguments, place

LIST = r"\(\s*(?:\w+\s*(?:,\s*\w+\s*)*)?\)"
LISTS = rf"\s*{LIST}\s*(?:,\s*{LIST}\s*)*"
AGREE = "give core dimensions of one name the same length"


@dataclass(frozen=True)
class Signature:
    """The names of the core dimensions of arguments and results."""

    inputs: tuple[tuple[str, ...], ...]
    outputs: tuple[tuple[str, ...], ...]
    text: str

    @staticmethod
    def parse(text: str) -> Signature:
        """Read a signature; TypeMismatchError where it is none."""
        if not isinstance(text, str) or not re.fullmatch(rf"{LISTS}->{LISTS}", text):
            raise TypeMismatchError(f"{text!r} is no signature", None,
                                    'write one like "(n,m),(m)->(n)"')
        sides = [tuple(tuple(re.findall(r"\w+", dims)) for dims in re.findall(LIST, side))
                 for side in text.split("->")]
        return Signature(*sides, re.sub(r"\s", "", text))


def looped_positions(t, types: Sequence[Type]) -> list[int]:
    """Return which arguments are vectorized: none of those excluded, and no objects."""
    names, excluded = t.parameter_names(len(types)), t.options["excluded"]
    numbers = (Scalar, Array, Unknown, Tuple)
    found = [k for k, (name, type) in enumerate(zip(names, types))
             if k not in excluded and name not in excluded and isinstance(type, numbers)]
    signature = t.options["signature"]
    if signature is None:
        return found
    count = len(signature.inputs)
    if len(found) > count:  # parameters that have defaults are shared by all
        parameters = [*t.signature.parameters.values()]
        found = [k for k in found if k in found[:count] or len(parameters) != len(types)
                 or parameters[k].default is parameters[k].empty]
    if len(found) != count:
        raise TypeMismatchError(f"{t.name} has {len(found)} arguments to vectorize, and the "
                                f"signature {signature.text} has {count}", None,
                                "write one list of core dimensions for each, or exclude arguments")
    return found


def core_dimensions(t, types: Sequence[Type]) -> dict[int, tuple[str, ...]]:
    """Return the names of the core dimensions of each argument that is vectorized."""
    positions, signature = looped_positions(t, types), t.options["signature"]
    return dict(zip(positions, signature.inputs if signature else [()] * len(positions)))


def stacked_arguments(t, args: Sequence, types: Sequence[Type]) -> Iterator[tuple]:
    """Yield the place of each call of the function inside, and its arguments."""
    cores = core_dimensions(t, types)
    shapes = {k: np.shape(args[k])[:np.ndim(args[k]) - len(core)] for k, core in cores.items()}
    whole = np.broadcast_shapes(*shapes.values())
    stacks = {k: np.broadcast_to(args[k], whole + np.shape(args[k])[len(shapes[k]):])
              for k in cores}
    for index in np.ndindex(whole):
        yield index, [stacks[k][index] if k in cores else x for k, x in enumerate(args)]


def vectorized(t, types: Sequence[Type]) -> Function:
    """Transform f(*xs) -> *ys to f_vectorized(*xs) -> *ys, with loop axes on what is not excluded.
    """
    signature, names = t.options["signature"], t.parameter_names(len(types))
    cores = core_dimensions(t, types)
    types = [_of_known_rank(type, cores[k]) if k in cores else type for k, type in enumerate(types)]
    for k in cores:
        _require_core(types[k], cores[k], names[k])
    lane = [array_type(type.dtype, type.dims[len(type.dims) - len(cores[k]):])
            if k in cores and isinstance(type, Array) else type for k, type in enumerate(types)]
    inner = t.inner_function(lane)
    name = inner.name
    unequal = _require_results(inner, signature, cores) if signature is not None else []
    looped = {k: dims_of(types[k])[:len(dims_of(types[k])) - len(cores[k])] for k in cores}
    count = max(map(len, looped.values()), default=0)
    batched = {k: _batched_axes(k, looped, count) for k in cores}
    for axis in range(count - 1, -1, -1):
        axes = [0 if axis in batched.get(k, ()) else None for k in range(len(types))]
        stack = [array_type(type.dtype,
                            tuple(d for n, d in enumerate(looped[k], count - len(looped[k]))
                                  if n >= axis and n in batched[k]) + dims_of(lane[k]))
                 if k in cores and isinstance(type, Array) else type
                 for k, type in enumerate(types)]
        inner = pipeline.batch(inner, axes, 0, stack, each_writes=True)
    made = _outermost(name, inner, types, names, signature, cores, looped, batched, count, unequal)
    return describe_arguments(pipeline.finish(made))


def _outermost(title: str, inner: Function, types: Sequence[Type], names: Sequence[str],
               signature: Signature | None, cores: dict, looped: dict, batched: dict,
               count: int, unequal: Sequence[tuple]) -> Function:
    """Emit the function of all arguments: what is broadcast loses its axes of length 1, and core
    dimensions of one name are compared, also those of results that are `unequal` in one lane.
    """
    params = [Value(type, name) for type, name in zip(types, names)]
    captured = [Value(p.type, p.name) for p in inner.params[len(types):]]
    block, meetings = Block([*params, *captured]), []
    with Builder(block):
        seen: dict[str, tuple] = {}
        for k in cores:
            for axis, name in enumerate(cores[k], -len(cores[k])):
                dim, size = types[k].dims[axis], length(params[k], axis=axis % len(types[k].dims))
                if name.isdigit():
                    seen.setdefault(name, (int(name), value(int(name))))
                known, first = seen.setdefault(name, (dim, size))
                if known != dim:
                    _require_equal(name, known, dim)
                    same_core(first, size, name=name)
                    meetings.append(Meeting(known, dim, False, None, AGREE))
        args = [x if k not in batched else squeeze(x, gone) if (gone := tuple(
            n - (count - len(looped[k])) for n in range(count - len(looped[k]), count)
            if n not in batched[k])) else x for k, x in enumerate(params)]
        block.yields = emit_block(inner.block, [*args, *captured], {})
        ends = [[length(y, axis=k) for k in range(len(dims_of(y.type)))] for y in block.yields]
        for k, axis, name, other in unequal:
            first = seen[name][1] if other is None else ends[other[0]][other[1]]
            same_core(first, ends[k][axis], name=name)
    made = inner.remade(block, name=f"{title}_vectorized",
                        meetings=(*meetings, *inner.meetings))
    how = f', with the signature "{signature.text}"' if signature else ""
    made.doc = f"{title} for stacks of arguments{place(inner)}{how}."
    return made


def _of_known_rank(type: Type, core: tuple[str, ...]) -> Type:
    """Return `type`, or before any call that of an array with one loop axis."""
    if not isinstance(type, Unknown):
        return type
    return Array(type.dtype or "float64", (Extent("loop", 0, False),
                                           *(Extent(f"core.{name}", 0, False) for name in core)))


def _require_core(type: Type, core: tuple[str, ...], name: str) -> None:
    """Refuse an argument without the core dimensions that the signature has for it."""
    if isinstance(type, Tuple):
        raise UnsupportedError(f"vectorize over {name}, which is {type}", None,
                               "pass an array, or exclude it")
    if len(dims_of(type)) < len(core):
        raise TypeMismatchError(f"{name} is {type}, and has the core dimensions "
                                f"({', '.join(core)})", None, "pass an array with these axes")


def _require_equal(name: str, a, b) -> None:
    """Refuse core dimensions that are known to differ; they do not broadcast."""
    if a == b:
        return
    known = [isinstance(d, int) for d in (a, b)]
    if all(known) or any(d == 1 and not isinstance(other, int) and not other.may_be_one
                         for d, other in ((a, b), (b, a))):
        raise TypeMismatchError(f"the core dimension {name} has the lengths {a} and {b}", None,
                                AGREE)


def _require_results(inner: Function, signature: Signature,
                     cores: dict[int, tuple[str, ...]]) -> list[tuple]:
    """Refuse a function whose results are not those of the signature.

    Return the axes of results that may not be as long as others of their name: the number of the
    result, the axis from the end, the name, and the same of the first result that has it; None for
    an argument.
    """
    known: dict[str, tuple] = {}
    for k, core in cores.items():
        for name, dim in zip(core, dims_of(inner.params[k].type)):
            known.setdefault(name, (dim, None))
    unequal = []
    if len(inner.results) != len(signature.outputs):
        raise TypeMismatchError(f"{inner.name} has {len(inner.results)} results, and the signature "
                                f"{signature.text} {len(signature.outputs)}", None,
                                "write one list of core dimensions for each result")
    for k, (y, core) in enumerate(zip(inner.results, signature.outputs)):
        if isinstance(y.type, (Scalar, Array)) and len(dims_of(y.type)) != len(core):
            raise TypeMismatchError(f"a result of {inner.name} is {y.type}, and the signature "
                                    f"{signature.text} has ({', '.join(core)}) for it", None,
                                    "write one name for each of its axes")
        for axis, (name, dim) in enumerate(zip(core, dims_of(y.type)), -len(core)):
            first, other = known.setdefault(name, (dim, (k, axis)))
            if first != dim:
                _require_equal(name, first, dim)
                unequal.append((k, axis, name, other))
    return unequal


def _batched_axes(k: int, looped: dict, count: int) -> set[int]:
    """Return along which loop axes, counted for all arguments, argument `k` is batched."""
    own = {n: d for n, d in enumerate(looped[k], count - len(looped[k]))}

    def is_one(n: int) -> bool:
        return all(dims[n - count] == 1 for dims in looped.values() if len(dims) >= count - n)

    return {n for n, d in own.items() if d != 1 or is_one(n)}
