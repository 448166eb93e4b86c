"""Ops that stay calls of BLAS, LAPACK or NumPy on arrays in memory.

Numba compiles some of them. The others are called in Python, from compiled code, through a function
of its own whose comment says so:

    def numpy_solve(a, b):
        # Numba does not know this: NumPy does it, called from compiled code
        with objmode(y='float64[:, :]'):
            y = np.linalg.solve(a, b)
        return y

So every op is supported; the reader of `.loops` sees which are slow.
"""

from __future__ import annotations

import ast
import linecache
import math
import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from ...errors import UnsupportedError
from ...ir.graph import Op, Value
from ...ir.types import Array, Generator, List, Scalar
from ...lazy_import import later
from ...ops.core.control import item_type
from ...ops.core.record import Record
from ...ops.math.special import is_scipys_of_complex
from ...ops.program.effects import Field, Operand, within
from ...ops.program.list_arrays import (
    native_array,
    native_concatenate,
    native_nested,
    native_stack,
    native_unstack,
    native_unstack_each,
)
from ...ops.program.list_ops import list_pop_at, native_pop_at
from ...ops.program.opaque_call import called, functions_in, objects_named
from ...ops.program.outside_writes import write_outside
from ..syntax.ast_builders import call
from ..syntax.unparse import expression_text

numba, scipy = later("numba"), later("scipy")

MANY_AXES = re.compile(r"np\.fft\.i?r?fft[2n]\(")
AS_PYTHON = ("float64", "int64", "complex128", "bool")
FLOATS = ("float32", "float64", "complex64", "complex128")

_made: dict[tuple, Record] = {}  # source text of the function -> the op that calls it


def is_opaque(op: Op) -> bool:
    """Whether `op` needs its array operands contiguous in memory."""
    return bool(op.record.contiguous)


def is_native(op: Op) -> bool:
    """Whether Numba compiles `op` unchanged: Note [Native code]."""
    record = op.record
    if record.native == "python" or is_scipys_of_complex(op) or (
            record is list_pop_at and not isinstance(item_type(op.inputs[0].type), Scalar)):
        return False
    if record.helper is None and any(isinstance(x.type, Generator) and x.type.legacy
                                     for x in op.inputs):
        return False
    arrays = [x for x in (*op.inputs, *op.outputs) if isinstance(x.type, Array)]
    if (not arrays or record.native == "compiled" or op.blocks or record.writes is not None
            or record.helper is not None or record.syntax is None):
        return True
    if record.native == "search":
        return isinstance(op.inputs[0].type, Array)
    if record.native == "matrix":
        dtypes = {x.type.dtype for x in arrays}
        return len(dtypes) == 1 and dtypes <= set(FLOATS) and all(x.type.rank <= 2 for x in arrays)
    return False


def python_call(op: Op) -> Record:
    """An op that calls NumPy for `op`, with the same inputs and outputs."""
    if op.name == "list_stack":
        item = op.inputs[0].type.item
        return (native_array if isinstance(item, Scalar) else native_nested
                if isinstance(item, List) else native_stack)
    if op.record is list_pop_at:
        return native_pop_at
    if op.name == "list_concatenate":
        return native_concatenate
    if op.name == "list_unstack":
        return native_unstack if op.attrs["depth"] == 1 else native_unstack_each
    names = [f"x{k}" if len(op.inputs) > 1 else "x" for k in range(len(op.inputs))]
    operands = [ast.parse(_of_its_dtype(n, x), mode="eval").body for n, x in zip(names, op.inputs)]
    call = ast.unparse(ast.fix_missing_locations(op.record.syntax(*operands, **op.attrs)))
    # NumPy allocates an array for each axis, SciPy one: it takes 0.75 of the time for 64 x 64
    # numbers, 0.4 for 256 x 256.
    if MANY_AXES.match(call):
        call = call.replace("np.fft.", "scipy.fft.", 1)
    if functions_in(op):
        why = getattr(op.attrs["like"], "why", "")
        raise UnsupportedError(
            f"{called(op.attrs['function'])}, which s2s does not read{f' ({why})' if why else ''}, "
            "is handed a function in native code", op.line,
            "write the solver in Python that s2s reads, or call this without jit")
    objects = objects_named(op) if op.record.calls_by_name else []
    who = "Python" if objects else "SciPy" if call.startswith("scipy.") else "NumPy"
    name = (f"python_{called(objects[0])}" if objects
            else f"{who.lower()}_{op.name.replace('.', '_').strip('_')}")
    is_contiguous = op.record.contiguous == "all"
    if is_contiguous and op.output.type.rank > 1:
        call = f"np.ascontiguousarray({call})"
    types = [t if isinstance(y.type, Generator) else repr(t)
             for y, t in ((y, numba_type(y, is_contiguous)) for y in op.outputs)]
    ys = ["y"] if len(types) == 1 else [f"y{k}" for k in range(len(types))]
    text = (f"def {{name}}({', '.join(names)}):\n"
            f"    # Numba does not know this: {who} does it, called from compiled code\n"
            f"    with objmode({', '.join(f'{y}={t}' for y, t in zip(ys, types))}):\n"
            f"        {', '.join(ys)}{' = ' if ys else ''}{call}\n"
            f"    return {', '.join(ys)}\n")
    record = _call_record(text, name, partial(op.record.evaluate, **op.attrs),
                      lambda *xs, **attrs: op.output.type if len(ys) == 1
                      else [y.type for y in op.outputs], op.record.pure, objects)
    record.helper.asks_for = call.partition("(")[0]
    return record


def _of_its_dtype(name: str, x: Value) -> str:
    """Python source for an operand passed as a Python number, with its dtype restored."""
    if not isinstance(x.type, Scalar) or x.type.weak or x.type.dtype in AS_PYTHON:
        return name
    return f"np.{x.type.dtype}({name})"


def outward_call(op: Op) -> Record:
    """An op that does in Python what `op` does: it prints, or notes what is to be written."""
    if op.record is write_outside:
        return write_call(op)
    names = [x.name if x.name not in ("", "format", "repr", "str", "ascii")
             and [y.name for y in op.inputs].count(x.name) == 1 else f"x{k}"
             for k, x in enumerate(op.inputs)]
    shown = [ast.parse(print_operand(n, x, k, op), mode="eval").body
             for k, (n, x) in enumerate(zip(names, op.inputs))]
    text = (f"def {{name}}({', '.join(names)}):\n"
            f"    with objmode():\n"
            f"        {expression_text(Formats().visit(op.record.syntax(*shown, **op.attrs)))}\n")
    return _call_record(text, "print_out", None, lambda *xs, **attrs: [], pure=False,
                        outward=True)


def write_call(op: Op) -> Record:
    """An op that has the write `op` noted, of numbers and arrays."""
    names = [f"x{k}" if len(op.inputs) > 1 else "x" for k in range(len(op.inputs))]
    given = [x if not isinstance(y.type, Scalar) or y.type.weak
             else f"np.{'bool_' if y.type.dtype == 'bool' else y.type.dtype}({x})"
             for x, y in zip(names, op.inputs)]
    noted = op.attrs["write"].deferred
    text = (f"def {{name}}({', '.join(names)}):\n"
            f"    # written when the call has ended\n"
            f"    with objmode():\n"
            f"        {called(noted)}({', '.join(given)})\n")
    return _call_record(text, f"write_{called(noted)}", None, lambda *xs, **attrs: [], pure=False,
                        calls=[noted], outward=True)


class Formats(ast.NodeTransformer):
    """Rewrites f"{x:>4d}" as f"{format(x, '>4d')}": Numba does not know the first."""

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        self.generic_visit(node)
        shown = (node.value if node.conversion == -1
                 else call({"s": "str", "r": "repr", "a": "ascii"}[chr(node.conversion)],
                            node.value))
        spec = node.format_spec
        if spec is not None and all(isinstance(part, ast.Constant) for part in spec.values):
            spec = ast.Constant("".join(part.value for part in spec.values))
        return ast.FormattedValue(shown if spec is None else call("format", shown, spec), -1, None)


def print_operand(name: str, x: Value, k: int, op: Op) -> str:
    """Python source for an operand of `print`, which compiled code passes as a Python number."""
    if not isinstance(x.type, Scalar) or x.type.weak or (x.type.dtype in AS_PYTHON
                                                         and k in shown_by_str(op)):
        return name
    return f"np.{'bool_' if x.type.dtype == 'bool' else x.type.dtype}({name})"


def shown_by_str(op: Op) -> set[int]:
    """The operands of a `print` shown by str(), which is the same for np.float64 and float."""
    templates = [t for item in op.attrs["items"] for t in within(item)]
    plain = [t.content for t in templates if isinstance(t, Field)
             and t.conversion in (-1, ord("s"))]
    return {t.index for t in (*op.attrs["items"], *plain) if isinstance(t, Operand)}


def _call_record(text: str, stem: str, evaluate, infer, pure: bool, calls: Sequence = (),
                 outward: bool = False) -> Record:
    """The op that calls the function that `text` defines, which calls the objects `calls`.

    Each module numbers those of one stem anew (back/print/printer.py).
    """
    key = text, *map(id, calls)
    if key not in _made:
        name = f"{stem}__{len(_made)}"
        function = _function(text.replace("{name}", name, 1), name)
        function.stem, function.calls = stem, tuple(calls)
        _made[key] = Record(name, evaluate=evaluate,
                            infer=infer, pure=pure, outward=outward, helper=function,
                            syntax=lambda *xs, **attrs: ast.Call(ast.Name(name, ast.Load()),
                                                                 list(xs), []))
    return _made[key]


def numba_type(x: Value, contiguous: bool = False) -> str:
    """Numba's name of the type of `x`, `contiguous` if it is an array."""
    match x.type:
        case Array(dtype, dims):
            return (f"{'boolean' if dtype == 'bool' else dtype}"
                    f"[{', '.join(':' * len(dims))}{':1' if contiguous else ''}]")
        case Scalar(dtype):
            return "boolean" if dtype == "bool" else dtype
        case Generator(legacy):
            return "random_state_type" if legacy else "generator_type"
    return "pyobject"


def _function(text: str, name: str):
    """The function that `text` defines, with a source that the printer finds."""
    filename = f"<s2s {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"objmode": numba.objmode, "np": np, "math": math, "scipy": scipy,
                 "__name__": "s2s", "generator_type": numba.typeof(np.random.default_rng(0)),
                 "random_state_type": None}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]
