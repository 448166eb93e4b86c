"""One loop as a CUDA kernel: each trip a thread.

    for lane in range(n):            @cuda.jit
        x[lane] = f(a[lane])         def f_kernel(n, a, x):
                                         n = uint32(n)
                           becomes       lane = uint32(cuda.grid(1))
                                         stride = uint32(cuda.gridsize(1))
                                         while lane < n:
                                             x[lane] = f(a[lane])
                                             lane = uint32(lane + stride)

The loop's body is emitted again as a function of what it reads, in the spelling that numba.cuda compiles,
printed by the printer, and its head replaced.  Indices are unsigned and of 32 bits: signed ones cost ten
times the instructions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import UnsupportedError
from ..ir.builder import Builder, add_op, emit
from ..ir.graph import MISSING, Block, Function, Op, Value, free_values, walk
from ..ir.rebuild import emit_op
from ..ir.types import INT, NONE, Array, Extent, Scalar, Tape, Type, Undefined
from ..ops.control import for_loop, if_, make_undefined, while_loop
from ..ops.elementwise import select
from ..ops.record import RECORDS, Record, value
from ..ops.shape import length
from ..ops.ufunc import IN_MATH
from .independent import Trip
from .python import definition
from .statements import negated

THREADS = 128  # in a block; sums are added up in a tree, so a power of two

# --------------------------------------------------------------------------- ops that only kernels have


def _infer_given(*, type: Type, key: str) -> Type:
    return type


given = Record("given", evaluate=None, infer=_infer_given,  # an array that the kernel is handed to write into
               syntax=lambda *, type, key: ast.Call(ast.Name("given", ast.Load()), [ast.Constant(key)], []))


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.parse(name, mode="eval").body, list(args), [])


def _tuple(indices: Sequence[ast.expr]) -> ast.expr:
    return indices[0] if len(indices) == 1 else ast.Tuple(list(indices), ast.Load())


lane_row = Record("lane row", evaluate=None, infer=lambda a, i: Array(a.type.dtype, a.type.dims[1:]),  # memory of a lane's own
                  syntax=lambda a, i: ast.Subscript(a, i, ast.Load()))
atomic_add = Record("atomic add", evaluate=None, infer=lambda a, v, *index: NONE, pure=False,
                    syntax=lambda a, v, *index: _call("cuda.atomic.add", a, _tuple(index), v))
atomic_max = Record("atomic max", evaluate=None, infer=lambda a, v: NONE, pure=False,
                    syntax=lambda a, v: _call("cuda.atomic.max", a, ast.Constant(0), v))


@dataclass
class Kernel:
    """A kernel: its text as a tree, what the host passes to it, and what it makes."""

    name: str
    tree: ast.FunctionDef
    reads: list[Value]  # values of the host that are its first arguments
    types: list[Type]  # of all its arguments
    writes: dict[str, Value] = field(default_factory=dict)  # by key: the arrays it writes, in order
    tapes: list[Type] = field(default_factory=list)
    rooms: dict[str, list[Value | tuple[Value, int]]] = field(default_factory=dict)  # by key: the lengths of a lane's array


# ------------------------------------------------------------------------------------- spelling of numbers


def _twins() -> dict[str, Callable]:
    """What numba.cuda does not compile under NumPy's name, in terms of what it does."""
    ew = RECORDS
    return {
        "square": lambda x: x * x,
        "reciprocal": lambda x: 1.0 / x,
        "exp2": lambda x: 2.0 ** x,
        "positive": lambda x: x,
        "sign": lambda x: select(x > 0, 1.0, select(x < 0, -1.0, x * 0.0)),
        "maximum": lambda a, b: select(ew["not_equal"](a, a), a, select(a < b, b, a)),
        "minimum": lambda a, b: select(ew["not_equal"](a, a), a, select(b < a, b, a)),
        "clip": lambda x, lo, hi: select(x < lo, lo, select(x > hi, hi, x)),
        "where": lambda c, a, b: select(c, a, b),
        "isnan": lambda x: ew["not_equal"](x, x),
        "logical_and": lambda a, b: select(a, ew["bool_"](b), False),
        "logical_or": lambda a, b: select(a, True, ew["bool_"](b)),
        "logical_not": lambda a: ew["not_"](a),
        "logaddexp": lambda a, b: ew["max_"](a, b) + ew["math.log1p"](ew["math.exp"](-ew["abs_"](a - b))),
        "absolute": lambda x: ew["abs_"](x),
        "heaviside": lambda x, h: select(x > 0, 1.0, select(x < 0, 0.0, h)),
    }


ROUNDED = ("floor", "ceil", "trunc")  # math's give integers


def respell(op: Op, inputs: list[Value]):
    """A scalar op as numba.cuda compiles it; None for the op itself."""
    record = op.record
    if not record.elementwise:
        return None
    typed = [_typed(x, op.output.type) for x in inputs]
    if record.name in _twins():
        return value(_twins()[record.name](*typed))
    if record in IN_MATH:
        result = IN_MATH[record](*typed)
        return RECORDS["float_"](result) if record.name in ROUNDED else result
    spelling = record.syntax(*(ast.Name("x", ast.Load()) for _ in inputs), **op.attrs)
    if isinstance(spelling, ast.Call) and isinstance(spelling.func, ast.Attribute) and record.name != "convert" \
            and getattr(spelling.func.value, "id", "") == "np":
        raise UnsupportedError(f"np.{spelling.func.attr} in a CUDA kernel", op.line,
                               "write it with functions of Python's math module")
    return emit(record, *typed, **op.attrs)


def _typed(x: Value, wanted: Type) -> Value:
    """Python's numbers in float32 arithmetic: a bare literal would make it float64."""
    if type(x.constant) is float and wanted == Scalar("float32"):
        return value(np.float32(x.constant))
    return x


# ------------------------------------------------------------------------------------ emitting the body


class Body:
    """Emits ops of a lane for a kernel; a growing tape becomes a column of an array and a count."""

    def __init__(self, env: dict[Value, Value]):
        self.env = env
        self.lane: Value | None = None
        self.capacity: Value | None = None  # of a tape
        self.needed: Value | None = None  # an array of one: the largest count of all lanes
        self.columns: dict[Value, Value] = {}  # by what tape_new makes: the array of all lanes' tapes
        self.tapes: dict[Value, tuple[Value, Value]] = {}  # that array now, and this lane's count
        self.made: dict[Value, Value] = {}  # by tape: what tape_new made, of which it is a version
        self.latest: dict[Value, Value] = {}  # the other way round: the last version of the array
        self.gathered: set[Value] = set()  # arrays to which lanes add anywhere
        self.rooms: dict[Value, Value] = {}  # by array made in a lane: the array of all lanes' such arrays

    def block(self, block: Block, args: Sequence[Value] = ()) -> list[Value]:
        self.env.update(zip(block.params, args))
        for op in block.ops:
            self.op(op)
        return [self.env.get(y, y) for y in block.yields]

    def op(self, op: Op) -> None:
        match op.name:
            case "tape_new":
                self.version(op.output, op.output, (self.columns[op.output], value(0)))
            case "tape_push":
                pushed = self.push(*self.tapes[op.inputs[0]], self.env[op.inputs[1]])
                self.version(op.output, self.made[op.inputs[0]], pushed)
            case "tape_pop":
                array, count = self.tapes[op.inputs[0]]
                count = count - 1
                self.version(op.outputs[0], self.made[op.inputs[0]], (array, count))
                index = RECORDS["min_"](count, self.capacity - 1)
                self.env[op.outputs[1]] = RECORDS["getitem"](array, index, self.lane, pattern=("i", "i"))
                self.env[op.outputs[1]].name = op.outputs[1].name
            case "tape_len":
                self.env[op.output] = self.tapes[op.inputs[0]][1]
            case "buffer" | "copy" if op.output in self.rooms:
                self.env[op.output] = self.room(op)
            case "additem" if op.inputs[0] in self.gathered:
                target = self.env[op.inputs[0]]
                emit(atomic_add, target, *(self.env[x] for x in op.inputs[1:]))
                self.env[op.output] = target
                self.gathered.add(op.output)
            case "for" | "while" | "if":
                self.control(op)
                for out in op.outputs:
                    if isinstance(out.type, Tape) and _pushes(op):
                        emit(atomic_max, self.needed, self.tapes[out][1])
            case _:
                emit_op(op, self.env, respell)

    def room(self, op: Op) -> Value:
        """The array that `op` makes, in memory that the kernel is handed for each lane."""
        row = emit(lane_row, self.rooms[op.output], self.lane)
        row.name = op.output.name
        if op.name == "buffer" and not op.attrs["zero"]:
            return row
        source = self.env[op.inputs[0]] if op.name == "copy" else None

        def filled(row: Value, index: tuple[Value, ...]) -> Value:
            if len(index) < len(row.type.dims):
                return for_loop(0, length(row, axis=len(index)), 1, [row],
                                lambda i, inner: [filled(inner, (*index, i))], names=[row.name])[0]
            pattern = ("i",) * len(index)
            x = value(0.0) if source is None else RECORDS["getitem"](source, *index, pattern=pattern)
            return RECORDS["setitem"](row, x, *index, pattern=pattern)

        return filled(row, ())

    def version(self, tape: Value, made: Value, parts: tuple[Value, Value]) -> None:
        """Say what `tape`, a version of the tape `made`, is."""
        self.tapes[tape], self.made[tape], self.latest[made] = parts, made, parts[0]

    def push(self, array: Value, count: Value, x: Value) -> tuple[Value, Value]:
        """Written if there is room; counted in any case, so that the host learns how much room it takes."""
        (array,) = if_(count < self.capacity,
                       lambda: [RECORDS["setitem"](array, x, count, self.lane, pattern=("i", "i"))], lambda: [array],
                       [array.name])
        return array, count + 1

    def control(self, op: Op) -> None:
        """An op with blocks; a tape that it carries is carried as two values."""
        if op.name == "if":
            outs = if_(self.env.get(op.inputs[0], op.inputs[0]), lambda: self.spread(self.block(op.blocks[0]), op.blocks[0].yields),
                       lambda: self.spread(self.block(op.blocks[1]), op.blocks[1].yields), self.names(op.outputs))
            return self.gather(op.outputs, outs, op.blocks[0].yields)
        skip = 3 if op.name == "for" else 0
        body = op.blocks[-1]
        params, breaks = body.params[1 if skip else 0:], op.attrs["breaks"]
        starts = self.spread([self.env.get(x) for x in op.inputs[skip:]], op.inputs[skip:])

        def step(*args: Value) -> list[Value]:
            index, carries = (args[:1], args[1:]) if skip else ((), args)
            self.env.update(zip(body.params[:1] if skip else (), index))
            self.gather(params, carries, op.inputs[skip:])
            for inner in body.ops:
                self.op(inner)
            stops = 1 if breaks else 0
            return [self.env.get(y, y) for y in body.yields[:stops]] + self.spread(
                [self.env.get(y, y) for y in body.yields[stops:]], body.yields[stops:])

        if skip:
            bounds = [self.env.get(x, x) for x in op.inputs[:3]]
            outs = for_loop(*bounds, starts, step, breaks, self.names(params), body.params[0].name)
        else:
            head = op.blocks[0]

            def test(*carries: Value) -> Value:
                self.gather(head.params, carries, op.inputs[skip:])
                for inner in head.ops:
                    self.op(inner)
                return self.env.get(head.yields[0], head.yields[0])

            outs = while_loop(starts, test, step, breaks, self.names(params))
        self.gather(op.outputs, outs, op.inputs[skip:])

    def names(self, olds: Sequence[Value]) -> list[str]:
        return [n for v in olds for n in ([v.name, f"{v.name or 'tape'}_count"] if isinstance(v.type, Tape) else [v.name])]

    def spread(self, news: Sequence[Value], olds: Sequence[Value]) -> list[Value]:
        """Tapes as their two values."""
        found: list[Value] = []
        for new, old in zip(news, olds):
            found += self.tapes[old] if isinstance(old.type, Tape) else [new]
        return found

    def gather(self, olds: Sequence[Value], news: Sequence[Value], sources: Sequence[Value]) -> None:
        """Two values as a tape, a version of the same as its source."""
        rest = list(news)
        for old, source in zip(olds, sources):
            if isinstance(old.type, Tape):
                self.version(old, self.made[source], (rest.pop(0), rest.pop(0)))
            else:
                self.env[old] = rest.pop(0)


def _pushes(op: Op) -> bool:
    return any(inner.name == "tape_push" for block in op.blocks for inner in walk(block))


# ------------------------------------------------------------------------------------------ the kernels


def parallel_kernel(loop: Op, roles: Sequence[str], name: str) -> Kernel:
    """The kernel whose threads make the trips of an independent loop.

    Its arguments: the number of trips, what the loop reads, the arrays it writes, and for each sum an
    array to which every block writes its part; for tapes, their capacity and how much was needed.
    """
    (body,) = loop.blocks
    low = loop.inputs[0]
    read = [v for v in dict.fromkeys([*free_values(body), low]) if is_argument(v)]
    count = Value(INT, "n")
    params = [Value(v.type, v.name) for v in read]
    env = dict(zip(read, params))
    block = Block([count, *params])
    kernel = Kernel(name, None, read, [INT, *(v.type for v in read)])
    with Builder(block):
        work = Body(env)
        env.update((v, known(v)) for v in free_values(body) if not is_argument(v))
        tapes = [op.output for op in walk(body) if op.name == "tape_new"]
        if tapes:
            work.capacity = Value(INT, "capacity")
            block.params.append(work.capacity)
            kernel.types.append(INT)
            work.needed = _given(kernel, "needed", Array("int64", (1,)), "needed")
            for k, tape in enumerate(tapes):
                item = _item_of(body, tape)
                work.columns[tape] = _given(kernel, f"tape {k}", Array(item.dtype, (Extent("capacity"), Extent("n"))),
                                            tape.name or "tape")
                kernel.tapes.append(item)
        for k, op in enumerate(arrays_made(body)):
            kernel.rooms[f"room {k}"] = lengths_outside(op, body)
            type = Array(op.output.type.dtype, (Extent("n"), *op.output.type.dims))
            work.rooms[op.output] = _given(kernel, f"room {k}", type, f"{op.output.name or 't'}_rows")
        starts = [work.columns[tape] for tape in tapes]
        for k, (role, param) in enumerate(zip(roles, body.params[1:])):
            if role == "sum":
                zero = np.dtype(param.type.dtype).type(0)
                starts.append(value(zero.item() if param.type.dtype in ("int64", "float64") else zero))
            else:
                starts.append(_given(kernel, k, param.type, param.name or "out"))
            if role == "gather":
                work.gathered.update(Trip(body).versions(param))

        def trip(index: Value, *carries: Value) -> list[Value]:
            work.lane = index
            work.columns.update(zip(tapes, carries))
            work.env[body.params[0]] = index if low.constant == 0 else index + (env[low] if is_argument(low) else known(low))
            ends = work.block(Block(body.params[1:], body.ops, body.yields), carries[len(tapes):])
            return [work.latest[tape] for tape in tapes] + ends

        names = [start.name for start in starts[:len(tapes)]] + [p.name for p in body.params[1:]]
        outs = for_loop(0, count, 1, starts, trip, names=names, index=body.params[0].name or "i")[len(tapes):]
        sums = [k for k, role in enumerate(roles) if role == "sum"]
        block.yields = [*(outs[k] for k in sums), *(out for k, out in enumerate(outs) if k not in sums)]
    tree = definition(Function(name, block, tupled=True), native=True)
    parts = [(k, body.params[1 + k].type.dtype) for k in sums]
    kernel.tree = _threads(tree, kernel, parts)
    kernel.types += [Array(dtype, (Extent("blocks"),)) for _, dtype in parts]
    return kernel


def single_kernel(loop: Op, name: str) -> Kernel:
    """The kernel whose only thread makes all the trips of a loop that must run in order."""
    skip = 3 if loop.name == "for" else 0
    inits = loop.inputs[skip:]
    read = [v for v in dict.fromkeys([*loop.inputs[:skip], *(x for x in inits if not isinstance(x.type, Array)),
                                      *(v for block in loop.blocks for v in free_values(block))])
            if is_argument(v)]
    params = [Value(v.type, v.name) for v in read]
    env = dict(zip(read, params))
    block = Block(list(params))
    kernel = Kernel(name, None, read, [v.type for v in read])
    with Builder(block):
        work = Body(env)
        outside = [*loop.inputs, *(v for b in loop.blocks for v in free_values(b))]
        env.update((v, known(v)) for v in outside if not is_argument(v))
        for k, x in enumerate(inits):
            if isinstance(x.type, Array):
                env[x] = _given(kernel, k, x.type, loop.outputs[k].name or "out")
        work.op(loop)
        yields = []
        for k, out in enumerate(loop.outputs):
            if not isinstance(out.type, Array):
                cell = _given(kernel, k, Array(out.type.dtype, (1,)), f"{out.name or 'out'}_out")
                yields.append(RECORDS["setitem"](cell, work.env[out], value(0), pattern=("i",)))
            else:
                yields.append(work.env[out])
        block.yields = yields
    tree = definition(Function(name, block, tupled=True), native=True)
    tree.body = [s for s in tree.body if not isinstance(s, ast.Return)]
    kernel.tree = _with_given(tree, kernel)
    return kernel


def arrays_made(body: Block) -> list[Op]:
    """The ops of a lane that make arrays."""
    return [op for op in body.ops if op.name in ("buffer", "copy") and isinstance(op.output.type, Array)]


def lengths_outside(op: Op, body: Block) -> list[Value | tuple[Value, int]] | None:
    """The lengths of the array that `op` makes in a lane, as the host knows them: numbers, or axes of arrays."""
    outside = free_values(body)
    if op.name == "buffer":
        return list(op.inputs) if all(x in outside or x.constant is not MISSING for x in op.inputs) else None
    found: list[Value | tuple[Value, int]] = []
    for d in op.output.type.dims:
        if isinstance(d, int):
            found.append(value(d))
            continue
        axes = [(x, x.type.dims.index(d)) for x in outside if isinstance(x.type, Array) and d in x.type.dims]
        if not axes:
            return None
        found.append(axes[0])
    return found


def is_argument(v: Value) -> bool:
    """Whether the host has to pass `v`: it is neither a constant nor unbound."""
    return v.constant is MISSING and not isinstance(v.type, Undefined)


def known(v: Value) -> Value:
    """A value that is no argument, again."""
    return make_undefined() if isinstance(v.type, Undefined) else value(v.constant)


def _item_of(block: Block, tape: Value) -> Scalar:
    """What a tape holds."""
    for op in walk(block):
        if tape in op.inputs and (op.blocks or op.name == "tape_push"):
            item = op.outputs[op.inputs.index(tape) - len(op.inputs) + len(op.outputs) if op.blocks else 0].type.item
            if isinstance(item, Scalar):
                return item
    raise UnsupportedError("a tape of arrays in a CUDA kernel", tape.op.line, "let each lane save numbers")


def _given(kernel: Kernel, key, type: Type, name: str) -> Value:
    op = add_op(given, [], {"type": type, "key": key}, [type], names=[name])
    kernel.writes[key] = op.output
    return op.output


# -------------------------------------------------------------------------------------------- the trees


def _with_given(tree: ast.FunctionDef, kernel: Kernel) -> ast.FunctionDef:
    """Arrays that the kernel is handed become its last arguments."""
    names = {}
    body = []
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("given"), [ast.Constant(key)])):
                names[key] = name
            case _:
                body.append(statement)
    kernel.writes = {key: v for key, v in kernel.writes.items() if key in names}
    tree.args.args += [ast.arg(names[key]) for key in kernel.writes]
    kernel.types += [v.type for v in kernel.writes.values()]
    tree.body = body
    tree.decorator_list = [ast.parse("cuda.jit", mode="eval").body]
    return tree


def _threads(tree: ast.FunctionDef, kernel: Kernel, parts: list[tuple[int, str]]) -> ast.FunctionDef:
    """The loop of the tree spread over the threads of the grid; its sums added up block by block."""
    tree = _with_given(tree, kernel)
    place = next(k for k, s in enumerate(tree.body) if isinstance(s, ast.For))
    loop = tree.body[place]
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {a.arg for a in tree.args.args}
    index, count = loop.target.id, tree.args.args[0].arg
    as_index = _only_indexes(loop.body, index)
    thread = index if as_index else _unused("thread", taken)
    stride = _unused("stride", taken)
    inner = _without_continue(loop.body)
    if not as_index:
        inner = [*_parse(f"{index} = int64({thread})"), *inner]
    tree.body[place:place + 1] = [
        *_parse(f"{count} = uint32({count})\n{thread} = uint32(cuda.grid(1))\n{stride} = uint32(cuda.gridsize(1))"),
        ast.While(_expression(f"{thread} < {count}"), [*inner, *_parse(f"{thread} = uint32({thread} + {stride})")], []),
    ]
    results = tree.body.pop().value.elts
    if parts:
        t = _unused("t", taken)
        tree.body += _parse(f"{t} = cuda.threadIdx.x")
        for (_, dtype), result in zip(parts, results):
            tree.body += _block_sum(result.id, dtype, t, taken, tree)
    return tree


def _block_sum(total: str, dtype: str, t: str, taken: set[str], tree: ast.FunctionDef) -> list[ast.stmt]:
    """The threads' sums, added up in shared memory as a tree."""
    shared, half, into = _unused(f"{total}_shared", taken), _unused("half", taken), _unused(f"{total}_parts", taken)
    taken.discard(half)
    tree.args.args.append(ast.arg(into))
    return _parse(f"""
{shared} = cuda.shared.array(THREADS, {dtype})
{shared}[{t}] = {total}
cuda.syncthreads()
{half} = THREADS // 2
while {half} > 0:
    if {t} < {half}:
        {shared}[{t}] += {shared}[{t} + {half}]
    cuda.syncthreads()
    {half} //= 2
if {t} == 0:
    {into}[cuda.blockIdx.x] = {shared}[0]
""")


def _parse(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _unused(name: str, taken: set[str]) -> str:
    unused, k = name, 1
    while unused in taken:
        unused, k = f"{name}_{k}", k + 1
    taken.add(unused)
    return unused


def _only_indexes(body: list[ast.stmt], index: str) -> bool:
    """Whether `index` is read only between brackets: arithmetic on it must not be unsigned."""
    inside: set[int] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Subscript):
                entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                inside.update(id(e) for e in entries)
    return all(id(node) in inside for statement in body for node in ast.walk(statement)
               if isinstance(node, ast.Name) and node.id == index)


def _without_continue(body: list[ast.stmt]) -> list[ast.stmt]:
    """A `continue` would skip the step to the next trip: what follows it moves into the else branch."""
    for k, statement in enumerate(body):
        match statement:
            case ast.If(test, [*first, ast.Continue()], []):
                rest = _without_continue(body[k + 1:])
                if not first:
                    return [*body[:k], ast.If(negated(test), rest, [])]
                return [*body[:k], ast.If(test, first, rest)]
    return body
