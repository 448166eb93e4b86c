"""Run a parallel loop in parts: `in_parts(kernel, parts, trips, arguments)`, in compiled code and
in Python.

    def f_part(part, start, stop, x, y):       y = np.empty(len(x))
        for i in range(start, stop):           in_parts(f_part, parts_of(len(x), 9), len(x), (x, y))
            y[i] = x[i] * x[i]

The number of parts follows from the number of trips and the work of one, never from the number of
threads: partial sums are added in the order of the parts, so the result is the same to the last bit
however many threads there are, and whether or not the pool is busy.

Note [Work]
Work is counted in operations on numbers (back/parallel/outline_parallel.py), some 0.4 ns each. A
part is worth a few times the cost of waking a thread; there are at most MOST parts, several for
each thread, because trips differ. Loops whose parts add into private arrays have at most FEW parts:
the counted work is an upper bound, far too high where inner loops are short, but the private arrays
are always allocated and added up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, overload, type_callable

from ...back.parallel.cost import LIBRARIES
from ..debug.sanitizer import check_lengths
from ..intrinsics.element_access import field, item
from ..intrinsics.noalias_alloc import with_noalias
from ..numba_internals import RETCODE_OK, ArgPacker, cgutils, impl_ret_borrowed
from . import pool_native

RAISED = "a part of a loop raised"
GRAIN = 1 << 16  # fewest operations of a part: about 25 us
MOST = 64  # most parts
FEW = 16  # most parts with private arrays
# operations of a part per element of its private arrays: allocating and adding up one takes
# about six
GATHER = 64.0


def parts_of(trips: int, work: float, size: int = 0) -> int:
    """The number of parts for a loop of so many trips of so much work each.

    Each part adds into a private array of `size` elements: allocating and adding these up is to be
    cheap beside the loop.
    """
    least = max(GRAIN, GATHER * size)
    return int(max(1.0,
                   min(max(trips, 0) * 1.0 * work / least, trips * 1.0,
                       float(FEW if size else MOST))))


def natural(n: int) -> int:
    """`n`, marked as not negative for the compiler: a possibly negative index counts from the end,
    which keeps LLVM from vectorising.
    """
    return n


def apart(array):
    """`array`, an argument of a kernel, marked as noalias (runtime/intrinsics/noalias_alloc.py)."""
    return array


def in_parts(kernel, parts: int, trips: int, arguments: tuple) -> None:
    """Call `kernel(part, start, stop, *arguments)` for each part of the trips; compiled code runs
    them on several threads.
    """
    trips = max(trips, 0)
    for part in range(parts):
        kernel(part, part * trips // parts, (part + 1) * trips // parts, *arguments)


def add_parts(array, parts) -> None:
    """Add the partial sums in `parts` to `array`, in the order of the parts (reduction of
    privatised arrays).
    """
    for part in parts:
        array += part


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


def _lie_in_order(array, parts) -> bool:
    return (array.layout == parts.layout == "C"
            and isinstance(array.dtype, (types.Float, types.Integer, types.Complex)))


@type_callable(add_parts)
def _type_add_parts(context):
    return lambda array, parts: types.none if _lie_in_order(array, parts) else None


@overload(add_parts)
def _other_add_parts(array, parts):
    if _lie_in_order(array, parts) or array.ndim != 1:
        return None

    def add(array, parts):
        for part in range(len(parts)):
            for i in range(len(array)):
                array[i] += parts[part, i]

    return add


@lower_builtin(add_parts, types.Array, types.Array)
def _lower_add_parts(context, builder, sig, args):
    number = sig.args[0].dtype
    data, parts = (field(context, builder, t, x, "data") for t, x in zip(sig.args, args))
    size, count = (field(context, builder, t, x, "nitems") for t, x in zip(sig.args, args))
    if getattr(context, "is_sanitized", False):
        for axis in range(sig.args[0].ndim):
            check_lengths(context, builder,
                          *(item(builder, field(context, builder, t, x, "shape"), axis + k)
                            for k, (t, x) in enumerate(zip(sig.args, args))))
    if isinstance(number, types.Complex):  # two adjacent numbers
        number = number.underlying_float
        size, count = (builder.mul(n, n.type(2)) for n in (size, count))
    of = context.get_data_type(number)
    function = _adding(builder.module, of, isinstance(number, types.Float))
    builder.call(function,
                 [builder.bitcast(data, of.as_pointer()), builder.bitcast(parts, of.as_pointer()),
                  size, count])
    return context.get_dummy_value()


def _adding(module: ir.Module, of: ir.Type, is_real: bool) -> ir.Function:
    """The module's function that adds several arrays of `size` numbers, `count` numbers in all, to
    one array.
    """
    name = f"s2s_add_parts_{of}"
    if name in module.globals:
        return module.globals[name]
    word = ir.IntType(64)
    function = ir.Function(module,
                           ir.FunctionType(ir.VoidType(),
                                           [of.as_pointer(), of.as_pointer(), word, word]), name)
    function.linkage = "linkonce_odr"
    for attribute in ("nounwind", "noinline"):
        function.attributes.add(attribute)
    array, parts, size, count = function.args
    for each in (array, parts):
        each.add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block())
    with cgutils.for_range_slice(builder, word(0), count, size) as (first, _):
        with cgutils.for_range(builder, size) as loop:
            place = builder.gep(array, [loop.index])
            x, y = (builder.load(place),
                    builder.load(builder.gep(parts, [builder.add(first, loop.index)])))
            builder.store(builder.fadd(x, y) if is_real else builder.add(x, y), place)
    builder.ret_void()
    return function


@type_callable(apart)
def _type_apart(context):
    return lambda array: array if isinstance(array, types.Array) else None


@lower_builtin(apart, types.Array)
def _lower_apart(context, builder, sig, args):
    return impl_ret_borrowed(context, builder, sig.return_type, _apart(context, builder, sig, args))


def _apart(context, builder, sig, args):
    return with_noalias(context, builder, sig.args[0], args[0])


AGAIN = {apart: (lambda array: True, _apart)}  # as in runtime/kernels/array_layout.py


@lower_builtin(parts_of, types.Any, types.Any)
@lower_builtin(parts_of, types.Any, types.Any, types.Any)
def _lower_parts_of(context, builder, sig, args):
    real = ir.DoubleType()
    trips, work, *size = (context.cast(builder, x, t, types.float64)
                          for x, t in zip(args, sig.args))

    def smaller(a, b):
        return builder.select(builder.fcmp_ordered("<", a, b), a, b)

    def larger(a, b):
        return builder.select(builder.fcmp_ordered(">", a, b), a, b)

    least = ir.Constant(real, float(GRAIN))
    if size:
        least = larger(least, builder.fmul(size[0], ir.Constant(real, GATHER)))
    found = smaller(smaller(builder.fdiv(builder.fmul(trips, work), least), trips),
                    ir.Constant(real, float(FEW if size else MOST)))
    return builder.fptosi(larger(found, ir.Constant(real, 1.0)), context.get_value_type(types.intp))


@lower_builtin(in_parts, types.Dispatcher, types.Any, types.Any, types.BaseTuple)
def _lower_in_parts(context, builder, sig, args):
    pool_native.ready()
    _, parts, trips, arguments = args
    kernel, kind = sig.args[0], sig.args[3]
    word = ir.IntType(64)
    parts, trips = (context.cast(builder, x, t, types.int64)
                    for x, t in zip((parts, trips), sig.args[1:3]))
    trips = builder.select(builder.icmp_signed("<", trips, ir.Constant(word, 0)),
                           ir.Constant(word, 0), trips)
    fields = [x for k, t in enumerate(kind.types)
              for x in flatten_argument(context, builder, t, item(builder, arguments, k))]
    entry = _entry(context, builder, kernel, kind, [x.type for x in fields])
    holder = cgutils.alloca_once(builder, ir.LiteralStructType([x.type for x in fields]))
    for k, x in enumerate(fields):
        builder.store(x, cgutils.gep_inbounds(builder, holder, 0, k))
    run = cgutils.get_or_insert_function(builder.module, ir.FunctionType(word, [word] * 5),
                                         "s2s_in_parts")
    blas = ir.Constant(word, int(calls_blas(kernel.dispatcher.py_func)))
    status = builder.call(run,
                          [builder.ptrtoint(entry, word), builder.ptrtoint(holder, word), parts,
                           trips, blas])
    with builder.if_then(builder.icmp_signed("!=", status, ir.Constant(word, 0)), likely=False):
        # the interpreted form raises the error itself (runtime/call/native_function.py, Note
        # [Where an error came from])
        context.call_conv.return_user_exc(builder, RuntimeError, (RAISED,))
    return context.get_dummy_value()


def flatten_argument(context, builder, kind: types.Type, value: ir.Value) -> list[ir.Value]:
    """The fields of an argument that a kernel needs: for an array, those not implied by its type
    and lengths.
    """
    if not isinstance(kind, types.Array):
        return [value]
    found = [field(context, builder, kind, value, name) for name in ("meminfo", "data")]
    for name in ("shape", "strides") if kind.layout == "A" else ("shape",):
        several = field(context, builder, kind, value, name)
        found += [item(builder, several, k) for k in range(kind.ndim)]
    return found


def as_arguments(context, builder, kind: types.Type, wanted: types.Type,
                 fields: Iterator[ir.Value]) -> list[ir.Value]:
    """The arguments of a Numba function for the value: for an array, all of its fields, rebuilt.

    The Python object that owns an array is left out: only a returned array would need it, and no
    kernel returns one.
    """
    if not isinstance(kind, types.Array):
        value = context.cast(builder, next(fields), kind, wanted)
        return list(ArgPacker(context.data_model_manager, [wanted]).as_arguments(builder, [value]))
    meminfo, data = next(fields), next(fields)
    shape = [next(fields) for _ in range(kind.ndim)]
    step = shape[0].type(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    count = shape[0]
    for n in shape[1:]:
        count = builder.mul(count, n)
    if kind.layout == "A":
        strides = [next(fields) for _ in range(kind.ndim)]
    else:
        strides = [step]
        for n in reversed(shape[1:]) if kind.layout == "C" else shape[:-1]:
            strides.append(builder.mul(strides[-1], n))
        strides = strides[::-1] if kind.layout == "C" else strides
    return [meminfo, context.get_constant_null(types.pyobject), count, step, data, *shape, *strides]


def _entry(context, builder, kernel: types.Dispatcher, kind: types.BaseTuple,
           fields: Sequence[ir.Type]) -> ir.Function:
    """The kernel as a C function of the address of its arguments, a part, and its first and last
    trip; it returns whether it raised.
    """
    wanted = _argument_types(kind)
    compiled = kernel.dispatcher.get_compile_result(types.void(*wanted))
    context.add_linking_libs([compiled.library])
    word = ir.IntType(64)
    entry = ir.Function(builder.module,
                        ir.FunctionType(word, [cgutils.voidptr_t, word, word, word]),
                        builder.module.get_unique_name(f"{compiled.fndesc.llvm_func_name}.entry"))
    entry.linkage = "internal"
    inner = ir.IRBuilder(entry.append_basic_block())
    address, *given = entry.args
    holder = inner.bitcast(address, ir.LiteralStructType(fields).as_pointer())
    loaded = (inner.load(cgutils.gep_inbounds(inner, holder, 0, k)) for k in range(len(fields)))
    for t, u in zip(kind.types, wanted[3:]):
        given += as_arguments(context, inner, t, u, loaded)
    function = context.declare_function(builder.module, compiled.fndesc)
    result, raised = (cgutils.alloca_once(inner, x.type.pointee, zfill=True)
                      for x in function.args[:2])
    # this is the only call, and hundreds of arguments would be passed through memory
    code = inner.call(function, [result, raised, *given], attrs=["alwaysinline"])
    inner.ret(inner.zext(inner.icmp_signed("!=", code, RETCODE_OK), word))
    return entry


def calls_blas(function) -> bool:
    """Whether `function` calls libraries that may start threads of their own."""
    return any(name in ("linalg", "dot") or name.startswith(LIBRARIES)
               for name in function.__code__.co_names)
