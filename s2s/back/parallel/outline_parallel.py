"""Outline large independent loops as functions of a range of trips, for threads to share.

    s = 0.0                              s = 0.0
    for i in range(len(x)):              parts = parts_of(len(x), 21)
        t = np.exp(x[i])                 s_parts = np.empty(parts)
        y[i] = t               becomes   in_parts(f_part, parts, len(x), (x, y, s_parts))
        s += t                           for part in range(parts):
                                             s += s_parts[part]

where f_part is the loop over range(start, stop), with a private sum. The cost of one trip is
counted (21 operations) so that short loops are not split (runtime/threads/parallel_for.py).

The pass works on printed syntax trees: their names show what a loop reads, and in-place writes are
settled. That trips are independent is known from the ops (analysis/dependence.py); the carries of a
loop are

    own       passed to the kernel unchanged: no two trips touch the same element
    sum       a private sum for each part, from zero; these are added in order; likewise maxima and
              minima
    gather    likewise with arrays: the first part adds to the array itself, the others to private
              arrays
    scratch   a private array for each part (privatisation): it is allocated uninitialised, so each
              trip writes what it reads of it (a trip that pops from a tape what another has pushed
              would carry a count), and it is dead after the loop
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from ...analysis.dependence import Trip, least_index
from ...ir.graph import Block, Function, Op, Value, walk
from ...ir.types import Array, Scalar
from ...ops.core.record import Record
from ...ops.program.opaque_call import foreign
from ..syntax.ast_builders import dtype_argument, placed
from ..syntax.ast_names import exposed, loaded_in, names_in, nodes_in, stored_in, unused_name
from .cost import CallValues, Work, as_factor, parsed, spelled, trips_of, work_of
from .sections import groups, in_sections

# functions of runtime/threads/parallel_for.py that an outlined loop calls
PARTS = ("add_parts", "apart", "in_parts", "natural", "parts_of")


# -------------------------------------------------------------------------------------------- marks


def mark(tree: ast.For, op: Op, carried: Sequence[str]) -> ast.For:
    """Mark the tree of a loop with its op and the names of its carries."""
    tree.op, tree.carried = op, list(carried)
    return tree


def rename_marks(nodes: Sequence[ast.AST], renamed: dict[str, str]) -> None:
    """Rename the names in the marks on these nodes."""
    for node in nodes:
        if isinstance(node, ast.For) and hasattr(node, "carried"):
            node.carried = [renamed.get(name, name) for name in node.carried]


# -------------------------------------------------------------------------------------------- roles


class Roles:
    """The roles of carries in the loops of one function."""

    def __init__(self, function: Function):
        self.uses: Counter[Value] = Counter(function.results)
        self.loops: dict[Block, Op] = {}
        self.ended: dict[Value, list[Block]] = {}
        self.counters = {op.blocks[0].params[0]: op for op in walk(function.block)
                         if op.name == "for"}
        for op in walk(function.block):
            self.uses.update(op.inputs)
            for block in op.blocks:
                self.loops[block] = op
                self.uses.update(block.yields)
                for y in block.yields:
                    self.ended.setdefault(y, []).append(block)

    def of(self, loop: Op) -> list[str | Record] | None:
        """The role of each carry of `loop`; None if its trips must run in order.

        Of a maximum or minimum it is the op.
        """
        if loop.name != "for" or loop.attrs["breaks"] or loop.inputs[2].constant not in (1, -1):
            return None
        (body,) = loop.blocks
        if not all(map(runs_anywhere, walk(body))):
            return None
        trip = Trip(body, least_index(loop, self.counters))
        found = []
        for k, (param, end) in enumerate(zip(body.params[1:], body.yields)):
            role = ("scratch" if self.is_scratch(loop, k) else "own"
                    if trip.is_disjoint(param, end) else trip.role(param, end)
                    or extreme_of(trip, param, end))
            if role is None or role == "gather" and not is_in_c_order(loop.inputs[3 + k]):
                return None
            found.append(role)
        return found

    def is_scratch(self, loop: Op, k: int) -> bool:
        """Whether carry `k` is a buffer that every trip fills anew, and dead after the loop.

        See back/loops/hoist_buffers.py and back/loops/tape_arrays.py.
        """
        start, out = loop.inputs[3 + k], loop.outputs[k]
        if not isinstance(start.type, Array):
            return False
        if start.op is not None:
            return start.op.name == "buffer" and not start.op.attrs["zero"] and not self.uses[out]
        block = next((b for b in self.ended.get(out, ()) if start in b.params), None)
        if block is None or self.uses[out] != 1 or self.loops[block].name != "for":
            return False
        j = block.params.index(start)
        return (block.yields[j - len(block.params)] is out
                and self.is_scratch(self.loops[block], j - 1))


def extreme_of(trip: Trip, param: Value, end: Value) -> Record | None:
    """The op, a maximum or minimum, by which `end` combines `param` with independent values.

    Not a product: a part may overflow that a zero in another would have kept finite.
    """
    if (end.op is None or not isinstance(end.type, Scalar) or len(trip.uses.get(param, ())) != 1
            or len(trip.uses.get(end, ())) != 1):
        return None
    op = end.op
    if op.name == "for" and not op.attrs["breaks"]:
        k = op.outputs.index(end)
        (body,) = op.blocks
        return (extreme_of(trip, body.params[1 + k], body.yields[k])
                if op.inputs[3 + k] is param else None)
    if not op.record.extreme or op.record.skips_nan or op.inputs[0] is not param and (
            op.inputs[1] is not param or op.record.returns_operand):
        return None  # Python's max(x, s) forgets a NaN s, and max(s, x) a NaN x
    return op.record if op.output.type == param.type else None


def runs_anywhere(op: Op) -> bool:
    """Whether threads without the GIL may run `op`, out of order with other trips."""
    return ((op.record.pure or op.record.only_raises) and op.name != "call"
            and op.record is not foreign
            and not hasattr(op.record.helper, "stem"))  # in Python (back/lower/library_calls.py)


def is_in_c_order(x: Value) -> bool:
    """Whether the array `x` surely has the layout of `np.zeros`."""
    x = original_version(x)
    return isinstance(x.type, Array) and (len(x.type.dims) == 1 or x.op is not None
                                          and x.op.record.allocates is not None)


def is_buffer(x: Value) -> bool:
    """Whether `x` is a local array without aliases (runtime/intrinsics/noalias_alloc.py)."""
    x = original_version(x)
    return (isinstance(x.type, Array) and x.op is not None
            and (x.op.record.allocates is not None or x.op.name in ("matmul", "blas_product")))


def original_version(x: Value) -> Value:
    """The version of `x` before all writes."""
    while x.op is not None and (x.op.record.writes_elements or x.op.name == "for"):
        x = x.op.inputs[0] if x.op.name != "for" else x.op.inputs[3 + x.op.outputs.index(x)]
    return x


# ---------------------------------------------------------------------------------------- the split


@dataclass
class Independent:
    """An independent loop: its sums, gathers and scratch arrays by name, trips, and cost."""

    number: int
    sums: list[str]
    gathers: list[str]
    scratch: list[str]
    low: ast.expr
    trips: ast.expr
    down: bool
    work: Work


class Split:
    """The loops of one function that can be split into parts or sections, by number.

    `sizes` has the cost of each, in terms of arguments a0, a1, ... Names in `taken` mean other
    things in the module.
    """

    def __init__(self, tree: ast.FunctionDef, taken: frozenset[str]):
        self.tree, self.roles = tree, Roles(tree.function)
        self.taken = {*PARTS, *taken}
        self.found: dict[ast.For, Independent] = {}
        self.kernels: list[ast.FunctionDef] = []
        self.sizes: list[tuple[Work, ...]] = []
        self.asked = CallValues(tree)
        self.find_loops(tree.body)
        self.groups = dict(enumerate(groups(tree.body, self.is_in_order), len(self.sizes)))
        self.sizes += [tuple(self.size(loop, self.work(loop)) for loop in group)
                       for group in self.groups.values()]

    def find_loops(self, body: Sequence[ast.stmt]) -> None:
        """Find the outermost independent loops in the statements."""
        for statement in body:
            carried = (self.carried(statement) if isinstance(statement, ast.For)
                       and hasattr(statement, "op") else None)
            if carried is not None:
                low, trips, down = trips_of(statement.iter)
                work = self.work(statement)
                self.found[statement] = Independent(len(self.sizes), *carried, low, trips, down,
                                                    work)
                self.sizes.append((self.size(statement, work),))
            elif isinstance(statement, (ast.For, ast.While, ast.If)):
                self.find_loops(statement.body)
                self.find_loops(statement.orelse)

    def is_in_order(self, loop: ast.For) -> bool:
        return loop not in self.found and all(map(runs_anywhere, walk(loop.op.blocks[0])))

    def work(self, loop: ast.For) -> Work:
        """The cost of one trip of a loop."""
        return work_of(loop.body, set(stored_in([loop])), loop.target.id, trips_of(loop.iter)[1])

    def size(self, loop: ast.For, work: Work) -> Work:
        """The cost of all trips of a loop at `work` each, in terms of the arguments."""
        return self.asked.of(work, ast.unparse(trips_of(loop.iter)[1]))

    def in_parts(self, wanted: Container[int]) -> list[ast.FunctionDef]:
        """The outlined kernels, then the function with the `wanted` loops split."""
        if any(number in wanted for number in range(len(self.sizes))):
            self.locals = {a.arg for a in self.tree.args.args} | set(stored_in(self.tree.body))
            self.taken |= self.locals | {node.id for node in nodes_in(self.tree)
                                         if isinstance(node, ast.Name)}
            body = self.body(self.tree.body, wanted)
            for number, group in self.groups.items():
                if number in wanted and not any(calls_of(loop, "in_parts") for loop in group):
                    split = in_sections(body, group, self.unused(f"{self.tree.name}_sections"),
                                        self.unused, self.locals, is_buffer)
                    if split is not None:
                        kernel, body = split
                        self.kernels.append(kernel)
            self.tree.body = body
        return [*self.kernels, self.tree]

    def body(self, body: Sequence[ast.stmt], wanted: Container[int]) -> list[ast.stmt]:
        """The statements, with the wanted independent loops among them split."""
        done: list[ast.stmt] = []
        for statement in body:
            found = self.found.get(statement)
            if found is None and isinstance(statement, (ast.For, ast.While, ast.If)):
                for field in ("body", "orelse"):
                    setattr(statement, field, self.body(getattr(statement, field), wanted))
            if found is not None and found.number in wanted:
                done += [placed(s, getattr(statement, "line", None))
                         for s in self.loop(statement, found)]
            else:
                done.append(statement)
        return done

    def carried(self, loop: ast.For) -> tuple[list[str], list[str], list[str]] | None:
        """Names of the sums, gathers and scratch arrays of a loop; None if it is sequential."""
        roles = self.roles.of(loop.op)
        if roles is None:
            return None
        sums = [name for name, its in zip(loop.carried, roles)
                if its == "sum" or isinstance(its, Record)]
        gathers, scratch = ([name for name, its in zip(loop.carried, roles) if its == wanted]
                            for wanted in ("gather", "scratch"))
        stored = set(stored_in([loop]))
        if (set(exposed(loop.body, stored - {loop.target.id, *scratch})) != set(sums)
                or stored & set(gathers)):
            return None  # a carried name that stands for something else
        return sums, gathers, scratch

    def loop(self, loop: ast.For, found: Independent) -> list[ast.stmt]:
        """The statements that run an independent loop in parts."""
        sums, gathers, scratch, low, trips = (found.sums, found.gathers, found.scratch, found.low,
                                              found.trips)
        stored = set(stored_in([loop]))
        before: list[ast.stmt] = []
        if any(isinstance(node, ast.Call) and ast.unparse(node.func) != "len"
               for node in nodes_in(trips)):
            count = self.unused("trips")  # a check, which is made once
            before, trips = parsed(f"{count} = {ast.unparse(trips)}"), ast.Name(count, ast.Load())
        how = dict(zip(loop.carried, self.roles.of(loop.op)))
        types = dict(zip(loop.carried, (p.type for p in loop.op.blocks[0].params[1:])))
        dtypes = {x: type.dtype for x, type in types.items()}
        name = self.unused(f"{self.tree.name}_part")
        part, start, stop = (unused_name(x, self.taken) for x in ("part", "start", "stop"))
        own_sums = {x: self.unused(f"{x}_parts") for x in sums}
        own_arrays = {x: self.unused(f"{x}_parts") for x in gathers}
        read = [n for n in dict.fromkeys(loaded_in([low, *loop.body])) if n in self.locals
                and n not in stored - names_in(low) - {*scratch}]
        arguments = [*(n for n in read if n not in sums), *(n for n in gathers if n not in read),
                     *own_sums.values(), *own_arrays.values()]
        span = _span(low, start, stop, found.down)
        known = (parsed(f"{loop.target.id} = natural({loop.target.id})") if found.down
                 and ast.unparse(loop.iter.args[1]) == "-1" else [])
        kernel = _function(f"def {name}({', '.join([part, start, stop, *arguments])}): pass")
        kernel.body = [*(s for x in scratch for s in parsed(f"{x} = apart({_like(x, types[x])})")),
                       *(parsed(f"if {part} > 0:\n" + "".join(
                           f"    {x} = {own}[{part} - 1]\n" for x, own in own_arrays.items()))
                         if own_arrays else ()),
                       *(s for x, start in zip(loop.carried, loop.op.inputs[3:])
                         if x in arguments and x not in scratch and is_buffer(start)
                         for s in parsed(f"{x} = apart({x})")),
                       *(s for x in sums for s in parsed(f"{x} = {_start(how[x], dtypes[x])}")),
                       ast.For(loop.target, parsed(f"range({span})")[0].value,
                               [*known, *loop.body], []),
                       *(s for x, own in own_sums.items() for s in parsed(f"{own}[{part}] = {x}")),]
        kernel.body[-1 - len(own_sums)].line = getattr(loop, "line", None)
        self.kernels.append(kernel)
        return before + self.call(name, trips, found.work, arguments, own_sums, own_arrays, dtypes,
                                  how, loop)

    def call(self, name: str, trips: ast.expr, work: Work, arguments: list[str], own_sums: dict,
             own_arrays: dict, dtypes: dict, how: dict, loop: ast.For) -> list[ast.stmt]:
        """The statements that call the kernel `name`, and combine the results of its parts."""
        ranks = {x: len(p.type.dims) for x, p in zip(loop.carried, loop.op.blocks[0].params[1:])
                 if isinstance(p.type, Array)}
        sizes = [" * ".join(_lengths(x, ranks[x])) for x in own_arrays]
        count = ", ".join([ast.unparse(trips), spelled(work),
                           *([" + ".join(sizes)] if sizes else [])])
        given = f"({', '.join(arguments)}{',' if len(arguments) == 1 else ''})"
        if not own_sums and not own_arrays:
            return parsed(f"in_parts({name}, parts_of({count}), {ast.unparse(trips)}, {given})")
        parts, part = self.unused("parts"), unused_name("part", self.taken)
        text = [f"{parts} = parts_of({count})"]
        text += [f"{own} = np.empty({parts}{dtype_argument(dtypes[x])})"
                 for x, own in own_sums.items()]
        text += [f"{own} = np.zeros(({', '.join([f'{parts} - 1', *_lengths(x, ranks[x])])})"
                 f"{dtype_argument(dtypes[x])})"
                 for x, own in own_arrays.items()]
        text.append(f"in_parts({name}, {parts}, {ast.unparse(trips)}, {given})")
        if own_sums:
            text += [f"for {part} in range({parts}):",
                     *(f"    {_combine(how[x], x, f'{own}[{part}]')}"
                       for x, own in own_sums.items())]
        text += [f"add_parts({x}, {own})" for x, own in own_arrays.items()]
        return parsed("\n".join(text))

    def unused(self, name: str) -> str:
        found = unused_name(name, self.taken)
        self.taken.add(found)
        return found


# --------------------------------------------------------------------------- small pieces of syntax


def _span(low: ast.expr, start: str, stop: str, down: bool) -> str:
    """The arguments of the `range` of trips `start` to `stop` of a loop that begins at `low`."""
    if isinstance(low, ast.Constant) and low.value >= 0 and not down:
        start, stop = f"natural({start})", f"natural({stop})"
        return (f"{start}, {stop}" if low.value == 0
                else f"{low.value} + {start}, {low.value} + {stop}")
    first = (ast.unparse(low) if isinstance(low, ast.BinOp)
             and isinstance(low.op, (ast.Add, ast.Sub, ast.Mult)) else as_factor(ast.unparse(low)))
    sign = "-" if down else "+"
    return f"{first} {sign} {start}, {first} {sign} {stop}" + (", -1" if down else "")


def _like(x: str, type: Array) -> str:
    """An array like `x`, with constants for known lengths."""
    if not all(isinstance(d, int) for d in type.dims):
        return f"np.empty_like({x})"
    lengths = ", ".join(map(str, type.dims))
    return (f"np.empty({lengths if len(type.dims) == 1 else f'({lengths})'}"
            f"{dtype_argument(type.dtype)})")


def _lengths(x: str, rank: int) -> list[str]:
    return [f"len({x})"] if rank == 1 else [f"{x}.shape[{k}]" for k in range(rank)]


def _zero(dtype: str) -> str:
    return {"float64": "0.0", "int64": "0", "complex128": "0j"}.get(dtype, f"np.{dtype}(0)")


def _start(how: str | Record, dtype: str) -> str:
    """The identity from which a part starts a sum, a maximum or a minimum."""
    if how == "sum":
        return _zero(dtype)
    real, whole = ("-np.inf", "min") if how.extreme > 0 else ("np.inf", "max")
    text = real if dtype.startswith("float") else f"np.iinfo(np.{dtype}).{whole}"
    return text if dtype in ("float64", "int64") else f"np.{dtype}({text})"


def _combine(how: str | Record, s: str, x: str) -> str:
    """The statement that combines a part's result with the sum, maximum or minimum."""
    if how == "sum":
        return f"{s} += {x}"
    own, of_part = (parsed(each)[0].value for each in (s, x))
    return f"{s} = {ast.unparse(how.syntax(own, of_part))}"


def _function(text: str) -> ast.FunctionDef:
    (tree,) = parsed(text)
    return tree


def calls_of(tree: ast.AST, name: str) -> bool:
    """Whether the tree contains a call of the function of this name."""
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
               and node.func.id == name for node in nodes_in(tree))
