"""Layout adapters: copy arguments that are not in C order, so that native code is compiled for that
order alone.

    x.T, x[::2], np.asfortranarray(x)     dispatcher ──C order──▶ code
                                                     ──other────▶ adapter: copies ──▶ the same code

Native code traverses arrays by rows. Strided rows are not vectorised, and in Fortran order each
element of a row is in another cache line: an elementwise gradient of a matrix took 5 to 13 times as
long in Fortran order as in C order, and each combination of layouts was compiled separately when it
was first met. An adapter (`door`) is a small function that copies, in blocks, those arguments that
the code traverses by rows (access_order.py), and calls the existing code. Arguments of products,
and those read by columns or in part, are not copied, and code is compiled for their layouts.
Read-only arguments are treated as writeable ones: native code writes into none.

Numba's dispatcher selects an adapter as the code for a layout, in C; calls in C order are
unchanged. The adapter calls the code through a symbol bound to its address, so that both can come
from the on-disk cache, and the code is not compiled a second time inside the adapter.

Arrays that overlap themselves (broadcast rows, sliding windows) are not copied: they may be any
number of times as large as their memory. The adapter raises, and such a call runs code compiled for
its layouts.

Considered: loop interchange according to strides: arguments in different orders have no good loop
order, and each result has one order, too; a copy by NumPy on the way in: each call would check
layouts, in Python; a copy in the function itself, which is then compiled for each layout as before.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from ...back.print.printer import Module
from ..intrinsics.element_access import field, item
from ..kernels.array_layout import copied
from ..numba_internals import cgutils, impl_ret_new_ref
from .access_order import read_in_rows

PREFIX = "s2s_behind_"  # prefix of symbols for code in this process


class OverlapsItself(Exception):
    """Raised for an array view whose elements share memory."""


def overlaps_itself(x: object) -> bool:
    """Whether `x` is an array with more elements than distinct addresses."""
    if not isinstance(x, np.ndarray) or not x.size:
        return False
    return sum((n - 1) * abs(step) for n, step in zip(x.shape, x.strides)) + x.itemsize < x.nbytes


def in_order(kinds: Sequence[types.Type], text: str, entry: str,
             count: int) -> tuple[types.Type, ...]:
    """The argument types that the code is compiled for, given arguments of types `kinds`; if they
    differ, an adapter converts.

    `text` is the code; its first `count` parameters are arguments, the others may be written.
    """
    if (not any(isinstance(kind, types.Array) and not is_plain(kind) for kind in kinds[:count])
        or not all(map(can_pass, kinds))):
        return tuple(kinds)
    rows = read_in_rows(text, entry, count)
    return tuple(wanted(kind, k in rows) if k < count else kind for k, kind in enumerate(kinds))


def is_plain(kind: types.Array) -> bool:
    return kind.layout == "C" and kind.mutable


def can_pass(kind: types.Type) -> bool:
    """Whether an adapter can pass on arguments of this type: not lists, not generators."""
    return (isinstance(kind, (types.Number, types.Boolean))
            or isinstance(kind, types.Array)
            and isinstance(kind.dtype, (types.Number, types.Boolean)))


def wanted(kind: types.Type, in_rows: bool) -> types.Type:
    """The type passed to the code for an argument of type `kind`, which it reads in rows, or not.
    """
    if not isinstance(kind, types.Array):
        return kind
    if in_rows and kind.ndim and kind.aligned:
        return types.Array(kind.dtype, kind.ndim, "C")
    return kind.copy(readonly=False)


def door(dispatcher: Callable, kinds: Sequence[types.Type], inside: Sequence[types.Type], text: str,
         identity: str, load: Callable) -> Callable:
    """The dispatcher of the adapter from arguments of types `kinds` to the code of `dispatcher` for
    types `inside`, which is compiled first.

    `identity` identifies the `text` of the code and its options; `load(module, own)` makes a
    dispatcher from a text and the objects that it names.
    """
    dispatcher.compile(tuple(inside))
    code = dispatcher.overloads[tuple(inside)]
    symbol = (PREFIX
              + hashlib.sha256("\0".join([identity, *map(str, inside)]).encode()).hexdigest()[:32])
    binding.add_symbol(symbol, code.library.get_pointer_to_function(code.fndesc.llvm_func_name))
    return load(Module(adapter_text(text, dispatcher.__name__, symbol), dispatcher.__name__),
                {symbol: calling(symbol, inside, code.signature.return_type),
                 f"{symbol}_code": code.library})  # which stays as long as the adapter


def adapter_text(text: str, entry: str, symbol: str) -> str:
    """The text of an adapter: check what the `entry` of the module `text` checks before copying,
    then call `symbol`.
    """
    tree = ast.parse(text)
    (function,) = (node
                   for node in tree.body
                   if isinstance(node, ast.FunctionDef) and node.name == entry)
    first = function.body[ast.get_docstring(function) is not None:]
    asked = itertools.takewhile(lambda stmt: isinstance(stmt, ast.If)
                                and isinstance(stmt.body[0], ast.Raise)
                                and isinstance(stmt.body[0].exc, ast.Name), first)
    call = ast.Call(ast.Name(symbol, ast.Load()),
                    [ast.Name(a.arg, ast.Load()) for a in function.args.args], [])
    made = ast.FunctionDef(entry, function.args, [*asked, ast.Return(call)],
                           function.decorator_list)
    imports = [stmt for stmt in tree.body if isinstance(stmt, ast.ImportFrom)]
    return ast.unparse(ast.fix_missing_locations(ast.Module([*imports, made], []))) + "\n"


def calling(symbol: str, inside: Sequence[types.Type], result: types.Type) -> Callable:
    """A native function that takes arrays in any layout, puts them in order and calls the code at
    `symbol`.
    """

    def typed(*given):
        def emit(context, builder, signature, args):
            for kind, of, array in zip(given, inside, args):
                if is_copied(kind, of):
                    stop_if_it_overlaps(context, builder, kind, array)
            made, handed = [], []
            for kind, of, array in zip(given, inside, args):
                if is_copied(kind, of):
                    new = copied(context, builder, kind, of, array).value
                    made.append((of, new))
                    handed.append(new)
                else:
                    handed.append(array)
            kind = context.call_conv.get_function_type(result, inside)
            function = cgutils.get_or_insert_function(builder.module, kind, symbol)
            status, returned = context.call_conv.call_function(builder, function, result, inside,
                                                               handed)
            for of, array in made:
                context.nrt.decref(builder, of, array)
            with builder.if_then(status.is_error, likely=False):
                context.call_conv.return_status_propagate(builder, status)
            return impl_ret_new_ref(context, builder, result, returned)

        return result(*given), emit

    names = ", ".join(f"a{k}" for k in range(len(inside)))
    return intrinsic(eval(f"lambda typingctx, {names}: typed({names})", {"typed": typed}))


def is_copied(kind: types.Type, inside: types.Type) -> bool:
    return isinstance(kind, types.Array) and kind.layout != inside.layout


def stop_if_it_overlaps(context, builder, kind: types.Array, array: ir.Value) -> None:
    """Raise OverlapsItself where the function of this name reports it."""
    shape, strides = (field(context, builder, kind, array, name) for name in ("shape", "strides"))
    size = field(context, builder, kind, array, "itemsize")
    word = size.type
    all_of_it, span = size, size
    for axis in range(kind.ndim):
        n, step = item(builder, shape, axis), item(builder, strides, axis)
        length = builder.select(builder.icmp_signed("<", step, word(0)), builder.neg(step), step)
        all_of_it = builder.mul(all_of_it, n)
        span = builder.add(span, builder.mul(builder.sub(n, word(1)), length))
    is_empty = builder.icmp_signed("==", all_of_it, word(0))
    with builder.if_then(builder.and_(builder.not_(is_empty),
                                      builder.icmp_signed("<", span, all_of_it)), likely=False):
        context.call_conv.return_user_exc(builder, OverlapsItself)
