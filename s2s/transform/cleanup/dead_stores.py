"""Dead-store elimination in loops: drop writes to elements that nothing reads afterwards.

    >>> show(drop_dead_stores(read('''
    ... def f(y_bar: 'float64[n]', x: 'float64[n]'):
    ...     y_bar = y_bar.copy()
    ...     x_bar = np.zeros_like(x)
    ...     for i in range(len(x) - 1, -1, -1):
    ...         t = y_bar[i]
    ...         y_bar[i] = 0.0
    ...         x_bar[i] = x_bar[i] + t * np.cos(x[i])
    ...     return x_bar
    ... ''')))
    def f(y_bar, x):
        y_bar = y_bar.copy()
        x_bar = np.zeros_like(x)
        for i in range(len(x) - 1, -1, -1):
            t = y_bar[i]
            x_bar[i] = x_bar[i] + t * np.cos(x[i])
        return x_bar

The adjoint of `y[i] = v` clears y_bar[i], as the overwritten value does not contribute to the
result.  In a loop, or a loop nest, in which each trip accesses only an element of its own, nothing
reads the cleared element.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.graph import Function, Op, Readers, Value, readers_of, walk
from ...ir.substitute import substitute
from ...ops.arrays.index_pattern import paired


def drop_dead_stores(function: Function) -> Function:
    """Drop the writes of a loop's trips into elements that nothing else reads."""
    while True:
        readers = readers_of(function.block)
        same = {param: init for op in walk(function.block) if op.name == "for"
                for k in range(len(op.outputs))
                for param, init in _start_of_unread_carry(op, k, readers)}
        if not same:
            return function
        substitute(function.block, same)


def _start_of_unread_carry(op: Op, k: int, readers: Readers) -> Iterator[tuple[Value, Value]]:
    """Return the initial value of the carry `k` of a nest, if only the nest's trips read what they
    write into it.
    """
    if readers[op.outputs[k]]:
        return
    nest, init = [op], op.inputs[3 + k]
    params = []
    while True:
        inner = nest[-1]
        if inner.attrs["breaks"] or not _counts_from_zero(inner):
            return
        param, end = inner.blocks[0].params[1 + k], inner.blocks[0].yields[k]
        params.append(param)
        if end is param or end.op is None or end.op not in inner.blocks[0].ops:
            return
        if (end.op.name != "for" or readers[end] != [(None, inner.blocks[0])]
                or readers[param] != [(end.op, inner.blocks[0])]):
            break
        nest.append(end.op)
        k = end.op.outputs.index(end)
        if end.op.inputs[3 + k] is not param:
            return
    write = end.op
    index = (write.attrs.get("pattern"), write.inputs[2:])
    if write.name != "setitem" or write.inputs[0] is not param or not _own(index, nest):
        return
    if readers[end] != [(None, inner.blocks[0])] or any(not _reads(user, param, index)
                                                        and user is not write
                                                        for user, _ in readers[param]):
        return
    if write.inputs[1] is param or param in write.inputs[2:]:
        return
    inner.blocks[0].yields[k] = param
    yield from ((p, init) for p in params)


def _counts_from_zero(loop: Op) -> bool:
    """Test whether the loop's index is never negative: as a subscript it counts from the front."""
    lo, hi, step = (x.constant for x in loop.inputs[:3])
    if not isinstance(step, int) or isinstance(step, bool):
        return False
    return isinstance(lo, int) and lo >= 0 if step > 0 else isinstance(hi, int) and hi >= -1


def _reads(user: Op | None, param: Value, index: tuple) -> bool:
    """Test whether `user` reads the element at `index`, and nothing else of the array."""
    return (user is not None and user.name == "getitem" and user.inputs[0] is param
            and param not in user.inputs[1:] and (user.attrs["pattern"], user.inputs[1:]) == index)


def _own(index: tuple, nest: list[Op]) -> bool:
    """Test whether each trip of the nest has an element of its own: every counter is a subscript.
    """
    counters = {loop.blocks[0].params[0] for loop in nest}
    return counters <= {x for entry, x in paired(*index) if entry == "i"}
