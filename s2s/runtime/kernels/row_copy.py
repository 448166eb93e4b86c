"""Copy a matrix of any strides to rows, in LLVM.

    for i in range(rows):
        for j in range(columns):
            to[i * apart + j] = data[i * over_rows + j * over_columns]     # strides in bytes

The function is emitted once per module. If columns are further apart than rows, a few are copied at
a time, as many as fill a line of the cache, and in square blocks, transposed in registers, if they
are contiguous.
"""

from __future__ import annotations

from llvmlite import ir

from ..numba_internals import cgutils

BYTES, WORD = cgutils.voidptr_t, ir.IntType(64)
LINE = 64  # bytes of a line of the cache
SIDE = 4  # side of blocks transposed in registers


def copier(module: ir.Module, number: ir.Type, size: int) -> ir.Function:
    """The module's function (to, data, rows, columns, over_rows, over_columns, apart) that copies
    numbers of `size` bytes.
    """
    name = f"s2s_in_rows_{number}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module,
                           ir.FunctionType(ir.VoidType(),
                                           [number.as_pointer(), BYTES, WORD, WORD, WORD, WORD,
                                            WORD]), name)
    function.linkage = "internal"
    for attribute in ("nounwind", "noinline", "optsize"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    copy = RowCopy(builder, number, size, *function.args)
    with builder.if_else(builder.icmp_signed("==", copy.over_columns, WORD(size))) as (then,
                                                                                     otherwise):
        with then:
            copy.contiguous_rows()
        with otherwise:
            copy.strided_rows()
    builder.ret_void()
    return function


class RowCopy:
    """Emit the parts of `copier`."""

    def __init__(self, builder: ir.IRBuilder, number: ir.Type, size: int, to: ir.Value,
                 data: ir.Value, rows: ir.Value, columns: ir.Value, over_rows: ir.Value,
                 over_columns: ir.Value, apart: ir.Value):
        self.builder, self.number, self.size = builder, number, size
        self.to, self.data, self.rows, self.columns = to, data, rows, columns
        self.over_rows, self.over_columns, self.apart = over_rows, over_columns, apart

    def contiguous_rows(self) -> None:
        builder = self.builder
        with cgutils.for_range(builder, self.rows) as row:
            start = builder.gep(self.data, [builder.mul(row.index, self.over_rows)])
            cgutils.raw_memcpy(builder,
                               builder.gep(self.to, [builder.mul(row.index, self.apart)]),
                               builder.bitcast(start, self.number.as_pointer()), self.columns,
                               self.size)

    def strided_rows(self) -> None:
        builder = self.builder
        is_far = builder.icmp_signed(">", *(builder.select(
            builder.icmp_signed("<", x, WORD(0)), builder.neg(x), x)
            for x in (self.over_columns, self.over_rows)))
        wide = WORD(max(LINE // self.size, 1))
        many = builder.and_(is_far, builder.icmp_signed(">=", self.rows, WORD(SIDE)))
        ends = cgutils.alloca_once_value(builder, WORD(0))
        with builder.if_then(many):
            whole = builder.mul(builder.sdiv(self.columns, wide), wide)
            builder.store(whole, ends)
            is_contiguous = builder.icmp_signed("==", self.over_rows, WORD(self.size))
            with cgutils.for_range_slice(builder, WORD(0), whole, wide) as (first, _):
                self.few_columns(first, wide, is_contiguous)
        self.elements(WORD(0), self.rows, builder.load(ends), self.columns)

    def few_columns(self, first: ir.Value, wide: ir.Constant, is_contiguous: ir.Value) -> None:
        """Copy `wide` columns from the `first` on, in square blocks if they are contiguous."""
        builder = self.builder
        done = cgutils.alloca_once_value(builder, WORD(0))
        builder.store(WORD(0), done)
        if isinstance(self.number, (ir.DoubleType, ir.FloatType)):
            with builder.if_then(is_contiguous):
                end = builder.mul(builder.sdiv(self.rows, WORD(SIDE)), WORD(SIDE))
                builder.store(end, done)
                with cgutils.for_range_slice(builder, WORD(0), end, WORD(SIDE)) as (row, _):
                    for k in range(0, wide.constant, SIDE):
                        self.square(row, builder.add(first, WORD(k)))
        self.elements(builder.load(done), self.rows, first, builder.add(first, wide))

    def elements(self, first_row: ir.Value, last_row: ir.Value, first_column: ir.Value,
                 last_column: ir.Value) -> None:
        """Copy these rows and columns number by number."""
        builder, pointer = self.builder, self.number.as_pointer()
        with cgutils.for_range_slice(builder, first_row, last_row, WORD(1)) as (row, _):
            start, target = (builder.gep(self.data, [builder.mul(row, self.over_rows)]),
                             builder.gep(self.to, [builder.mul(row, self.apart)]))
            with cgutils.for_range_slice(builder, first_column, last_column, WORD(1)) as (column,
                                                                                          _):
                number = builder.load(builder.bitcast(
                    builder.gep(start, [builder.mul(column, self.over_columns)]), pointer))
                builder.store(number, builder.gep(target, [column]))

    def square(self, row: ir.Value, column: ir.Value) -> None:
        """Transpose a SIDE by SIDE block, whose columns are contiguous, in vector registers:
        exchange halves of pairs.
        """
        builder = self.builder
        several, index = ir.VectorType(self.number, SIDE), ir.VectorType(ir.IntType(32), SIDE)

        def mixed(a: ir.Value, b: ir.Value, *places: int) -> ir.Value:
            return builder.shuffle_vector(a, b, ir.Constant(index, list(places)))

        columns = []
        for k in range(SIDE):
            place = builder.add(builder.mul(builder.add(column, WORD(k)), self.over_columns),
                                builder.mul(row, WORD(self.size)))
            columns.append(builder.load(builder.bitcast(builder.gep(self.data, [place]),
                                                        several.as_pointer()), align=self.size))
        a, b, c, d = columns
        low, high, low_, high_ = (mixed(a, b, 0, 4, 2, 6), mixed(a, b, 1, 5, 3, 7),
                                  mixed(c, d, 0, 4, 2, 6), mixed(c, d, 1, 5, 3, 7))
        rows = [mixed(low, low_, 0, 1, 4, 5), mixed(high, high_, 0, 1, 4, 5),
                mixed(low, low_, 2, 3, 6, 7), mixed(high, high_, 2, 3, 6, 7)]
        for k, vector in enumerate(rows):
            place = builder.add(builder.mul(builder.add(row, WORD(k)), self.apart), column)
            builder.store(vector,
                          builder.bitcast(builder.gep(self.to, [place]), several.as_pointer()),
                          align=self.size)
