"""Products of a small matrix and a vector, as functions of the module: faster than a call of BLAS.

There are two functions, emitted into a module once each, so that another product only costs a call
to compile. They are vectorised already, so LLVM is told to optimise them for size ("optsize"): as
fast, and a third of the compile time, 20 ms each. `row` is a vector times a row-major matrix, and
`dots` that matrix times a vector; for a column-major matrix they are swapped. They keep sums in a
few registers and store each result once, in whole vectors as far as the lengths allow: `row` adds
in program order, `dots` in as many partial sums as a register has lanes, and writes four sums with
one store (a following vector load would stall on four scalar stores).

Gemv takes 1.5 to 3 times as long for 2x2 to 24x24. Products of two matrices are left to gemm, which
has kernels for small ones: these functions, row by row, were slower from 6x6 on. Considered: plain
loops in place, for LLVM to vectorise. LLVM guards them against overlaps, unrolls for lengths that
never occur, and compiles each anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ..numba_internals import cgutils

WORD = ir.IntType(64)
REGISTER = {"double": 4, "float": 8}  # numbers; LLVM splits or joins them for the machine
FLAGS = ("contract",)


def row(module: ir.Module, real: ir.Type) -> ir.Function:
    """out[l] = sum of vector[o] * matrix[o, l] over o, of (matrix, lead, others, vector, out)."""
    return _function(module, real, "row", _row)


def dots(module: ir.Module, real: ir.Type) -> ir.Function:
    """out[o] = sum of matrix[o, l] * vector[l] over l, of (matrix, lead, others, vector, out)."""
    return _function(module, real, "dots", _dots)


def _function(module: ir.Module, real: ir.Type, kind: str, write: Callable) -> ir.Function:
    name = f"s2s_{kind}_{real}"
    if name in module.globals:
        return module.globals[name]
    address = real.as_pointer()
    function = ir.Function(
        module, ir.FunctionType(ir.VoidType(), [address, WORD, WORD, address, address]), name)
    function.linkage = "internal"
    for attribute in ("nounwind", "noinline", "optsize"):
        function.attributes.add(attribute)
    function.args[-1].add_attribute("noalias")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    write(builder, real, *function.args)
    builder.ret_void()
    return function


def _row(builder, real, matrix, lead, others, vector, out) -> None:
    register = REGISTER[str(real)]
    for width, column in _blocks(builder, lead, (4 * register, register, 1)):
        total = _zero(builder, real, width)
        with cgutils.for_range(builder, others) as loop:
            number = builder.load(builder.gep(vector, [loop.index]))
            place = builder.gep(matrix, [builder.add(builder.mul(loop.index, lead), column)])
            _add_product(builder, total, _spread(builder, number, width),
                         _load(builder, place, width))
        _store(builder, builder.load(total), builder.gep(out, [column]), width)


def _dots(builder, real, matrix, lead, others, vector, out) -> None:
    register = REGISTER[str(real)]
    for count, first in _blocks(builder, others, (4, 1)):
        starts = [builder.gep(matrix, [builder.mul(builder.add(first, WORD(k)), lead)])
                  for k in range(count)]
        sums = [_zero(builder, real, 1) for _ in starts]
        wide = [_zero(builder, real, register) for _ in starts]
        for width, column in _blocks(builder, lead, (register, 1)):
            totals = sums if width == 1 else wide
            numbers = _load(builder, builder.gep(vector, [column]), width)
            for total, start in zip(totals, starts):
                _add_product(builder, total, numbers,
                             _load(builder, builder.gep(start, [column]), width))
        wholes = _sums(builder, [builder.load(parts) for parts in wide], register)
        _store(builder, builder.fadd(wholes, _together(builder, [builder.load(x) for x in sums])),
               builder.gep(out, [first]), count)


def _blocks(builder, length: ir.Value, widths: Sequence[int]) -> Iterator[tuple[int, ir.Value]]:
    """Emit loops over 0 ... length with steps of each width while one fits; the body is emitted for
    (width, first).
    """
    place = cgutils.alloca_once_value(builder, WORD(0))
    for width in widths:
        with _while(builder,
                    lambda: builder.icmp_signed("<=", builder.add(builder.load(place), WORD(width)),
                                                length)):  # noqa: B023
            first = builder.load(place)
            yield width, first
            builder.store(builder.add(first, WORD(width)), place)


@contextmanager
def _while(builder, condition: Callable):
    test, body, after = (builder.append_basic_block(name) for name in ("test", "body", "after"))
    builder.branch(test)
    builder.position_at_end(test)
    builder.cbranch(condition(), body, after)
    builder.position_at_end(body)
    yield
    builder.branch(test)
    builder.position_at_end(after)


def _kind(real: ir.Type, width: int) -> ir.Type:
    return real if width == 1 else ir.VectorType(real, width)


def _zero(builder, real, width: int) -> ir.Value:
    """A stack slot for a sum, initially 0."""
    kind = _kind(real, width)
    zero = ir.Constant(kind, 0.0 if width == 1 else [0.0] * width)
    place = cgutils.alloca_once(builder, kind)
    builder.store(zero, place)
    return place


def _add_product(builder, total, x, y) -> None:
    builder.store(builder.fadd(builder.load(total), builder.fmul(x, y, flags=FLAGS), flags=FLAGS),
                  total)


def _load(builder, place, width: int) -> ir.Value:
    real = place.type.pointee
    return builder.load(builder.bitcast(place, _kind(real, width).as_pointer()), align=_size(real))


def _store(builder, value, place, width: int) -> None:
    real = place.type.pointee
    builder.store(value, builder.bitcast(place, _kind(real, width).as_pointer()), align=_size(real))


def _size(real: ir.Type) -> int:
    return 8 if isinstance(real, ir.DoubleType) else 4


def _spread(builder, number, width: int) -> ir.Value:
    if width == 1:
        return number
    kind, index = ir.VectorType(number.type, width), ir.IntType(32)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, index(0))
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined),
                                  ir.Constant(ir.VectorType(index, width), [0] * width))


def _sums(builder, registers: list[ir.Value], width: int) -> ir.Value:
    """The horizontal sums of four registers, or of one, by pairwise halving."""
    def added(a: ir.Value, b: ir.Value, low: Sequence[int], high: Sequence[int]) -> ir.Value:
        index = ir.IntType(32)
        return builder.fadd(*(builder.shuffle_vector(a, b,
                                                     ir.Constant(ir.VectorType(index, len(places)),
                                                                 list(places)))
                              for places in (low, high)))

    while width > (2 if len(registers) == 1 else 4):
        width //= 2
        registers = [added(x, x, range(width), range(width, 2 * width)) for x in registers]
    if len(registers) == 1:
        return builder.fadd(*(builder.extract_element(registers[0], ir.IntType(32)(k))
                              for k in range(2)))
    pairs = [added(a, b, (0, 1, 4, 5), (2, 3, 6, 7)) for a, b in (registers[:2], registers[2:])]
    return added(*pairs, (0, 2, 4, 6), (1, 3, 5, 7))


def _together(builder, numbers: list[ir.Value]) -> ir.Value:
    """Pack numbers into a vector; a single one stays itself."""
    if len(numbers) == 1:
        return numbers[0]
    made = ir.Constant(ir.VectorType(numbers[0].type, len(numbers)), ir.Undefined)
    for k, x in enumerate(numbers):
        made = builder.insert_element(made, x, ir.IntType(32)(k))
    return made
