"""Ops that the loop form keeps: they take arrays in memory and are done by BLAS, LAPACK or NumPy.

Numba compiles some of them.  What it does not know is called in Python, from compiled code, through a
function of its own that says so:

    def numpy_solve(a, b):
        # Numba does not know this: NumPy does it, called from compiled code
        with objmode(y='float64[:, :]'):
            y = np.linalg.solve(a, b)
        return y

So no op is ever missing; the reader of `.loops` sees which one is slow.
"""

from __future__ import annotations

import ast
import linecache
import math
from functools import partial

import numpy as np
import scipy.special
from numba import objmode

from ..ir.graph import Op, Value
from ..ir.types import Array, Scalar
from ..ops.lists import native_concatenate, native_stack
from ..ops.record import Record

FOUND = frozenset({"nonzero", "flatnonzero", "searchsorted", "digitize", "bincount"})  # in data, by Numba's own
KEPT = FOUND | {"matmul", "solve", "inv", "det", "cholesky", "sign_of_det", "log_of_det", "argsort", "tuple", "call",
                "tape_push", "unique", "isin", "histogram", "lexsort", "delete", "insert", "list_of", "list_full", "list_set",
                "list_add", "list_insert", "list_total", "list_unstack", "list_cut"}
NATIVE = frozenset({"tuple", "item", "call", "tape_new", "tape_push", "tape_pop", "tape_len", "getitem", "setitem",
                    "additem", "length", "size", "shape", "ndim", "constant", "undefined", "stop_gradient", "copy", "list_of", "list_full", "list_get",
                    "list_unstack", "list_sum", "list_total"})
OF_LISTS = {"list_stack": native_stack, "list_concatenate": native_concatenate}  # what Numba knows of no list of arrays
OF_MATRICES = frozenset({"matmul", "solve", "inv", "det", "cholesky", "sign_of_det", "log_of_det"})
FLOATS = ("float32", "float64", "complex64", "complex128")

_made: dict[str, Record] = {}  # text of the function -> the op that calls it


def is_opaque(op: Op) -> bool:
    """Whether `op` needs its array operands in memory, in one piece."""
    return op.name in KEPT


def is_native(op: Op) -> bool:
    """Whether Numba compiles `op` as it stands."""
    arrays = [x for x in (*op.inputs, *op.outputs) if isinstance(x.type, Array)]
    if not arrays or op.name in NATIVE or op.blocks or op.record.writes is not None or op.record.helper is not None:
        return True
    if op.record.syntax is None:
        return True
    if op.name in OF_LISTS:
        return isinstance(op.inputs[0].type.item, Scalar)
    if op.name in FOUND:
        return isinstance(op.inputs[0].type, Array)
    if op.name in OF_MATRICES:
        dtypes = {x.type.dtype for x in arrays}
        return len(dtypes) == 1 and dtypes <= set(FLOATS) and all(x.type.rank <= 2 for x in arrays)
    return False


def in_python(op: Op) -> Record:
    """An op that calls NumPy for `op`, of the same inputs and outputs."""
    if op.name in OF_LISTS:
        return OF_LISTS[op.name]
    names = [f"x{k}" if len(op.inputs) > 1 else "x" for k in range(len(op.inputs))]
    call = ast.unparse(ast.fix_missing_locations(op.record.syntax(*(ast.Name(n, ast.Load()) for n in names), **op.attrs)))
    name = f"numpy_{op.name.replace('.', '_').strip('_')}"
    types = [numba_type(y) for y in op.outputs]
    ys = ["y"] if len(types) == 1 else [f"y{k}" for k in range(len(types))]
    text = (f"def {{name}}({', '.join(names)}):\n"
            f"    # Numba does not know this: NumPy does it, called from compiled code\n"
            f"    with objmode({', '.join(f'{y}={t!r}' for y, t in zip(ys, types))}):\n"
            f"        {', '.join(ys)} = {call}\n"
            f"    return {', '.join(ys)}\n")
    if text not in _made:
        taken = {record.name for record in _made.values()}
        spelled = name if name not in taken else next(
            f"{name}_{k}" for k in range(1, len(taken) + 2) if f"{name}_{k}" not in taken)
        _made[text] = Record(spelled, evaluate=partial(op.record.evaluate, **op.attrs),
                             infer=lambda *xs, **attrs: [y.type for y in op.outputs] if len(ys) > 1 else op.output.type,
                             syntax=lambda *xs, **attrs: ast.Call(ast.Name(spelled, ast.Load()), list(xs), []),
                             helper=_function(text.format(name=spelled), spelled), pure=op.record.pure)
    return _made[text]


def numba_type(x: Value) -> str:
    """Numba's name of the type of `x`."""
    match x.type:
        case Array(dtype, dims):
            return f"{'boolean' if dtype == 'bool' else dtype}[{', '.join(':' * len(dims))}]"
        case Scalar(dtype):
            return "boolean" if dtype == "bool" else dtype
    return "pyobject"


def _function(text: str, name: str):
    """The function that `text` defines, whose source the printer finds."""
    filename = f"<s2s {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"objmode": objmode, "np": np, "math": math, "scipy": scipy, "__name__": "s2s"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]
