"""A loop in parts: `in_parts(kernel, parts, trips, arguments)`, as compiled code and as Python.

    def f_part(part, start, stop, x, y):            y = np.empty(len(x))
        for i in range(start, stop):                in_parts(f_part, parts_of(len(x), 9), len(x), (x, y))
            y[i] = x[i] * x[i]

How many parts there are follows from the number of trips and the work of one, never from the number of threads:
what the parts have added up is then added in their order, and is the same to the last bit however many threads there
are, and whether or not the pool is busy elsewhere.

Note [Work]
Work is counted in operations on numbers (back/parts.py), some 0.4 ns each.  A part is worth a few times what it
costs to wake a thread; there are at most MOST parts, several for each thread, because trips are not alike.  Of those that each
add into arrays of their own there are at most FEW: what is counted is what a loop may do, many times what it does where
its inner loops are short, and made and added up these arrays are in any case.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from ..back.work import LIBRARIES
from . import hand_out
from .unshared import promised

RAISED = "a part of a loop raised"
GRAIN = 1 << 16  # operations in a part, at least: 25 us or so
MOST = 64  # parts
FEW = 16  # parts with arrays of their own
GATHER = 64.0  # operations of a part for each element of the arrays that it adds into: making and adding up one is some six


def parts_of(trips: int, work: float, size: int = 0) -> int:
    """In how many parts to make so many trips of so much work.

    Each part adds into an array of `size` elements of its own: making and adding these up is to be small beside it.
    """
    least = max(GRAIN, GATHER * size)
    return int(max(1.0, min(max(trips, 0) * 1.0 * work / least, trips * 1.0, float(FEW if size else MOST))))


def natural(n: int) -> int:
    """`n`, of which compiled code then knows that it is not negative: an index that may be negative counts from the end,
    which keeps LLVM from vectorising."""
    return n


def apart(array):
    """`array`, which in a kernel shares no memory with its other arguments: compiled code then knows (runtime/unshared.py)."""
    return array


def in_parts(kernel, parts: int, trips: int, arguments: tuple) -> None:
    """Call `kernel(part, start, stop, *arguments)` for each part of the trips; compiled code shares them among threads."""
    trips = max(trips, 0)
    for part in range(parts):
        kernel(part, part * trips // parts, (part + 1) * trips // parts, *arguments)


@type_callable(parts_of)
def _type_parts_of(context):
    def typed(trips, work, size=types.intp):
        if isinstance(trips, types.Integer) and isinstance(work, types.Number):
            return types.intp
    return typed


@type_callable(in_parts)
def _type_in_parts(context):
    def typed(kernel, parts, trips, arguments):
        if isinstance(kernel, types.Dispatcher) and isinstance(arguments, types.BaseTuple):
            context.resolve_function_type(kernel, _argument_types(arguments), {})  # compiles it
            return types.none
    return typed


def _argument_types(arguments: types.BaseTuple) -> tuple:
    return (types.intp, types.intp, types.intp, *map(types.unliteral, arguments.types))


@type_callable(natural)
def _type_natural(context):
    return lambda n: types.intp if isinstance(n, types.Integer) else None


@lower_builtin(natural, types.Any)
def _lower_natural(context, builder, sig, args):
    n = context.cast(builder, args[0], sig.args[0], types.intp)
    return builder.and_(n, ir.Constant(n.type, (1 << (n.type.width - 2)) - 1))


@type_callable(apart)
def _type_apart(context):
    return lambda array: array if isinstance(array, types.Array) else None


@lower_builtin(apart, types.Array)
def _lower_apart(context, builder, sig, args):
    return promised(context, builder, sig.args[0], args[0])


@lower_builtin(parts_of, types.Any, types.Any)
@lower_builtin(parts_of, types.Any, types.Any, types.Any)
def _lower_parts_of(context, builder, sig, args):
    real = ir.DoubleType()
    trips, work, *size = (context.cast(builder, x, t, types.float64) for x, t in zip(args, sig.args))

    def smaller(a, b):
        return builder.select(builder.fcmp_ordered("<", a, b), a, b)

    def larger(a, b):
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    least = ir.Constant(real, float(GRAIN))
    if size:
        least = larger(least, builder.fmul(size[0], ir.Constant(real, GATHER)))
    found = smaller(smaller(builder.fdiv(builder.fmul(trips, work), least), trips), ir.Constant(real, float(FEW if size else MOST)))
    return builder.fptosi(larger(found, ir.Constant(real, 1.0)), context.get_value_type(types.intp))


@lower_builtin(in_parts, types.Dispatcher, types.Any, types.Any, types.BaseTuple)
def _lower_in_parts(context, builder, sig, args):
    hand_out.ready()
    _, parts, trips, arguments = args
    kernel, kind = sig.args[0], sig.args[3]
    word = ir.IntType(64)
    parts, trips = (context.cast(builder, x, t, types.int64) for x, t in zip((parts, trips), sig.args[1:3]))
    trips = builder.select(builder.icmp_signed("<", trips, ir.Constant(word, 0)), ir.Constant(word, 0), trips)
    entry = _entry(context, builder, kernel, kind)
    holder = cgutils.alloca_once_value(builder, arguments)
    run = cgutils.get_or_insert_function(builder.module, ir.FunctionType(word, [word] * 5), "s2s_in_parts")
    blas = ir.Constant(word, int(calls_blas(kernel.dispatcher.py_func)))
    status = builder.call(run, [builder.ptrtoint(entry, word), builder.ptrtoint(holder, word), parts, trips, blas])
    with builder.if_then(builder.icmp_signed("!=", status, ir.Constant(word, 0)), likely=False):
        # the interpreted form says what it was, and where (compile.py, Note [Where an error came from])
        context.call_conv.return_user_exc(builder, RuntimeError, (RAISED,))
    return context.get_dummy_value()


def _entry(context, builder, kernel: types.Dispatcher, kind: types.BaseTuple) -> ir.Function:
    """The kernel as a function of the address of its arguments, a part, and the trips of it: whether it raised."""
    wanted = _argument_types(kind)
    compiled = kernel.dispatcher.get_compile_result(types.void(*wanted))
    context.add_linking_libs([compiled.library])
    word = ir.IntType(64)
    entry = ir.Function(builder.module, ir.FunctionType(word, [cgutils.voidptr_t, word, word, word]),
                        builder.module.get_unique_name(f"{compiled.fndesc.llvm_func_name}.entry"))
    entry.linkage = "internal"
    inner = ir.IRBuilder(entry.append_basic_block())
    address, *place = entry.args
    packed = inner.load(inner.bitcast(address, context.get_value_type(kind).as_pointer()))
    given = [context.cast(inner, x, t, u) for x, t, u in zip(cgutils.unpack_tuple(inner, packed, len(kind)), kind.types, wanted[3:])]
    status, _ = context.call_internal_no_propagate(inner, compiled.fndesc, compiled.signature, [*place, *given])
    inner.ret(inner.zext(status.is_error, word))
    return entry


def calls_blas(function) -> bool:
    """Whether `function` calls what may start threads of its own."""
    return any(name in ("linalg", "dot") or name.startswith(LIBRARIES) for name in function.__code__.co_names)
