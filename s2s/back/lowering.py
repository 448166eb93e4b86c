"""Lower a function on arrays to scalar arithmetic in loops.

    y = np.sin(x) * 2                    y = np.empty(len(x))
    s = np.sum(y)             becomes    s = 0.0
                                         for i in range(len(x)):
                                             t = np.sin(x[i]) * 2
                                             y[i] = t
                                             s = s + t

The result consists of scalar arithmetic, `for`, `while` and `if`, reads and writes of single
elements, allocations, and calls of BLAS: Numba compiles these quickly, and LLVM well. It is the
same IR, printed by the same printer.

The ops of a block are partitioned into groups that share an index space
(back/lower/fusion_groups.py), and each group is emitted as one nest (back/lower/nest.py). Views and
generated arrays are index arithmetic (back/loopir/elements.py). Sums run in index order, where
NumPy sums pairwise: results differ in the last bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence

from ..analysis.python_numbers import PythonNumbers
from ..errors import UnsupportedError
from ..ir.builder import Builder, add_op, at, current, emit
from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.length_assumptions import assuming_not_one
from ..ir.types import Array, Extent, List, Scalar, Unknown
from ..ops.core.raise_conditions import all_of
from ..ops.core.record import dims_of, value
from ..ops.core.shape import length, shape_source
from ..ops.program.effects import has_effects
from ..ops.program.list_ops import list_get, list_set
from ..ops.program.recursive_callee import recursive_callees, with_callees
from ..transform.cleanup.hoist_tape_lengths import hoist_tape_lengths
from .arrays.assume_equal_lengths import assume_lengths, check_assumptions
from .arrays.fuse_matvec_pairs import fuse_matvec_pairs
from .arrays.hoist_tables import hoist_tables
from .arrays.index_checks import check_indices
from .arrays.legalise import REWRITTEN, legalise
from .arrays.move_reshapes import move_reshapes
from .arrays.python_errors import check_counts, check_operands, check_result, implied_by_trips
from .arrays.scatter_columns import scatter_columns
from .arrays.share_exponentials import share_exponentials
from .arrays.specialise_lengths import check_lengths
from .arrays.strip_mine_batch import strip_mine
from .loopir.elements import Elements, in_memory
from .loopir.extent_equalities import Equalities
from .loopir.loop_builder import loop, op_named
from .loopir.ops import (
    PLAIN,
    as_dtype,
    compute,
    contiguous,
    in_range,
    new_buffer,
    same_length_op,
    supposed_length_op,
)
from .loopir.reductions import REDUCTIONS
from .loops.axis_order import permute_axes
from .loops.distribute_gathers import distribute_gathers
from .loops.distribute_long import divide_long_loops
from .loops.distribute_stages import distribute_stages
from .loops.forward_stores import forward_stores
from .loops.fuse import compared, fuse_loops
from .loops.hoist_buffers import hoist_buffers
from .loops.loop_bounds import PINNED, check_loops
from .loops.reassociate.carried_product import postpone_products
from .loops.reassociate.factor import share_factors
from .loops.reassociate.shorten_recurrences import shorten_chains
from .loops.reassociate.sink_factors import sink_factors
from .loops.recursion_guard import guard_depth
from .loops.rematerialise import rematerialise
from .loops.reuse_dying_buffers import reuse_dying_buffers
from .loops.scalar_replace import replace_by_scalars
from .loops.split_at_wraparound import split_at_wraparound
from .loops.tape_arrays import stack_rows, stack_tapes
from .loops.type_empty_lists import type_empty_lists
from .lower.fusion_groups import ReadAfter, last_reads, overwritten_views, partition
from .lower.gather import column_gathers
from .lower.index_arrays import index_sums, sum_of_indices
from .lower.library_calls import OF_MATRICES, is_native, is_opaque, print_call, python_call
from .lower.nest import SAME, emit_nest, ends_nest, index_space
from .lower.scans import SCANS, scan
from .lower.slice_writes import clashes, write_region
from .lower.views import KINDS, define_view


def lower(function: Function, asks: bool = True, supposes: bool = False,
          of: Function | None = None) -> Function:
    """Lower `function`, whose types have known rank, and the recursive functions it calls.

    With `asks` it tests whether Python would raise (back/arrays/python_errors.py), unless it cannot
    raise itself. It may be specialised to slices that have not length 1: ir/length_assumptions.py,
    Note [Supposed lengths]; then it was specialised from `of`.
    """
    if supposes:
        with assuming_not_one():
            return lower(assume_lengths(function), asks, of=function)
    function = hoist_tape_lengths(function)
    lowered = _lowered(with_callees(function, lambda callee: _lowered(callee, asks)), asks, of)
    if asks:  # kernels are launched from Python, which needs no types of lists
        for each in (lowered, *(callee.function for callee in recursive_callees(lowered))):
            stack_tapes(each)
            replace_by_scalars(each)
            share_factors(each)
            shorten_chains(each)
            postpone_products(each)
            drop_unused(each)
            if sink_factors(each):
                drop_unused(each)
            if distribute_stages(each):
                drop_unused(each)
                hoist_buffers(each)
            type_empty_lists(each)
            check_loops(each, function if each is lowered else None)
            divide_long_loops(each)
    guard_depth(lowered)
    return lowered


def _lowered(function: Function, asks: bool, of: Function | None = None) -> Function:
    for value_ in _all_values(function.block):
        if isinstance(value_.type, Unknown):
            raise UnsupportedError(
                f"{value_.name or 'a value'} of {function.name} has no known rank",
                value_.op.line if value_.op else None,
                "give it one rank on every path: let what becomes an array start as one, "
                "np.zeros_like(x) say; or leave jit away")
    function = legalise(share_exponentials(fuse_matvec_pairs(hoist_tables(check_indices(function)))
                                           if asks else function), asks)
    if asks:
        if (moved := scatter_columns(move_reshapes(function))) is not function:
            drop_unused(moved)
        function = strip_mine(stack_rows(moved))
    block = Block(params=[Value(p.type, p.name) for p in function.params])
    with Builder(block) as builder:
        builder.counter[0] = _largest_symbol(function) + 1
        scope = Scope({}, {}, Equalities(walk(function.block)), asked=set() if asks else None)
        scope.python_numbers = PythonNumbers(function.block)
        if asks:
            check_lengths(block.params)
            if of is not None:
                check_assumptions(of, block.params)
        for old, new in zip(function.params, block.params):
            scope.define(old, new)
            if isinstance(old.type, Array):
                scope.elements(old)  # request the lengths here, in the user's order
        block.yields = lower_block(scope, function.block)
    lowered = function.remade(block)
    drop_unused(lowered)
    if asks:  # a kernel has a thread for each trip, and sums that threads share
        fuse_loops(lowered)
        forward_stores(lowered)
        rematerialise(lowered)
        drop_unused(lowered)
        reuse_dying_buffers(lowered)
        drop_unused(lowered)
        split_at_wraparound(lowered)
        drop_unused(lowered)
        distribute_gathers(lowered)
        drop_unused(lowered)
        permute_axes(lowered)
    return hoist_buffers(lowered)


def _all_values(block: Block):
    yield from block.params
    for op in walk(block):
        yield from op.outputs
        for inner in op.blocks:
            yield from inner.params


def _largest_symbol(function: Function) -> int:
    """The largest symbol of an extent, so that the loop form's own extents are distinct."""
    digits = [int(n) for v in _all_values(function.block) for d in dims_of(v.type)
              if isinstance(d, Extent) for n in re.findall(r"\d+", d.symbol)]
    return max(digits, default=0)


class Scope:
    """The values that replace the original ones, in one block and the enclosing ones."""

    def __init__(self, env: dict, extents: dict, equal: Equalities, checked: dict | None = None,
                 roots: dict | None = None, counters: tuple[str, ...] = (), nested: bool = False,
                 asked: set | None = None, loops: dict | None = None, around: Scope | None = None,
                 repeats: bool = False):
        self.env: dict[Value, Value | Elements] = env
        self.extents: dict[Extent, Value] = extents
        self.equal = equal
        # pairs of lengths checked to be equal
        self.checked: dict[frozenset[Value], Value] = {} if checked is None else checked
        # the length that a checked one stands for
        self.roots: dict[Value, Value] = {} if roots is None else roots
        self.counters = counters  # the counter names of enclosing loops
        # tests for Python's errors already made; None: none are emitted
        self.asked = asked
        self.nested = nested  # in a block of an op: its parameters are not the caller's
        # by counter of each enclosing `for`, an op with its bounds
        self.loops: dict[Value, Op] = {} if loops is None else loops
        self.builder = current()
        self.around = around  # the enclosing scope
        self.python_numbers: PythonNumbers | None = around and around.python_numbers
        self.repeats = repeats  # whether it may run several times in one run of the enclosing block
        self.alive: Container[Value] = ()  # values with uses after the current op, in this block
        # by result of a branch, the values that other branches return in its place
        self.instead: dict[Value, list[Value]] = {}

    def inner(self, counter: str | None = None, repeats: bool = False) -> Scope:
        counters = self.counters if counter is None else (*self.counters, counter)
        return Scope(dict(self.env), dict(self.extents), self.equal, dict(self.checked),
                     dict(self.roots), counters, True, None if self.asked is None
                     else set(self.asked), dict(self.loops), self, repeats)

    def pythons(self, xs: Sequence[Value]) -> Callable | None:
        """A function that emits whether all these numbers are Python's; None if they cannot be."""
        numbers = self.python_numbers
        if numbers is None or not numbers.are_possible(xs):
            return None
        return lambda: all_of(*(numbers.asked(x, self.whole,
                                              lambda array: self.elements(array).lengths[0])
                                for x in xs))

    def owns(self, x: Value, block: Block) -> bool:
        """Whether `x` is allocated in `block` or an enclosing arm, and dead afterwards."""
        scope = self
        while not (scope.nested and x in block.params if x.op is None else x.op in block.ops):
            if scope.repeats or scope.around is None or x in scope.around.alive:
                return False
            scope, block = scope.around, scope.around.block
        return True

    def define(self, old: Value, new: Value, lengths: Sequence[Value] | None = None) -> None:
        """Map `old` to the value `new`, an array in memory if it is an array.

        Lengths that are not given are read from it on first use: a name that is unbound on one path
        has none.
        """
        if not isinstance(old.type, Array):
            self.env[old] = new
        elif lengths is None:
            self.env[old] = in_memory(new, (), old.type)
        else:
            self.set(old, in_memory(new, lengths, old.type))

    def set(self, old: Value, elements: Elements) -> None:
        lengths = [self.known(dim, n) if isinstance(dim, Extent) and not dim.accepts_any else n
                   for dim, n in zip(old.type.dims, elements.lengths)]
        elements.lengths = tuple(lengths)
        self.env[old] = elements

    def known(self, dim: Extent, n: Value) -> Value:
        """The first recorded length of this extent, checked to equal `n` unless they are one.

        A type says that two lengths are equal if the program has not raised; the op that would have
        raised may be gone.
        """
        if dim not in self.extents:
            self.extents[dim] = supposed_length_op(n) if dim.is_supposed else n
        first = self.extents[dim]
        return first if is_same_number(first, n) else self.same(first, n)

    def length_of(self, array: Value, axis: int, dim) -> Value:
        if isinstance(dim, int):
            return value(dim)
        if dim in self.extents and not dim.accepts_any:
            return self.extents[dim]
        return length(array, axis=axis)

    def same(self, n: Value, m: Value) -> Value:
        """`n`, checked to equal `m`: the outcome of every check on `n`."""
        key = frozenset((self.roots.get(n, n), self.roots.get(m, m)))
        if len(key) == 1:
            return n
        found = self.checked.get(key)
        if found is not None and compared(found) <= compared(n):
            return n
        if found is None or not compared(n) <= compared(found):
            found = self.checked[key] = same_length_op(n, m)
            self.roots[found] = self.roots.get(n, n)
        return found

    def numbers(self, xs) -> list[Value | None]:
        """The new values of a slice's bounds; None stays None."""
        return [None if x is None else self.env[x] for x in xs]

    def elements(self, x: Value) -> Elements:
        """The elements of the array `x`; its lengths are read before any new loop."""
        found = self.env[x]
        if len(found.lengths) < len(x.type.dims):
            with self.builder:
                lengths = [self.length_of(found.value, k, d) for k, d in enumerate(x.type.dims)]
            self.set(x, in_memory(found.value, lengths, x.type))
        return self.env[x]

    def lengths(self, x: Value) -> tuple[Value, ...]:
        """The lengths of `x`, from an array of the same shape if `x` itself is not in memory."""
        if not isinstance(x.type, Array):
            return ()
        return self.elements(x if x in self.env else shape_source(x)).lengths

    def shape_giver(self, x: Value) -> Value:
        """An array in memory of the shape of `x`, itself or another."""
        return self.whole(x if x in self.env and self.env[x].value is not None else shape_source(x))

    def whole(self, x: Value) -> Value:
        """`x` as a value: a number, or an array in memory."""
        found = self.env[x]
        if not isinstance(found, Elements):
            return found
        if found.value is None:
            home = self.home(x)
            if current() is not home.builder:
                with home.builder, at(x.op.line if x.op else None):
                    home.whole(x)
                found = home.env[x]
            else:
                array = fill(x, found, self.counters) if found.whole is None else found.whole()
                found = in_memory(array, found.lengths, found.type)
            self.env[x] = found
        return found.value

    def home(self, x: Value) -> Scope:
        """The scope that defines `x`, so that code for it runs once, not in each trip inside.

        The ops that own the blocks in between are appended when they are complete, so what is
        emitted there now precedes them.
        """
        home = scope = self
        while scope.around is not None and x in scope.around.env:
            home, scope = scope.around if scope.repeats else home, scope.around
        return home


def is_same_number(n: Value, m: Value) -> bool:
    """Whether two integers are equal computations on the same values, ignoring checks."""
    n, m = unchecked(n), unchecked(m)
    if n is m or type(n.constant) is int and n.constant == m.constant:
        return True
    one, other = n.op, m.op
    if (one is None or other is None or one.record is not other.record or one.blocks
            or not one.record.pure or one.attrs != other.attrs or one.name == "getitem"):
        return False
    return (len(one.inputs) == len(other.inputs) > 0
            and all(map(is_same_number, one.inputs, other.inputs)))


def unchecked(n: Value) -> Value:
    """The operand of the check whose outcome is `n`."""
    while n.op is not None and n.op.name in PASS:
        n = n.op.inputs[0]
    return n


# checks whose outcome is their first operand
PASS = frozenset({"same_length", "nonempty_length", "supposed_length", "spread_length"})


def fill(x: Value, elements: Elements, counters: tuple[str, ...] = ()) -> Value:
    """A new array with these elements."""
    array = new_buffer(elements.type.dtype, elements.type.dims, elements.lengths)

    def body(index, carries):
        return [op_named("setitem", carries[0], as_dtype(elements.at(index), elements.type.dtype),
                         *index, pattern=("i",) * len(index))]

    (array,) = loop(elements.lengths, [array], [array.type], [x.name], body, counters)
    return array


# ------------------------------------------------------------------------------------------- blocks


def lower_block(scope: Scope, block: Block) -> list[Value]:
    """Emit the ops of `block` into the current builder; return the new values of its yields."""
    sums = index_sums(block)
    picked = column_gathers(block) | sums
    scope.equal = scope.equal.within(block.ops)
    groups = partition(block, lambda op: None if op in picked else index_space(op, scope.equal),
                       ends_nest, clashes)
    last = last_reads(groups, block)
    overwritten = overwritten_views(groups, last)
    scope.block = block
    for k, group in enumerate(groups):
        scope.alive = ReadAfter(last, k)
        with at(group.ops[0].line):
            take_views(scope, overwritten.get(k, ()))
        if scope.asked is not None:
            for op in group.ops:
                if op.record.raises and not op.record.elementwise:
                    with at(op.line):
                        check_counts(op, scope.whole, scope.asked)
        if group.dims is not None:
            emit_nest(scope, group, block)
        elif group.ops[0] in sums:
            with at(group.ops[0].line):
                scope.set(group.ops[0].output, sum_of_indices(scope, group.ops[0]))
        else:
            with at(group.ops[0].line):
                emit_one(scope, group.ops[0])
    return [scope.whole(y) for y in block.yields]


def take_views(scope: Scope, views: Sequence[Value]) -> None:
    """Materialise views of arrays that the next op overwrites, if they have later uses.

    `t = u[-1]` before `u[-1] = 0.0` is a row that has to be copied; index arithmetic on the old `u`
    would copy all of `u`. The copy is a loop like any other, which may be fused with its
    neighbours: it is contracted to a number where they read it in step.
    """
    for x in views:
        found = scope.env.get(x)
        if isinstance(found, Elements) and found.value is None and found.whole is not None:
            scope.define(x, fill(x, found, scope.counters), found.lengths)


def emit_one(scope: Scope, op: Op) -> None:
    """Emit an op that belongs to no nest."""
    match op.name:
        case "getitem" if read_element(scope, op):
            pass
        case "constant" | "undefined":
            outputs = add_op(op.record, [], op.attrs, [o.type for o in op.outputs]).outputs
            scope.env[op.output] = outputs[0]
        case "length":
            scope.env[op.output] = scope.lengths(op.inputs[0])[op.attrs["axis"]]
        case "size":
            scope.env[op.output] = product(scope.lengths(op.inputs[0]))
        case "if" | "for" | "while":
            emit_control(scope, op)
        case "contiguous":
            scope.define(op.output, emit(contiguous, scope.whole(op.inputs[0])))
        case "setitem" | "additem" if write_region(scope, op):
            pass
        case "list_add" if add_to_item(scope, op):
            pass
        case _ if define_view(scope, op) or scan(scope, op):
            pass
        case _:
            emit_plain(scope, op)


def add_to_item(scope: Scope, op: Op) -> bool:
    """Emit `xs[i] = xs[i] + v` for arrays, as a loop that computes the sum."""
    xs, v, *indices = op.inputs
    item = op.output.type
    for _ in indices:
        item = item.item if isinstance(item, List) else None
    if not isinstance(item, Array) or not isinstance(v.type, Array) or item.rank != v.type.rank:
        return False
    xs, indices, added = scope.whole(xs), [scope.whole(i) for i in indices], scope.elements(v)
    old = in_memory(list_get(xs, *indices), added.lengths)
    total = Elements(Array(item.dtype, v.type.dims), added.lengths,
                     lambda index: op_named("add", old.at(index), added.at(index)))
    scope.define(op.output, list_set(xs, fill(v, total, scope.counters), *indices))
    return True


def read_element(scope, op: Op) -> bool:
    """Emit `x[i]` for an array that aliases memory as a read of it.

    With index arithmetic, an index out of the view's range would read beside it.
    """
    elements = scope.env[op.inputs[0]]
    if not isinstance(elements, Elements) or elements.value is not None or elements.same_as is None:
        return False
    operands = [scope.env[x] for x in op.inputs[1:]]
    if any(isinstance(x, Elements) for x in operands) or isinstance(op.output.type, Array):
        return False
    scope.env[op.output] = emit(op.record, elements.same_as, *operands, **op.attrs)
    return True


def product(lengths: Sequence[Value]) -> Value:
    """The number of elements."""
    result = value(1)
    for n in lengths:
        result = op_named("multiply", result, n)
    return result


INTO_LISTS = frozenset({"list_of", "list_full", "list_set", "list_insert", "list_unstack",
                        "list_cut", "tape_push"})


def contiguous_item(x: Value) -> Value:
    """A contiguous array to put into a list: arrays of all lists that may meet have one type."""
    is_item = x.op is not None and x.op.name in ("list_get", "list_pop_at", "tape_pop")
    return contiguous(x) if isinstance(x.type, Array) and not is_item else x


def emit_plain(scope: Scope, op: Op) -> None:
    """Emit the op unchanged, on numbers and arrays in memory."""
    inputs = [scope.shape_giver(x) if k in op.record.shapes and isinstance(x.type, Array)
              else scope.whole(x) for k, x in enumerate(op.inputs)]
    if op.name in INTO_LISTS:
        inputs = [contiguous_item(x) for x in inputs]
    if op.record.elementwise and all(not isinstance(x.type, Array)
                                     for x in op.inputs) and is_native(op):
        if scope.asked is not None:
            check_operands(op, inputs, scope.asked, scope.pythons)
        outputs = [compute(op.record, *inputs, **op.attrs)]
        if scope.asked is not None:
            check_result(op, inputs, outputs[0], scope.asked, scope.pythons)
    elif op.name == "print":
        outputs = add_op(print_call(op), inputs, {}, []).outputs
    elif is_native(op):
        outputs = add_op(op.record, inputs, op.attrs, [o.type for o in op.outputs]).outputs
    else:
        outputs = add_op(python_call(op), inputs, {}, [o.type for o in op.outputs]).outputs
    for old, new in zip(op.outputs, outputs):
        if not new.name and new.op is not None and new.op.record is op.record:
            new.name = old.name
        scope.define(old, new)


def emit_control(scope: Scope, op: Op) -> None:
    """Emit an op with blocks: the same op, with its blocks lowered and its carries in memory."""
    for x in needed_whole(op):
        found = scope.env.get(x)
        if isinstance(found, Elements) and found.value is None:
            scope.whole(x)
    inputs = [scope.whole(x) for x in op.inputs]
    inits = inputs[3:] if op.name == "for" else inputs
    wanted = [o.type for o in op.outputs]
    if op.name != "if":
        inits = [converted(x, t) for x, t in zip(inits, wanted)]
        inputs = [*inputs[:3], *inits] if op.name == "for" else inits
    blocks = []
    for old in op.blocks:
        block = Block(params=[Value(p.type, p.name) for p in old.params])
        with Builder(block):
            inner = scope.inner(block.params[0].name if op.name == "for" else None, op.name != "if")
            if op.name == "for":
                inner.loops[block.params[0]] = Op(op.record, inputs[:3])
                if inner.asked is not None:
                    inner.asked.update(implied_by_trips(*inputs[:3]))
            for p, q in zip(old.params, block.params):
                inner.define(p, q)
            if op.name == "if":
                for y, *others in zip(old.yields,
                                      *(each.yields for each in op.blocks if each is not old)):
                    inner.instead.setdefault(y, []).extend(others)
            block.yields = lower_block(inner, old)
            skip = len(block.yields) - len(wanted)  # the `stop` of a loop that breaks, a condition
            if skip >= 0 and not (op.name == "while" and not blocks):
                block.yields[skip:] = [converted(y, t) for y, t in zip(block.yields[skip:], wanted)]
        blocks.append(block)
    new = add_op(op.record, inputs, op.attrs, wanted, blocks, [o.name for o in op.outputs])
    for a, b in zip(op.outputs, new.outputs):
        scope.define(a, b)


def needed_whole(op: Op) -> list[Value]:
    """The arrays that the blocks of `op` need in memory, materialised once before it."""
    found: dict[Value, None] = {}
    inside = [inner for block in op.blocks for inner in walk(block)]
    carried = {x for inner in inside if inner.blocks for x in inner.inputs}
    for inner in inside:
        if inner.name == "getitem" and (not isinstance(inner.output.type, Array)
                                        or inner.output in carried) or is_opaque(inner):
            found.update(dict.fromkeys(content_of(inner)))
    return list(found)


def content_of(op: Op) -> list[Value]:
    """The arrays whose elements `op` itself reads."""
    return [x for k, x in enumerate(op.inputs) if k not in op.record.shapes
            and isinstance(x.type, Array)]


def converted(x: Value, type) -> Value:
    """`x` with the dtype of a carry: an array may start as integers and become floats."""
    if isinstance(type, Scalar) and type.dtype == "float64" and isinstance(x.constant, int):
        return value(float(x.constant))  # a list of it would be typed as integers
    match x.type, type:
        case Scalar(have), Scalar(want) if have != want and (want not in PLAIN
                                                             or want == "complex128"):
            return as_dtype(in_range(x, want), want)
        case Array(have), Array(want) if have != want:
            lengths = [length(x, axis=k) for k in range(x.type.rank)]
            elements = in_memory(x, lengths)
            cast_type = Array(want, x.type.dims)
            return fill(x, Elements(cast_type, tuple(lengths), elements.at))
    return x


def manner(record) -> str:
    """A word for the way in which an op is lowered."""
    if record.rebuild is not None:
        return "blocks"
    if record.elementwise or record.name in REDUCTIONS or record.name in SAME:
        return "fused"
    if record.name in KINDS:
        return "an index"
    if record.name in SCANS or record.writes is not None:
        return "a loop"
    if record.name in OF_MATRICES:
        return "BLAS, LAPACK"
    return "rewritten" if record.name in REWRITTEN else "as printed"


# ----------------------------------------------------------------------------------------- clean-up


def drop_unused(function: Function) -> None:
    """Remove pure ops and unused outputs that lowering left behind."""
    used: set[Value] = set()

    def visit(block: Block) -> None:
        used.update(block.yields)
        kept = []
        for op in reversed(block.ops):
            if not op.blocks and not has_effects(op) and not any(o in used for o in op.outputs):
                if op.record not in PINNED:
                    continue
                # its loop is gone, but Python would still raise
                op.record = PINNED[op.record]
            if op.blocks and _idle(op) and not any(o in used for o in op.outputs):
                continue
            for inner in reversed(op.blocks):
                visit(inner)
            used.update(op.inputs)
            kept.append(op)
        block.ops = kept[::-1]

    visit(function.block)


def _idle(op: Op) -> bool:
    """Whether an op with blocks has no effects, terminates, and only computes values."""
    return op.name != "while" and not has_effects(op) and all(inner.name != "while"
                                      for block in op.blocks for inner in walk(block))
