"""What workers exchange, in native code: the ops of ops/program/workers.py.

Each worker shows the others where its numbers lie, meets them, and reads what it needs; it may go
on once all have read.  A sum is taken lane by lane, in order, by every worker, so that all have the
same bits, however many they are; of many numbers each adds up its part, and copies the others'.

Considered: a slab of memory that all write to and read from, which is one copy more; sums in a
tree, whose order depends on the number of workers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload, register_jitable

from ...ops.program import workers as alone
from ..numba_internals import cgutils
from .meeting_point import (
    COUNT,
    LINE,
    MEET,
    NUMBER,
    OFFERS,
    PATIENCE,
    SHARED,
    TEAM,
    LeftAlone,
    WorkersDisagree,
    ready,
)

ready()
WORD = ir.IntType(64)
FEW = 4096  # numbers that each worker adds up by itself
BLOCK = 2048  # numbers that are added up before the next: they stay in the nearest cache
PLACE, SHAPE = range(2)  # words of an offer


# ------------------------------------------------------------------------------------------- words


def _external(builder, name: str, *args):
    type = ir.FunctionType(WORD, [WORD] * len(args))
    return builder.call(cgutils.get_or_insert_function(builder.module, type, name), args)


@intrinsic
def this_worker(typingctx):
    """The address of the row of this worker; 0 if it is alone."""
    return types.int64(), lambda context, builder, sig, args: _external(builder, TEAM)


@intrinsic
def meet(typingctx, shared, count, patience):
    """Wait for all workers; return whether one of them will not come."""
    return (types.int64(types.int64, types.int64, types.int64),
            lambda context, builder, sig, args: _external(builder, MEET, *args))


@intrinsic
def word(typingctx, address, k):
    """Word `k` at an address."""
    def read(context, builder, sig, args):
        place = builder.gep(builder.inttoptr(args[0], WORD.as_pointer()), [args[1]])
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(types.int64, types.int64), read


@intrinsic
def set_word(typingctx, address, k, x):
    """Write word `k` at an address."""
    def write(context, builder, sig, args):
        place = builder.gep(builder.inttoptr(args[0], WORD.as_pointer()), [args[1]])
        builder.store_atomic(args[2], place, "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), write


@intrinsic
def pointer(typingctx, address, like):
    """A pointer to numbers like those of the array `like`."""
    found = types.CPointer(like.dtype)
    return found(types.int64, like), lambda context, builder, sig, args: builder.inttoptr(
        args[0], context.get_value_type(found))


@register_jitable
def lanes_of(count, n, k):
    """The first lane of worker `k`, the one behind its last, and how many workers have lanes of
    their own.
    """
    busy = max(1, min(count, n))
    k = min(k, busy - 1)
    return k * n // busy, (k + 1) * n // busy, busy


@register_jitable
def show(me, place, shape):
    """Show the other workers an address, and meet them."""
    shared, count = word(me, SHARED), word(me, COUNT)
    mine = OFFERS + LINE * word(me, NUMBER)
    set_word(shared, mine + PLACE, place)
    set_word(shared, mine + SHAPE, shape)
    wait(me)
    for k in range(count):
        if word(shared, OFFERS + LINE * k + SHAPE) != shape:
            raise WorkersDisagree


@register_jitable
def wait(me):
    """Meet the other workers."""
    if meet(word(me, SHARED), word(me, COUNT), word(me, PATIENCE)) != 0:
        raise LeftAlone


@register_jitable
def shown(me, k):
    """The address that worker `k` shows."""
    return word(word(me, SHARED), OFFERS + LINE * k + PLACE)


# ------------------------------------------------------------------------------------------ numbers


@register_jitable
def added(a, b):
    return a + b


@register_jitable
def larger(a, b):
    """The larger, or NaN if one is."""
    return b if not b <= a and a == a else a


@register_jitable
def smaller(a, b):
    """The smaller, or NaN if one is."""
    return b if not b >= a and a == a else a


@functools.cache
def merging(merge: Callable) -> tuple[Callable, Callable]:
    """Two functions that write to `out` the rows of lanes, as long as `out`, merged in order: those
    of all workers, and those of one.
    """

    @register_jitable
    def together(me, x, out, n, by_lane):
        """The lanes of all workers, of which there are `n`, or one row of each worker."""
        count, k, m = word(me, COUNT), word(me, NUMBER), len(out)
        show(me, x.ctypes.data, 2 * m + by_lane)
        alone = m <= FEW
        start, stop = (0, m) if alone else (k * m // count, (k + 1) * m // count)
        for begin in range(start, stop, BLOCK):
            end, is_first = min(begin + BLOCK, stop), True
            for other in range(lanes_of(count, n, 0)[2]):
                low, high = lanes_of(count, n, other)[:2] if by_lane else (0, 1)
                rows = carray(pointer(shown(me, other), x), ((high - low) * m,))
                for first in range(0, (high - low) * m, m):
                    if is_first:
                        for j in range(begin, end):
                            out[j] = rows[first + j]
                    else:
                        for j in range(begin, end):
                            out[j] = merge(out[j], rows[first + j])
                    is_first = False
        wait(me)
        if not alone:
            show(me, out.ctypes.data, m)
            for other in range(count):
                if other != k:
                    part = carray(pointer(shown(me, other), x), (m,))
                    for j in range(other * m // count, (other + 1) * m // count):
                        out[j] = part[j]
            wait(me)

    @register_jitable
    def serial(x, out, n):
        """The `n` lanes of one worker."""
        m = len(out)
        for j in range(m):
            out[j] = x[j]
        for first in range(m, n * m, m):
            for j in range(m):
                out[j] = merge(out[j], x[first + j])

    return together, serial


@register_jitable
def gather(me, x, out, n, m):
    """Write to `out` the lanes of all workers, of `m` numbers each, one after another."""
    count = word(me, COUNT)
    show(me, x.ctypes.data, -1 - m)
    for other in range(lanes_of(count, n, 0)[2]):
        low, high, busy = lanes_of(count, n, other)
        rows = carray(pointer(shown(me, other), x), ((high - low) * m,))
        for j in range((high - low) * m):
            out[low * m + j] = rows[j]
    wait(me)


# ---------------------------------------------------------------------------------------- functions


def worker_lanes(x):
    """my_lanes(x)"""
    return alone.my_lanes(x)


def lanes_of_workers(x, n):
    """all_lanes(x, n)"""
    return alone.all_lanes(x, n)


def worker_lanes_in_place(x, n):
    """in_place_of_lanes(x, n)"""
    return alone.in_place_of_lanes(x, n)


def total_of_workers(x, n):
    """workers_total(x, n)"""
    return alone.workers_total(x, n)


def in_first_worker(x, n):
    """of_first_worker(x, n)"""
    return alone.of_first_worker(x, n)


def sum_over_workers(x, n):
    """lanes_sum(x, n)"""
    return alone.lanes_sum(x, n)


def max_over_workers(x, n):
    """lanes_max(x, n)"""
    return alone.lanes_max(x, n)


def min_over_workers(x, n):
    """lanes_min(x, n)"""
    return alone.lanes_min(x, n)


FUNCTIONS = {alone.mine: worker_lanes, alone.gathered: lanes_of_workers,
             alone.placed: worker_lanes_in_place, alone.total: total_of_workers,
             alone.of_first: in_first_worker, alone.summed: sum_over_workers,
             alone.largest: max_over_workers, alone.smallest: min_over_workers}


@overload(worker_lanes)
def _worker_lanes(x):
    def taken(x):
        me = this_worker()
        low, high = 0, len(x)
        if me != 0:
            low, high, _ = lanes_of(word(me, COUNT), len(x), word(me, NUMBER))
        return x[low:high]

    return taken


@overload(lanes_of_workers)
def _lanes_of_workers(x, n):
    def gathered(x, n):
        me = this_worker()
        out = np.empty((n, *x.shape[1:]), x.dtype)
        if me == 0:
            out[:] = x
        else:
            rows = np.ascontiguousarray(x)
            gather(me, rows, out.reshape(-1), n, out.size // max(n, 1))
        return out

    return gathered


@overload(worker_lanes_in_place)
def _worker_lanes_in_place(x, n):
    def placed(x, n):
        me = this_worker()
        out = np.zeros((n, *x.shape[1:]), x.dtype)
        low, high = 0, n
        if me != 0:
            low, high, _ = lanes_of(word(me, COUNT), n, word(me, NUMBER))
        out[low:high] = x
        return out

    return placed


@overload(total_of_workers)
def _total_of_workers(x, n):
    together, _ = merging(added)
    if not isinstance(x, types.Array):
        def number(x, n):
            me = this_worker()
            if me == 0:
                return x
            row = np.empty(1, type(x))
            row[0] = x
            out = np.empty_like(row)
            together(me, row, out, n, 0)
            return out[0]

        return number

    def total(x, n):
        me = this_worker()
        out = np.empty(x.shape, x.dtype)
        if me == 0:
            out[:] = x
        else:
            together(me, np.ascontiguousarray(x), out.reshape(-1), n, 0)
        return out

    return total


@overload(in_first_worker)
def _in_first_worker(x, n):
    if not isinstance(x, types.Array):
        def number(x, n):
            me = this_worker()
            return x if me == 0 or word(me, NUMBER) == 0 else type(x)(0)

        return number

    def first(x, n):
        me = this_worker()
        out = np.zeros(x.shape, x.dtype)
        if me == 0 or word(me, NUMBER) == 0:
            out[:] = x
        return out

    return first


def _over_workers(x, merge: Callable):
    together, serial = merging(merge)
    if x.ndim == 1:
        def number(x, n):
            me, out = this_worker(), np.empty(1, x.dtype)
            if n == 0:
                out[:] = 0
            elif me == 0:
                serial(np.ascontiguousarray(x), out, n)
            else:
                together(me, np.ascontiguousarray(x), out, n, 1)
            return out[0]

        return number

    def array(x, n):
        me, out = this_worker(), np.empty(x.shape[1:], x.dtype)
        if n == 0:
            out[:] = 0
        elif me == 0:
            serial(np.ascontiguousarray(x).reshape(-1), out.reshape(-1), n)
        else:
            together(me, np.ascontiguousarray(x), out.reshape(-1), n, 1)
        return out

    return array


@overload(sum_over_workers)
def _sum_over_workers(x, n):
    return _over_workers(x, added)


@overload(max_over_workers)
def _max_over_workers(x, n):
    return _over_workers(x, larger)


@overload(min_over_workers)
def _min_over_workers(x, n):
    return _over_workers(x, smaller)
