"""Functions of complex numbers in native code: calls of NumPy's own inner loops on one number.

Numba's tanh(400+1j) is nan, its exp(1000+0j) inf+nanj, its cosh and sinh likewise, and some lose
half of their digits near 0, or the signs of zeros. NumPy calls C's `ctanh` and its like where a C
library has them right, and replaces them where not. So native code calls the inner loops of NumPy's
ufuncs: `void loop(char **args, npy_intp *dimensions, npy_intp *steps, void *data)` of the public
structure PyUFuncObject (numpy/ufuncobject.h), which need neither Python nor its lock. Compiled
results then equal interpreted ones in every bit, at special values, huge ones and on both sides of
each branch cut, on every platform; it is also less to compile than Numba's functions, which are
Python.

Considered: functions of our own with the tables of C99's Annex G, some 400 lines, that would agree
with one C library and not with another; C's functions themselves, which return a structure, in
registers or in memory depending on the platform.

The addresses are valid in this process. Cached code refers to them by symbols, which `provide`
defines before linking. They are used in generated code only (element_access.py); exported files use
Numba's functions. Sums, products, squares and absolute values stay a few instructions, for LLVM to
vectorise, and so do quotients, with NumPy's meaning: Numba's `/` is Python's and raises (divisions
of Python numbers were checked before: back/arrays/python_errors.py). exp of moderate arguments is
three calls of libm, as in C libraries, without the detour through memory: 14 ns instead of 21, in
single precision 6 instead of 43.
"""

from __future__ import annotations

import cmath
import ctypes
import functools
import math
import operator
import sys
from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import binding, ir
from numba import types

from ..numba_internals import InsertValue, cgutils

# symbols: s2s_numpy_loop_tanh_D, and s2s_numpy_data_tanh_D for what that loop is given
PREFIX = "s2s_numpy"
PLAIN = {types.complex64: 80.0, types.complex128: 700.0}  # exp of less is neither inf nor subnormal
LETTERS = {types.complex64: "F", types.complex128: "D"}
FUNCTIONS = {np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.sqrt, np.power,
             np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan,
             np.arcsinh, np.arccosh, np.arctanh, np.reciprocal, np.sign}
MEANT = {operator.pow: np.power, operator.ipow: np.power, operator.truediv: np.divide,
         operator.itruediv: np.divide, cmath.exp: np.exp, cmath.log: np.log, cmath.log10: np.log10,
         cmath.sqrt: np.sqrt, cmath.sin: np.sin, cmath.cos: np.cos, cmath.tan: np.tan,
         cmath.sinh: np.sinh, cmath.cosh: np.cosh, cmath.tanh: np.tanh, cmath.asin: np.arcsin,
         cmath.acos: np.arccos, cmath.atan: np.arctan, cmath.asinh: np.arcsinh,
         cmath.acosh: np.arccosh, cmath.atanh: np.arctanh}
# where Python's function recovers infinities that NumPy's loses
PRODUCTS = {operator.mul, operator.imul} if sys.version_info < (3, 14) else set()
WORD = ir.IntType(64 if ctypes.sizeof(ctypes.c_ssize_t) == 8 else 32)  # npy_intp
BYTES = cgutils.voidptr_t


class UFunc(ctypes.Structure):
    """The head of a PyUFuncObject, the same in NumPy 1 and 2."""

    _fields_ = (("object", ctypes.c_byte * object.__basicsize__),
                *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
                ("functions", ctypes.POINTER(ctypes.c_void_p)),
                ("data", ctypes.POINTER(ctypes.c_void_p)), ("ntypes", ctypes.c_int))


def of_complex(context, function: Callable, signature) -> Callable | None:
    """The emitter of `function` for complex numbers where it differs from Numba's, as
    elements.short returns it.
    """
    kind = signature.return_type
    if function in PRODUCTS and kind in LETTERS and all(t == kind for t in signature.args):
        return lambda builder, args, loc=None: multiplied(context, builder, kind, *args)
    function = MEANT.get(function, function)
    if (kind not in LETTERS or not isinstance(function, np.ufunc)
        or not all(isinstance(t, types.Number) for t in signature.args)):
        return None
    if (function is not np.divide
        and (function not in FUNCTIONS or loop_of(function.__name__, LETTERS[kind]) is None)):
        return None
    emit = {np.divide: divided, np.power: raised, np.exp: exponential}.get(function,
                                                                           functools.partial(
                                                                               called, function))

    def compute(builder, args, loc=None):
        return emit(context, builder, kind,
                    *(context.cast(builder, x, t, kind) for x, t in zip(args, signature.args)))

    return compute


def multiplied(context, builder, kind: types.Type, a: ir.Value, b: ir.Value) -> ir.Value:
    """a * b, which Numba would compile as a separate function."""
    a_, b_, made = (context.make_complex(builder, kind, a), context.make_complex(builder, kind, b),
                    context.make_complex(builder, kind))
    made.real = builder.fsub(builder.fmul(a_.real, b_.real), builder.fmul(a_.imag, b_.imag))
    made.imag = builder.fadd(builder.fmul(a_.real, b_.imag), builder.fmul(a_.imag, b_.real))
    return made._getvalue()


def of_real(context, builder, kind: types.Type, x: ir.Value) -> ir.Value:
    """A real number as a complex one, recognised again by `is_real`."""
    return builder.insert_value(ir.Constant(context.get_value_type(kind),
                                            [ir.Constant(x.type, 0.0)] * 2), x, 0)


def is_real(z: ir.Value) -> bool:
    return (isinstance(z, InsertValue) and list(z.indices) == [0]
            and isinstance(z.operands[0], ir.Constant) and isinstance(z.operands[0].constant, list)
            and z.operands[0].constant[1].constant == 0.0)


def length(context, builder, kind: types.Complex, z: ir.Value) -> ir.Value:
    """abs(z) without branches, to one unit in the last place: hypot is a call of libm and takes 5
    ns, this 1 ns.

    Where a square would overflow, underflow or lose digits, both parts are scaled first.
    """
    z_ = context.make_complex(builder, kind, z)
    a, b = (size(builder, x) for x in (z_.real, z_.imag))
    real = a.type
    digits, most = (53, 1023) if kind == types.complex128 else (24, 127)
    large, small = 2.0 ** (most // 2 - 1), 2.0 ** (digits - most // 2)
    longer = builder.select(builder.fcmp_ordered(">", a, b), a, b)
    is_large, is_small = (builder.fcmp_ordered(">", longer, real(large)),
                          builder.fcmp_ordered("<", longer, real(small)))
    down, up = 2.0 ** -(most // 2 + 2), 2.0 ** (most // 2 + digits)

    def scaled(x: ir.Value, of_large: float, of_small: float) -> ir.Value:
        return builder.fmul(x,
                            builder.select(is_large, real(of_large),
                                           builder.select(is_small, real(of_small), real(1.0))))

    p, q = (scaled(x, down, up) for x in (a, b))
    root = builder.call(builder.module.declare_intrinsic("llvm.sqrt", [real]),
                        [builder.fadd(builder.fmul(p, p), builder.fmul(q, q))])
    infinite = builder.or_(*(builder.fcmp_ordered("==", x, real(math.inf)) for x in (a, b)))
    return builder.select(infinite, real(math.inf), scaled(root, 1 / down, 1 / up))


def divided_by_real(context, builder, kind: types.Type, a: ir.Value, b: ir.Value) -> ir.Value:
    """The divisor that `divided` uses where the imaginary part of b is 0.0: the branch for a flat
    b, and 0.0 / b gets the sign of b.
    """
    a_, made = context.make_complex(builder, kind, a), context.make_complex(builder, kind)
    by, zero = b.operands[1], ir.Constant(a_.real.type, 0.0)
    ratio = builder.call(
        builder.module.declare_intrinsic("llvm.copysign", [zero.type],
                                         ir.FunctionType(zero.type, [zero.type] * 2)), [zero, by])
    scale, is_zero = builder.fdiv(zero.type(1.0), by), builder.fcmp_ordered("==", by, zero)
    parts = (builder.fadd(a_.real, builder.fmul(a_.imag, ratio)),
             builder.fsub(a_.imag, builder.fmul(a_.real, ratio)))
    made.real, made.imag = (builder.select(is_zero, builder.fmul(x, zero.type(math.inf)),
                                           builder.fmul(part, scale))
                            for x, part in zip((a_.real, a_.imag), parts))
    return made._getvalue()


def divided(context, builder, kind: types.Type, a: ir.Value, b: ir.Value) -> ir.Value:
    """a / b, as NumPy divides: Smith's algorithm (Communications of the ACM 5:435, 1962), without
    branches.

    Division by 0 multiplies both parts by inf.
    """
    if is_real(b):
        return divided_by_real(context, builder, kind, a, b)
    a_, b_, made = (context.make_complex(builder, kind, a), context.make_complex(builder, kind, b),
                    context.make_complex(builder, kind))
    real = a_.real.type
    sizes = [size(builder, x) for x in (b_.real, b_.imag)]
    is_steep = builder.not_(builder.fcmp_ordered(">=", *sizes))
    is_zero = builder.and_(*(builder.fcmp_ordered("==", x, real(0.0)) for x in sizes))

    def swapped(x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
        return builder.select(is_steep, y, x), builder.select(is_steep, x, y)

    (longer, shorter), (p, q) = swapped(b_.real, b_.imag), swapped(a_.real, a_.imag)
    ratio = builder.fdiv(shorter, longer)
    scale = builder.fdiv(real(1.0), builder.fadd(longer, builder.fmul(shorter, ratio)))
    parts = (builder.fadd(p, builder.fmul(q, ratio)),
             builder.fsub(*swapped(q, builder.fmul(p, ratio))))
    made.real, made.imag = (builder.select(is_zero, builder.fmul(x, real(math.inf)),
                                           builder.fmul(part, scale))
                            for x, part in zip((a_.real, a_.imag), parts))
    return made._getvalue()


def size(builder, x: ir.Value) -> ir.Value:
    """abs(x) of a real number."""
    return builder.call(builder.module.declare_intrinsic("llvm.fabs", [x.type]), [x])


def raised(context, builder, kind: types.Type, a: ir.Value, b: ir.Value) -> ir.Value:
    """a ** b; a square is a product, which LLVM sees if the exponent is known."""
    exponent = context.make_complex(builder, kind, b)
    is_two = builder.and_(builder.fcmp_ordered("==", exponent.real, exponent.real.type(2.0)),
                          builder.fcmp_ordered("==", exponent.imag, exponent.imag.type(0.0)))
    return either(builder, is_two,
                  lambda: context.get_function(operator.mul, kind(kind, kind))(builder, [a, a]),
                  lambda: called(np.power, context, builder, kind, a, b))


def exponential(context, builder, kind: types.Type, z: ir.Value) -> ir.Value:
    """exp(z) = exp(x) * (cos(y) + j sin(y)) for z = x + yj, where it neither overflows nor is nan.
    """
    z_, part = context.make_complex(builder, kind, z), kind.underlying_float
    x, y, real = z_.real, z_.imag, z_.real.type

    def of_parts() -> ir.Value:
        exp, cos, sin = (context.get_function(f, part(part))(builder, [of])
                         for f, of in ((math.exp, x), (math.cos, y), (math.sin, y)))
        made = context.make_complex(builder, kind)
        made.real, made.imag = builder.fmul(exp, cos), builder.fmul(exp, sin)
        return made._getvalue()

    is_plain = builder.and_(builder.fcmp_ordered("<", size(builder, x), real(PLAIN[kind])),
                            builder.fcmp_ordered("<", size(builder, y), real(math.inf)))
    return either(builder, is_plain, of_parts, lambda: called(np.exp, context, builder, kind, z))


def either(builder, condition: ir.Value, first: Callable[[], ir.Value],
           second: Callable[[], ir.Value]) -> ir.Value:
    """A branch: the value of `first` where the condition holds, else of `second`."""
    ways = []
    with builder.if_else(condition) as branches:
        for branch, compute in zip(branches, (first, second)):
            with branch:
                ways.append((compute(), builder.block))
    found = builder.phi(ways[0][0].type)
    for value, block in ways:
        found.add_incoming(value, block)
    return found


def called(function: np.ufunc, context, builder, kind: types.Type, *xs: ir.Value) -> ir.Value:
    """Call NumPy's inner loop on one number in memory."""
    name, letter = function.__name__, LETTERS[kind]
    places = [cgutils.alloca_once(builder, x.type) for x in (*xs, xs[0])]
    for place, x in zip(places, xs):
        builder.store(x, place)
    addresses = _in_memory(builder, BYTES, [builder.bitcast(place, BYTES) for place in places])
    steps = _in_memory(builder, WORD, [WORD(context.get_abi_sizeof(x.type)) for x in (*xs, xs[0])])
    loop = cgutils.get_or_insert_function(builder.module,
                                          ir.FunctionType(ir.VoidType(),
                                                          [BYTES.as_pointer(), WORD.as_pointer(),
                                                           WORD.as_pointer(), BYTES]),
                                          symbol("loop", name, letter))
    data = _data(builder, name, letter)
    provide([loop.name])
    builder.call(loop, [addresses, _in_memory(builder, WORD, [WORD(1)]), steps, data],
                 attrs=("nounwind",))
    return builder.load(places[-1])


def _data(builder, name: str, letter: str) -> ir.Value:
    """The data pointer of that loop, often the function that it calls."""
    if not loop_of(name, letter)[1]:
        return ir.Constant(BYTES, None)
    of = symbol("data", name, letter)
    provide([of])
    return builder.module.globals.get(of) or ir.GlobalVariable(builder.module, BYTES.pointee, of)


def _in_memory(builder, kind: ir.Type, values: Sequence[ir.Value]) -> ir.Value:
    array = cgutils.alloca_once(builder, kind, size=len(values))
    for k, value in enumerate(values):
        builder.store(value, builder.gep(array, [ir.Constant(ir.IntType(32), k)]))
    return array


# ------------------------------------------------------------------------------------------ symbols


def symbol(part: str, name: str, letter: str) -> str:
    return f"{PREFIX}_{part}_{name}_{letter}"


@functools.cache
def loop_of(name: str, letter: str) -> tuple[int, int] | None:
    """The addresses of NumPy's inner loop of this name for these dtypes, and of its data; None if
    NumPy has none.
    """
    ufunc = getattr(np, name)
    of = UFunc.from_address(id(ufunc))
    if (of.nin, of.nout, of.nargs, of.ntypes) != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        return None
    k = ufunc.types.index(f"{letter * ufunc.nin}->{letter}")
    loop = of.functions[k]
    return (loop, of.data[k] or 0 if of.data else 0) if loop else None


def provide(symbols: Sequence[str]) -> None:
    """Define those of the symbols that are NumPy's inner loops."""
    for each in symbols:
        if each.startswith(PREFIX):
            part, name, letter = each[len(PREFIX) + 1:].split("_")
            loop, data = loop_of(name, letter)
            binding.add_symbol(each, loop if part == "loop" else data)
