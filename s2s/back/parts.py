"""Large independent loops, each as a function of a range of its trips, which threads can share.

    s = 0.0                              s = 0.0
    for i in range(len(x)):              parts = parts_of(len(x), 21)
        t = np.exp(x[i])                 s_parts = np.empty(parts)
        y[i] = t               becomes   in_parts(f_part, parts, len(x), (x, y, s_parts))
        s += t                           for part in range(parts):
                                             s += s_parts[part]

where f_part is the loop over range(start, stop), with a sum of its own.  What one trip does is counted (21 operations)
so that short loops stay in one piece (runtime/parts.py).

Works on the syntax trees that the printer has made: there the names say what a loop reads, and what is written in
place is settled.  That trips are independent is known of the ops (independent.py); of what a loop carries,

    own       goes to the kernel as it is: no two trips touch the same element
    sum       each part adds up its own, from zero; these are added in their order; likewise maxima and minima
    gather    likewise with arrays: the first part adds into the array itself, each other one into one of its own
    scratch   each part allocates its own: it is made with nothing in it, so every trip writes what it reads of it (a trip that
              took from a tape what another has put there would carry how much there is), and nobody reads it afterwards
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Container, Iterator, Sequence

from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import Array, Scalar
from ..ops.foreign import foreign
from ..ops.independent import Trip, least_index
from .pieces import placed

SLOW = {"exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh", "expm1", "log1p", "exp2", "log2", "log10", "power", "pow",
        "arctan", "arctan2", "atan", "atan2", "arcsin", "arccos", "asin", "acos", "erf", "erfc", "gamma", "lgamma", "hypot",
        "cbrt", "logaddexp", "arcsinh", "arccosh", "arctanh", "asinh", "acosh", "atanh"}
MANY = 8  # trips of a loop of which nothing is known
CALL = 200  # operations of a matrix product or the like
UNKNOWN = "unknown"
LONG = 200  # characters
COMBINED = {  # ops -> what goes with any number and leaves it as it is, and how two parts go together; not products, where a
    # part may overflow that a zero in another would have kept from it
    "maximum": ("-np.inf", "np.iinfo(np.{dtype}).min", "np.maximum({s}, {x})"),
    "minimum": ("np.inf", "np.iinfo(np.{dtype}).max", "np.minimum({s}, {x})"),
    "max_": ("-np.inf", "np.iinfo(np.{dtype}).min", "max({s}, {x})"),
    "min_": ("np.inf", "np.iinfo(np.{dtype}).max", "min({s}, {x})"),
}
MADE = frozenset({"buffer", "zeros", "empty", "ones", "full"})

Work = Counter  # by the factors of a product of trips, as text: how many operations


# ------------------------------------------------------------------------------------------- marks


def mark(tree: ast.For, op: Op, carried: Sequence[str]) -> ast.For:
    """Note on the tree of a loop which loop it is, and what its carries are called."""
    tree.op, tree.carried = op, list(carried)
    return tree


def rename_marks(nodes: Sequence[ast.AST], renamed: dict[str, str]) -> None:
    """The names that the marks on these nodes have are others now."""
    for node in nodes:
        if isinstance(node, ast.For) and hasattr(node, "carried"):
            node.carried = [renamed.get(name, name) for name in node.carried]


# ------------------------------------------------------------------------------------------- roles


class Roles:
    """What the loops of one function carry."""

    def __init__(self, function: Function):
        self.uses: Counter[Value] = Counter(function.results)
        self.loops: dict[Block, Op] = {}
        self.ended: dict[Value, list[Block]] = {}
        self.counters = {op.blocks[0].params[0]: op for op in walk(function.block) if op.name == "for"}
        for op in walk(function.block):
            self.uses.update(op.inputs)
            for block in op.blocks:
                self.loops[block] = op
                self.uses.update(block.yields)
                for y in block.yields:
                    self.ended.setdefault(y, []).append(block)

    def of(self, loop: Op) -> list[str] | None:
        """The role of each carry of `loop`; None if its trips must run in order."""
        if loop.name != "for" or loop.attrs["breaks"] or loop.inputs[2].constant not in (1, -1):
            return None
        (body,) = loop.blocks
        if not all(map(runs_anywhere, walk(body))):
            return None
        trip = Trip(body, least_index(loop, self.counters))
        found = []
        for k, (param, end) in enumerate(zip(body.params[1:], body.yields)):
            role = "scratch" if self.is_scratch(loop, k) else trip.role(param, end) or combined(trip, param, end)
            if role is None or role == "gather" and not is_in_c_order(loop.inputs[3 + k]):
                return None
            found.append(role)
        return found

    def is_scratch(self, loop: Op, k: int) -> bool:
        """Whether carry `k` is a buffer that every trip fills anew (reuse.py, stacks.py), and that nobody reads after the loop."""
        start, out = loop.inputs[3 + k], loop.outputs[k]
        if not isinstance(start.type, Array):
            return False
        if start.op is not None:
            return start.op.name == "buffer" and not start.op.attrs["zero"] and not self.uses[out]
        block = next((b for b in self.ended.get(out, ()) if start in b.params), None)
        if block is None or self.uses[out] != 1 or self.loops[block].name != "for":
            return False
        j = block.params.index(start)
        return block.yields[j - len(block.params)] is out and self.is_scratch(self.loops[block], j - 1)


def combined(trip: Trip, param: Value, end: Value) -> str | None:
    """How `end` is `param`, combined with what does not depend on it, in loops or not: a key of COMBINED."""
    if end.op is None or not isinstance(end.type, Scalar) or len(trip.uses.get(param, ())) != 1 or len(trip.uses.get(end, ())) != 1:
        return None
    op = end.op
    if op.name == "for" and not op.attrs["breaks"]:
        k = op.outputs.index(end)
        (body,) = op.blocks
        return combined(trip, body.params[1 + k], body.yields[k]) if op.inputs[3 + k] is param else None
    if op.name not in COMBINED or op.inputs[0] is not param and (op.inputs[1] is not param or op.name in ("max_", "min_")):
        return None  # Python's max(x, s) forgets a NaN s, and max(s, x) a NaN x
    return op.name if op.output.type == param.type else None


def runs_anywhere(op: Op) -> bool:
    """Whether a thread that holds no Python object may run `op`, out of order with those of other trips."""
    return (op.record.pure and op.name != "call" and op.record is not foreign
            and not hasattr(op.record.helper, "stem"))  # in Python (back/opaque.py)


def is_in_c_order(x: Value) -> bool:
    """Whether the array `x` surely lies in memory as an array that `np.zeros` makes."""
    x = at_first(x)
    return isinstance(x.type, Array) and (len(x.type.dims) == 1 or x.op is not None and x.op.name in MADE)


def is_buffer(x: Value) -> bool:
    """Whether `x` is an array that the function has made, which shares no memory with its arguments (runtime/unshared.py)."""
    x = at_first(x)
    return isinstance(x.type, Array) and x.op is not None and x.op.name in ("buffer", "matmul", "blas_product")


def at_first(x: Value) -> Value:
    """What `x` was before anything was written to it."""
    while x.op is not None and x.op.name in ("setitem", "additem", "for"):
        x = x.op.inputs[0] if x.op.name != "for" else x.op.inputs[3 + x.op.outputs.index(x)]
    return x


# ----------------------------------------------------------------------------------------- the split


def in_parts(tree: ast.FunctionDef, wanted: Container[int], taken: frozenset[str]) -> tuple[list[ast.FunctionDef], list[Work]]:
    """The function with those of its independent loops in parts that are `wanted`, by number, after their kernels; and how
    much work there is in each of its independent loops, over arguments a0, a1, ... (`sizes`).

    Names in `taken` mean other things in the module.
    """
    split = Split(tree, wanted, {"in_parts", "parts_of", "natural", "apart", *taken})
    tree.body = split.body(tree.body)
    return [*split.kernels, tree], split.sizes


class Split:
    """The loops of one function, one after the other."""

    def __init__(self, tree: ast.FunctionDef, wanted: Container[int], taken: set[str]):
        self.tree, self.wanted, self.roles = tree, wanted, Roles(tree.function)
        self.locals = {a.arg for a in tree.args.args} | set(_stored(tree.body))
        self.taken = taken | self.locals | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        self.kernels: list[ast.FunctionDef] = []
        self.sizes: list[Work] = []
        self.known = _known(tree)

    def body(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements, with the outermost independent loops among them, or in loops among them, split."""
        done: list[ast.stmt] = []
        for statement in body:
            found = self.carried(statement) if isinstance(statement, ast.For) and hasattr(statement, "op") else None
            if found is not None:
                split = self.loop(statement, *found)
                done += [placed(s, getattr(statement, "line", None)) for s in split]
                continue
            for field in ("body", "orelse"):
                if isinstance(statement, (ast.For, ast.While, ast.If)):
                    setattr(statement, field, self.body(getattr(statement, field)))
            done.append(statement)
        return done

    def carried(self, loop: ast.For) -> tuple[list[str], list[str], list[str]] | None:
        """The names of the sums, gathers and scratch arrays of an independent loop; None if its trips must run in order."""
        roles = self.roles.of(loop.op)
        if roles is None:
            return None
        sums, gathers, scratch = ([name for name, its in zip(loop.carried, roles) if its in wanted]
                                  for wanted in (("sum", *COMBINED), ("gather",), ("scratch",)))
        stored = set(_stored([loop]))
        if set(_exposed(loop.body, stored - {loop.target.id, *scratch})) != set(sums) or stored & set(gathers):
            return None  # a name is carried from trip to trip that stands for something else
        return sums, gathers, scratch

    def loop(self, loop: ast.For, sums: list[str], gathers: list[str], scratch: list[str]) -> list[ast.stmt]:
        """The statements that make the trips of an independent loop, in parts if that is wanted."""
        stored = set(_stored([loop]))
        low, trips, down = _trips(loop.iter)
        work = work_of(loop.body, stored, loop.target.id, trips)
        before: list[ast.stmt] = []
        self.sizes.append(self.asked(work, ast.unparse(trips)))
        if len(self.sizes) - 1 not in self.wanted:
            return [loop]
        if any(isinstance(node, ast.Call) and ast.unparse(node.func) != "len" for node in ast.walk(trips)):
            count = self.unused("trips")  # a check, which is made once
            before, trips = _parse(f"{count} = {ast.unparse(trips)}"), ast.Name(count, ast.Load())
        how = dict(zip(loop.carried, self.roles.of(loop.op)))
        dtypes = dict(zip(loop.carried, (p.type.dtype for p in loop.op.blocks[0].params[1:])))
        name = self.unused(f"{self.tree.name}_part")
        part, start, stop = (_local(x, self.taken) for x in ("part", "start", "stop"))
        own_sums = {x: self.unused(f"{x}_parts") for x in sums}
        own_arrays = {x: self.unused(f"{x}_parts") for x in gathers}
        read = [n for n in dict.fromkeys(_loaded([low, *loop.body])) if n in self.locals and n not in stored - _names(low) - {*scratch}]
        arguments = [*(n for n in read if n not in sums), *(n for n in gathers if n not in read),
                     *own_sums.values(), *own_arrays.values()]
        span = _span(low, start, stop, down)
        known = _parse(f"{loop.target.id} = natural({loop.target.id})") if down and ast.unparse(loop.iter.args[1]) == "-1" else []
        kernel = _function(f"def {name}({', '.join([part, start, stop, *arguments])}): pass")
        kernel.body = [
            *(s for x in scratch for s in _parse(f"{x} = apart(np.empty_like({x}))")),
            *(s for x, own in own_arrays.items() for s in _parse(f"if {part} > 0:\n    {x} = {own}[{part} - 1]")),
            *(s for x, start in zip(loop.carried, loop.op.inputs[3:]) if x in arguments and x not in scratch and is_buffer(start)
              for s in _parse(f"{x} = apart({x})")),
            *(s for x in sums for s in _parse(f"{x} = {_start(how[x], dtypes[x])}")),
            ast.For(loop.target, _parse(f"range({span})")[0].value, [*known, *loop.body], []),
            *(s for x, own in own_sums.items() for s in _parse(f"{own}[{part}] = {x}")),
        ]
        kernel.body[-1 - len(own_sums)].line = getattr(loop, "line", None)
        self.kernels.append(kernel)
        return before + self.call(name, trips, work, arguments, own_sums, own_arrays, dtypes, how, loop)

    def call(self, name: str, trips: ast.expr, work: Work, arguments: list[str], own_sums: dict, own_arrays: dict,
             dtypes: dict, how: dict, loop: ast.For) -> list[ast.stmt]:
        """The statements that call the kernel `name`, and add up what its parts have."""
        ranks = {x: len(p.type.dims) for x, p in zip(loop.carried, loop.op.blocks[0].params[1:]) if isinstance(p.type, Array)}
        sizes = [" * ".join(_lengths(x, ranks[x])) for x in own_arrays]
        count = ", ".join([ast.unparse(trips), spelled(work), *([" + ".join(sizes)] if sizes else [])])
        given = f"({', '.join(arguments)}{',' if len(arguments) == 1 else ''})"
        if not own_sums and not own_arrays:
            return _parse(f"in_parts({name}, parts_of({count}), {ast.unparse(trips)}, {given})")
        parts, part = self.unused("parts"), _local("part", self.taken)
        text = [f"{parts} = parts_of({count})"]
        text += [f"{own} = np.empty({parts}{_dtype(dtypes[x])})" for x, own in own_sums.items()]
        text += [f"{own} = np.zeros(({', '.join([f'{parts} - 1', *_lengths(x, ranks[x])])}){_dtype(dtypes[x])})"
                 for x, own in own_arrays.items()]
        text.append(f"in_parts({name}, {parts}, {ast.unparse(trips)}, {given})")
        if own_sums:
            text += [f"for {part} in range({parts}):", *(f"    {_together(how[x], x, f'{own}[{part}]')}" for x, own in own_sums.items())]
        for x, own in own_arrays.items():
            indices = [_local(i, self.taken) for i in "ijklm"[:ranks[x]]]
            heads = [(part, f"{parts} - 1"), *zip(indices, _lengths(x, ranks[x]))]
            text += ["    " * k + f"for {i} in range({n}):" for k, (i, n) in enumerate(heads)]
            text.append("    " * len(heads) + f"{x}[{', '.join(indices)}] += {own}[{', '.join([part, *indices])}]")
        return _parse("\n".join(text))

    def unused(self, name: str) -> str:
        found = _local(name, self.taken)
        self.taken.add(found)
        return found

    def asked(self, work: Work, trips: str) -> Work:
        """The work of all `trips` in terms of the arguments: what is not known at the call counts as 1, UNKNOWN among its factors."""
        return Work({tuple(self.asked_factor(f) for f in (*key, trips)): n for key, n in work.items()})

    def asked_factor(self, factor: str) -> str:
        """A number of trips in terms of the arguments."""
        tree = _Substitute(self.known).visit(_parse(factor)[0].value)
        text = ast.unparse(tree)
        simple = all(isinstance(node, (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.expr_context, ast.Call, ast.Subscript,
                                       ast.Attribute, ast.UnaryOp, ast.USub)) for node in ast.walk(tree))
        simple = simple and all(isinstance(node.value, ast.Attribute) for node in ast.walk(tree) if isinstance(node, ast.Subscript))
        arguments = {f"a{k}" for k in range(len(self.tree.args.args))}
        if not simple or len(text) > LONG or not _names(tree) <= {*arguments, "max", "min", "len"}:
            return UNKNOWN
        return text


class _Substitute(ast.NodeTransformer):
    def __init__(self, known: dict[str, ast.expr]):
        self.known = known

    def visit_Name(self, node: ast.Name):
        return self.known.get(node.id, node)

    def visit_Call(self, node: ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in ("same_length", "nonempty_length", "spread_length", "broadcast_length", "strips_of"):
            return self.visit(node.args[0])  # a check, or at most so many
        return self.generic_visit(node)


def _known(tree: ast.FunctionDef) -> dict[str, ast.expr]:
    """What the names say that are assigned once, at the top of the function, in terms of its parameters where it can be said."""
    counts = Counter(_stored(tree.body))
    known: dict[str, ast.expr] = {a.arg: ast.Name(f"a{k}", ast.Load()) for k, a in enumerate(tree.args.args)}
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name)], value) if counts[name] == 1 and name not in known:
                known[name] = _Substitute(known).visit(_parse(ast.unparse(value))[0].value)
    return known


# ---------------------------------------------------------------------------------------------- work


def work_of(body: Sequence[ast.stmt], inside: set[str], index: str = "", trips: ast.expr | None = None) -> Work:
    """The operations of one run of `body`, in terms of what is known outside the loop, which stores the names `inside`."""
    found = Work()
    for statement in body:
        match statement:
            case ast.For(_, ast.Call() as iterator, inner):
                found += _operations(iterator)
                own = _trips(iterator)[1]
                names, share = _names(own), 1
                if index in names and trips is not None:  # a triangle: half of a rectangle
                    own, share = _Substitute({index: trips}).visit(_parse(ast.unparse(own))[0].value), 2
                known = not _names(own) & inside
                for key, n in work_of(inner, inside, index, trips).items():
                    factor = (ast.unparse(own),) if known else ()
                    number = own.value if isinstance(own, ast.Constant) else None
                    if number is not None:
                        factor = ()
                    found[(*key, *factor)] += -(-n // share) * (1 if factor else MANY if number is None else max(number, 0))
            case ast.For() | ast.While():
                for key, n in work_of(statement.body, inside, index, trips).items():
                    found[key] += n * MANY
            case ast.If(test, first, second):
                found += _operations(test)
                for arm in (first, second):
                    for key, n in work_of(arm, inside, index, trips).items():
                        found[key] += n if not second else -(-n // 2)
            case _:
                found += _operations(statement)
    return found


def _operations(tree: ast.AST) -> Work:
    count = 0
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(_, ast.Pow()):
                count += 8
            case ast.BinOp(_, ast.Div() | ast.FloorDiv() | ast.Mod()):
                count += 4
            case ast.BinOp(_, ast.MatMult()) | ast.Call(ast.Name("blas_product")) | ast.Call(
                    ast.Attribute(ast.Attribute(_, "linalg"))):
                count += CALL
            case ast.Call(ast.Attribute(_, name) | ast.Name(name)):
                count += 6 if name.removeprefix("vector_") in SLOW else 1  # vectorised 3, by libm 12
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Subscript() | ast.AugAssign():
                count += 1
    return Work({(): count})


def spelled(work: Work) -> str:
    """A sum of products, as Python."""
    terms = sorted(((key, n) for key, n in work.items() if n), key=lambda item: len(item[0]))
    texts = [" * ".join([*([str(n)] if n != 1 or not key else []), *(_factor(f) for f in key)]) for key, n in terms]
    return " + ".join(texts) or "1"


def _factor(text: str) -> str:
    tree = _parse(text)[0].value
    return text if isinstance(tree, (ast.Name, ast.Constant, ast.Call, ast.Subscript)) else f"({text})"


# -------------------------------------------------------------------------------------------- pieces


def _trips(iterator: ast.expr) -> tuple[ast.expr, ast.expr, bool]:
    """Where a `range` starts, how many numbers it gives, and whether it goes down."""
    match iterator.args:
        case [stop]:
            return ast.Constant(0), stop, False
        case [start, stop]:
            return start, _difference(stop, start), False
        case [start, stop, ast.UnaryOp(ast.USub(), ast.Constant(1)) | ast.Constant(-1)]:
            return start, _difference(start, stop), True
        case [start, stop, _]:
            return start, _difference(stop, start), False


def _span(low: ast.expr, start: str, stop: str, down: bool) -> str:
    """The arguments of the `range` of the trips `start` to `stop` of a loop that begins at `low`."""
    if isinstance(low, ast.Constant) and low.value >= 0 and not down:
        start, stop = f"natural({start})", f"natural({stop})"
        return f"{start}, {stop}" if low.value == 0 else f"{low.value} + {start}, {low.value} + {stop}"
    first = ast.unparse(low) if isinstance(low, ast.BinOp) and isinstance(low.op, (ast.Add, ast.Sub, ast.Mult)) else _factor(ast.unparse(low))
    sign = "-" if down else "+"
    return f"{first} {sign} {start}, {first} {sign} {stop}" + (", -1" if down else "")


def _difference(a: ast.expr, b: ast.expr) -> ast.expr:
    """a - b; of n - 1 and -1, n."""
    match a, b:
        case ast.BinOp(n, ast.Sub(), ast.Constant(k)), (ast.UnaryOp(ast.USub(), ast.Constant(j)) | ast.Constant(j)) if k == abs(j) == 1:
            return n
        case ast.Constant(x), ast.Constant(y):
            return ast.Constant(x - y)
    return ast.BinOp(a, ast.Sub(), b)


def _exposed(body: Sequence[ast.stmt], names: set[str]) -> Iterator[str]:
    """Those of the names that may be read before `body` assigns them."""
    found: dict[str, None] = {}

    def read(tree: ast.AST, assigned: set[str]) -> None:
        found.update((n, None) for n in _loaded([tree]) if n in names and n not in assigned)

    def visit(body: Sequence[ast.stmt], assigned: set[str]) -> set[str] | None:
        """What is assigned at the end; None if the end is not reached."""
        for statement in body:
            match statement:
                case ast.For(target, iterator, inner):
                    read(iterator, assigned)
                    visit(inner, assigned | {target.id})
                case ast.While(test, inner):
                    read(test, assigned)
                    visit(inner, set(assigned))
                    if isinstance(test, ast.Constant) and test.value:
                        assigned = assigned | _before_break(inner)
                case ast.If(test, first, second):
                    read(test, assigned)
                    ends = [end for end in (visit(first, set(assigned)), visit(second, set(assigned))) if end is not None]
                    if not ends:
                        return None
                    assigned = set.intersection(*ends)
                case ast.Continue() | ast.Break():
                    return None
                case ast.AugAssign(ast.Name(name), _, value):
                    read(value, assigned)
                    read(ast.Name(name, ast.Load()), assigned)
                    assigned = assigned | {name}
                case ast.Assign(targets, value):
                    read(value, assigned)
                    for target in targets:
                        for node in ast.walk(target):
                            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                                read(node, assigned)
                    assigned = assigned | set(_stored([statement]))
                case _:
                    read(statement, assigned)
        return assigned

    visit(body, set())
    return iter(found)


def _before_break(body: Sequence[ast.stmt]) -> set[str]:
    """What a loop surely assigns before it can be left."""
    found: set[str] = set()
    for statement in body:
        if any(isinstance(node, (ast.Break, ast.Continue)) for node in ast.walk(statement)):
            break
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            found.update(_stored([statement]))
    return found


def _stored(body: Sequence[ast.stmt]) -> Iterator[str]:
    return (node.id for s in body for node in ast.walk(s) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _loaded(trees: Sequence[ast.AST]) -> Iterator[str]:
    """The names that are read, in the order of the text."""
    for tree in trees:
        if isinstance(tree, ast.Name) and isinstance(tree.ctx, ast.Load):
            yield tree.id
        yield from _loaded(list(ast.iter_child_nodes(tree)))


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _local(name: str, taken: set[str]) -> str:
    unused, k = name, 1
    while unused in taken:
        unused, k = f"{name}_{k}", k + 1
    return unused


def _lengths(x: str, rank: int) -> list[str]:
    return [f"len({x})"] if rank == 1 else [f"{x}.shape[{k}]" for k in range(rank)]


def _dtype(dtype: str) -> str:
    return "" if dtype == "float64" else f", np.{dtype if dtype != 'bool' else 'bool_'}"


def _zero(dtype: str) -> str:
    return {"float64": "0.0", "int64": "0", "complex128": "0j"}.get(dtype, f"np.{dtype}(0)")


def _start(how: str, dtype: str) -> str:
    """What a part starts a sum, or the like, from."""
    if how == "sum":
        return _zero(dtype)
    real, whole, _ = COMBINED[how]
    text = real if dtype.startswith("float") else whole.format(dtype=dtype)
    return text if dtype in ("float64", "int64") else f"np.{dtype}({text})"


def _together(how: str, s: str, x: str) -> str:
    """The statement that adds what a part has to the sum."""
    return f"{s} += {x}" if how == "sum" else f"{s} = {COMBINED[how][2].format(s=s, x=x)}"


def _parse(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _function(text: str) -> ast.FunctionDef:
    (tree,) = _parse(text)
    return tree
