"""Compile the loop form to CUDA: kernels for the loops, and host code that launches them.

Every outermost independent loop becomes a kernel of its own (kernel.py); a sequential loop runs in
a kernel of one thread, or, if there are independent loops inside it, on the host, which then
launches those. Arrays are CuPy's, on the device from the first line to the last; numbers stay on
the host. Ops without a loop (a matrix product, say) are calls of CuPy, which launches cuBLAS,
cuSOLVER or cuFFT. Numba's simulator has no CuPy: there `cp` is NumPy, whose arrays its kernels
take.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import operator
import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...analysis.alias import Memory
from ...errors import Line, UnsupportedError
from ...ir.builder import Builder, add_op, at, current, emit
from ...ir.graph import (
    MISSING,
    Block,
    Function,
    Op,
    Value,
    op_free_values,
    walk,
)
from ...ir.reemit import emit_op
from ...ir.types import INT, NONE, Array, Scalar, Tape, Type
from ...ops.arrays.reshape import only
from ...ops.core.control import (
    for_loop,
    if_,
    if_record,
    while_loop,
)
from ...ops.core.record import RECORDS, Record, value
from ...ops.core.shape import length
from ...ops.program.effects import Made, raise_record
from ..loopir.ops import contiguous, dtype_syntax
from ..print.insert_copies import insert_copies
from ..print.printer import Module, definition
from ..syntax.ast_builders import call, dotted_call
from ..syntax.unparse import Unparser
from .block_reductions import MEET, identity, name_of, reduction_by, text_of
from .device_numbers import device_numbers, is_arithmetic
from .kernel import (
    CUDA_NAMES,
    THREADS,
    Kernel,
    counts_key,
    parallel_kernel,
    tape_key,
    trip_count,
)
from .lane_tapes import mark_lane_tapes
from .nests import LANE_TAPES, Nest, Roles, nest_of
from .serial_regions import collect_regions
from .thread_body import is_lane_code

BLOCKS = 1024  # most blocks of a grid: threads then make several trips each
ROOM = 2**25  # most numbers in an array that has a part for each team, or at first for each lane
CAPACITY = 64  # what a lane can save on a tape at first, if all lanes have ROOM


@dataclass(frozen=True)
class CudaModule(Module):
    """A module of kernels and the function that launches them, with the types of each kernel.

    `waits` are the lines at which each trip of a loop of the host waits for the device, or arrays
    go through the host, and what is said of them.
    """

    kernels: dict[str, str] = field(default_factory=dict)
    waits: tuple[tuple[Line, str], ...] = ()


def render_cuda(function: Function, threads: int = THREADS,
                has_stream: bool = False) -> CudaModule:
    """`function`, in loop form, as a module for numba.cuda.

    Its entry takes arrays on the device and returns arrays on the device. `threads` is the number
    of threads in a block: a power of two. With `has_stream` kernels are on the module's `STREAM`.
    """
    in_loops = {inner for op in walk(function.block) if op.blocks and op.record is not if_record
                for block in op.blocks for inner in walk(block)}
    for op in walk(function.block):
        if op.record is raise_record and (op in in_loops or not raises_builtin(op)) \
                or op.record.outward:
            raise UnsupportedError(f"{op.name.split('_')[0]} in CUDA code", op.line,
                                   'compile for target="cpu", or leave it out')
        if hasattr(op.record.helper, "asks_for"):
            raise UnsupportedError(
                f"{op.record.helper.asks_for}, which Python does, in CUDA code", op.line,
                'compile for target="cpu", or call it outside of what is compiled')
    function = insert_copies(function, results=True, augmented=False)
    host = Host(collect_regions(mark_lane_tapes(function)), has_stream)
    main = host.function()
    helpers = {op.record.helper: None for op in walk(main.block) if op.record.helper is not None}
    launched = {op.attrs["kernel"] for op in walk(main.block) if op.record is launch}
    host.kernels = [kernel for kernel in host.kernels if kernel.name in launched]
    trees = ([kernel.tree for kernel in host.kernels]
             + [definition(main, native=True,
                           reserved=CUDA_NAMES.union(k.name for k in host.kernels))])
    used = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    steps = {step for kernel in host.kernels for step in kernel.steps}
    texts = [text for name, text in TEXTS.items() if name in used]
    texts += [text for _, text in sorted((name_of(*step), text_of(*step)) for step in steps)]
    used.update(re.findall(r"\w+", "".join(texts)))
    unparser = Unparser()
    unparser.out = _header(used, threads)
    for text in texts:
        unparser.out += ["", "", *text.strip().split("\n")]
    for helper in helpers:
        unparser.out += ["", "", *textwrap.dedent(inspect.getsource(helper)).rstrip().split("\n")]
    for tree in trees:
        unparser.out += ["", ""]
        unparser.statement(tree)
    lines = {number + 1: line for number, line in unparser.lines.items()}
    text = "\n".join(line.rstrip() for line in unparser.out) + "\n"
    return CudaModule(text, main.name, lines, waits=tuple(dict.fromkeys(host.waits)),
                      kernels={k.name: signature(k) for k in host.kernels})


def raises_builtin(op: Op) -> bool:
    """Whether what `op` raises has a name in every module."""
    thrown = op.attrs["thrown"]
    return isinstance(thrown, Made) and thrown.kind in vars(builtins).values()


def _header(used: set[str], threads: int) -> list[str]:
    types = [name for name in ("boolean", "float32", "float64", "int64", "uint32") if name in used]
    arrays = ["if config.ENABLE_CUDASIM:", "    import numpy as cp", "else:",
              "    import cupy as cp", ""] if "cp" in used else []
    numba = [*(["config"] if arrays else []), "cuda", *types]
    sizes = {"TEAMS": f"{16 * BLOCKS}  # in a grid of theirs, at most",
             "ROOM": f"{ROOM}  # numbers in an array of theirs, or of tapes at first"}
    if "STREAM" in used:
        arrays += ["STREAM = 0  # of kernels: the caller sets it", ""]
    teams = [f"{name} = {text}" for name, text in sizes.items() if name in used]
    return [*(["import math"] if "math" in used else []), "import numpy as np",
            f"from numba import {', '.join(sorted(numba, key=lambda name: name != 'config'))}", "",
            *arrays, f"THREADS = {threads}  # in a block",
            f"BLOCKS = {BLOCKS}  # in a grid, at most", *teams]


def signature(kernel: Kernel) -> str:
    """The types of a kernel's arguments, as Numba writes them: arrays are contiguous."""
    return f"({', '.join(map(_numba_type, kernel.types))},)"


def _numba_type(type: Type) -> str:
    match type:
        case Array(dtype, dims):
            return f"{dtype}[{':, ' * (len(dims) - 1)}::1]"
        case Scalar("bool"):
            return "boolean"
    return type.dtype


BLOCKS_OF = '''
def blocks_of(n):
    """How many blocks make n trips."""
    if n >= 2**32 - BLOCKS * THREADS:
        raise ValueError("a CUDA kernel makes fewer than 2**32 trips")
    return max(1, min((n + THREADS - 1) // THREADS, BLOCKS))
'''

TEAMS_OF = '''
def teams_of(n, m, size=0):
    """The blocks, and the threads of a team and the teams in each, for n trips with m inside.

    Each team has arrays of so many numbers in all of its own: they all get ROOM numbers.
    """
    if n >= 2**32 - TEAMS * THREADS:
        raise ValueError("a CUDA kernel makes fewer than 2**32 trips")
    most = ROOM // size if size else TEAMS * THREADS
    if m < min(16, THREADS):
        return max(1, min((n + THREADS - 1) // THREADS, BLOCKS, most // THREADS)), (1, THREADS)
    lanes = min(32, THREADS)
    while lanes < THREADS and 4 * lanes <= m:
        lanes *= 2
    return max(1, min(n, most, BLOCKS if size else TEAMS)), (lanes, 1)
'''

ROOM_FOR = f'''
def room_for(n):
    """How much each of n lanes can save at first."""
    return max(1, min({CAPACITY}, ROOM // max(1, n)))
'''

TEAMS_IN = '''
def teams_in(teams):
    """How many teams are in these blocks."""
    return teams[0] * teams[1][1]
'''

ADD_PARTS = '''
def add_parts(x, parts):
    """Add to x what each team has added to a row of parts: in the same order every time."""
    cp.add(x, parts.sum(axis=0), out=x)
'''

NUMBER = '''
def number(x):
    """The only element of x, on the host."""
    return x.dtype.type(x.item()) if hasattr(x, "dtype") else x
'''

TO_NUMPY = '''
def to_numpy(x):
    """The array x, on the host."""
    return x if isinstance(x, np.ndarray) else x.get()
'''

# functions of the module that are there if they are called: by those below, too
TEXTS = {"number": NUMBER, "to_numpy": TO_NUMPY, "blocks_of": BLOCKS_OF, "teams_of": TEAMS_OF,
         "room_for": ROOM_FOR, "teams_in": TEAMS_IN, "add_parts": ADD_PARTS, "meet": MEET}

# ---------------------------------------------------------------------------------- ops of the host
#
# All of them are declared impure, so that the printer keeps their order: a launch changes arrays.


def _allocation(*lengths: ast.expr, type: Array, zero: bool) -> ast.expr:
    dtype = [] if type.dtype == "float64" else [dtype_syntax(type.dtype)]
    return dotted_call("cp.zeros" if zero else "cp.empty", only(lengths), *dtype)


def _launch(grid: ast.expr, *args: ast.expr, kernel: str, kind: str,
            has_stream: bool) -> ast.expr:
    one, threads = ast.Constant(1), ast.Name("THREADS", ast.Load())
    where = [one, one] if kind == "single" else [grid, threads]
    if kind == "teams":
        where = [ast.Starred(grid, ast.Load())] if has_stream else [grid]
    if has_stream:
        where.append(ast.Name("STREAM", ast.Load()))
    where = where[0] if len(where) == 1 else ast.Tuple(where, ast.Load())
    return ast.Call(ast.Subscript(ast.Name(kernel, ast.Load()), where, ast.Load()), list(args), [])


device_array = Record("device array", evaluate=None, pure=False, syntax=_allocation,
                      infer=lambda *lengths, type, zero: type)
device_copy = Record("device copy", evaluate=None, pure=False, infer=lambda x: x.type,
                     syntax=lambda x: _call_method(x, "copy"))
element = Record("element", evaluate=None, pure=False, infer=lambda x, *index, type: type,
                 syntax=lambda x, *index, type: call("number", ast.Subscript(x, only(index),
                                                                             ast.Load())))
# numbers that stay on the device: arrays of rank 0 (device_numbers.py)
element_there = Record("element there", evaluate=None, pure=False,
                       infer=lambda x, *index: Array(x.type.dtype, ()),
                       syntax=lambda x, *index: _call_method(
                           ast.Subscript(x, only(index), ast.Load()), "copy"))
to_host = Record("to host", evaluate=None, pure=False, infer=lambda x: Scalar(x.type.dtype),
                 syntax=lambda x: call("number", x))
to_device = Record("to device", evaluate=None, pure=False, infer=lambda x: Array(x.type.dtype, ()),
                   syntax=lambda x: dotted_call("cp.asarray", x))
cell = Record("cell", evaluate=None, infer=lambda x: Array(x.type.dtype, (1,)),
              syntax=lambda x: ast.Call(ast.Attribute(x, "reshape", ast.Load()),
                                        [ast.Constant(1)], []))
blocks_of = Record("blocks of", evaluate=None,
                   infer=lambda n: INT, syntax=lambda n: call("blocks_of", n))
teams_of = Record("teams of", evaluate=None, infer=lambda n, m, *size: INT,
                  syntax=lambda *args: call("teams_of", *args))
room_for = Record("room for", evaluate=None, infer=lambda n: INT,
                  syntax=lambda n: call("room_for", n))
teams_in = Record("teams in", evaluate=None, infer=lambda teams: INT,
                  syntax=lambda teams: call("teams_in", teams))
add_parts = Record("add parts", evaluate=None, pure=False, infer=lambda x, parts: NONE,
                   syntax=lambda x, parts: call("add_parts", x, parts))
blocks_in = Record("blocks in", evaluate=None, infer=lambda teams: INT,
                   syntax=lambda teams: ast.Subscript(teams, ast.Constant(0), ast.Load()))
launch = Record("launch", evaluate=None, pure=False,
                infer=lambda blocks, *args, kernel, kind, has_stream: NONE, syntax=_launch)
combine_parts = Record("combine parts", evaluate=None, pure=False,
                       infer=lambda parts, *, type, name: type,
                       syntax=lambda parts, *, type, name: (
                           _combined(parts, name) if isinstance(type, Array)
                           else call("number", _combined(parts, name))))


def _combined(parts: ast.expr, name: str) -> ast.expr:
    return (_call_method(parts, name) if not name.startswith("nan")
            else dotted_call(f"cp.{name}", parts))


def _on_device(op: Op, is_view: bool, types: Sequence[Type]) -> Record:
    """The op on arrays, computed by CuPy, with results of these types: a view stays one if
    `is_view`.
    """
    def syntax(*args: ast.expr, **attrs) -> ast.expr:
        result = _by_cupy(op.record.syntax(*args, **attrs))
        if isinstance(op.output.type, Scalar):
            return result if isinstance(types[0], Array) else call("number", result)
        return dotted_call("cp.ascontiguousarray", result) if (
            op.record.views and not is_view) else result

    return Record(f"{op.name} on the device", evaluate=None, pure=False, syntax=syntax,
                  infer=lambda *inputs, **attrs: list(types))


def _by_cupy(call: ast.expr) -> ast.expr:
    """A call of NumPy's function as one of CuPy's."""
    for node in ast.walk(call):
        if isinstance(node, ast.Name) and node.id == "np":
            node.id = "cp"
    return call


def _on_host(op: Op) -> Record:
    """The op, a function of Python, on copies on the host."""
    def syntax(*args: ast.expr, **attrs) -> ast.expr:
        copies = [call("to_numpy", a) if isinstance(x.type, Array) else a
                  for a, x in zip(args, op.inputs)]
        result = op.record.syntax(*copies, **attrs)
        return (dotted_call("cp.asarray", result) if isinstance(op.output.type, Array)
                else result)

    return Record(f"{op.name} on the host", evaluate=None, pure=False, syntax=syntax,
                  helper=op.record.helper, infer=lambda *inputs, **attrs: op.output.type)


def _call_method(x: ast.expr, name: str) -> ast.expr:
    return ast.Call(ast.Attribute(x, name, ast.Load()), [], [])


# ----------------------------------------------------------------------------------------- the host


class Host:
    """Emits the host's function, and collects the kernels that it launches."""

    def __init__(self, loops: Function, has_stream: bool):
        self.loops, self.has_stream = loops, has_stream
        self.kernels: list[Kernel] = []
        self.env: dict[Value, Value] = {}
        self.roles, self.memory = Roles(loops), Memory(loops)
        self.device = device_numbers(loops, self.is_kernel, lambda op: (
            self.reads_arrays(op) and op.record.helper is None))
        self.loop_depth = 0  # how many loops of the host are around
        self.waits: list[tuple[Line, str]] = []
        self.views: set[Op] = set()  # that need not be contiguous
        # how many ops, and ends of blocks, use each value
        self.users = Counter(loops.block.yields)
        for op in walk(loops.block):
            for values in (op.inputs, *(block.yields for block in op.blocks)):
                self.users.update(set(values))
        # by tape that lanes fill: the array of their tapes, and how much each has
        self.lane_tapes: dict[Value, tuple[Value | None, Value | None]] = {
            x: (None, None) for op in walk(loops.block) if LANE_TAPES in op.attrs
            for x in op.inputs if isinstance(x.type, Tape)}

    def function(self) -> Function:
        source = self.loops
        block = Block([Value(p.type, p.name) for p in source.params])
        with Builder(block):
            block.yields = self.block(source.block, block.params)
        return source.remade(block, defaults={})

    def block(self, block: Block, args: Sequence[Value] = ()) -> list[Value]:
        self.env.update(zip(block.params, args, strict=True))
        self.views.update(self.views_for_cupy(block))
        for op in block.ops:
            with at(op.line):
                self.op(op)
        return [self.env.get(y, y) for y in block.yields]

    def op(self, op: Op) -> None:
        inputs = [self.env.get(x, x) for x in op.inputs]
        if op.blocks:
            return self.control(op, inputs)
        if any(map(is_device_number, inputs)) and is_arithmetic(op):
            made = add_op(op.record, inputs, op.attrs, [Array(op.output.type.dtype, ())],
                          names=[op.output.name])
            self.env[op.output] = made.output
            return
        if op.record.writes_elements and is_device_number(inputs[1]) and not any(
                map(is_device_number, inputs[2:])):
            self.env[op.output] = add_op(op.record, inputs, op.attrs, [inputs[0].type],
                                         names=[op.output.name]).output
            return
        there = {x: y for x, y in zip(op.inputs, inputs) if is_device_number(y)}
        self.env.update((x, self.on_host(y)) for x, y in there.items())
        self.plain(op, [self.env.get(x, x) for x in op.inputs])
        self.env.update(there)

    def plain(self, op: Op, inputs: list[Value]) -> None:
        """Emit an op without blocks, on numbers of the host."""
        match op.name:
            case "buffer":
                out = emit(device_array, *inputs, type=op.output.type, zero=op.attrs["zero"])
            case _ if op.record.allocates == 0 and op.record.fill in (None, 0):
                out = emit(device_array, *inputs, type=op.output.type, zero=op.record.fill == 0)
            case "copy" if isinstance(op.output.type, Array):
                out = emit(device_copy, *inputs)
            case "contiguous":
                out = inputs[0]
            case "tape_new" if op.output in self.lane_tapes:
                return
            case "tuple" | "item":
                return emit_op(op, self.env)
            case "getitem" if op.output in self.device:
                out = emit(element_there, *inputs)
            case "getitem" if isinstance(op.output.type, Scalar):
                self.note_wait("a number is read from the device in each trip of a loop")
                out = emit(element, *inputs, type=op.output.type)
            case _ if self.reads_arrays(op) and op.record.helper is not None:
                self.note_wait("arrays go through the host", in_loops=False)
                out = emit(_on_host(op), *inputs, **op.attrs)
            case _ if self.reads_arrays(op):
                types = [self.type_of(y) for y in op.outputs]
                if any(isinstance(type, Scalar) for type in types):
                    self.note_wait("a number is read from the device in each trip of a loop")
                made = add_op(_on_device(op, op in self.views, types), inputs, op.attrs, types)
                self.env.update(zip(op.outputs, made.outputs))
                for old, new in zip(op.outputs, made.outputs):
                    new.name = old.name
                return
            case _:
                return emit_op(op, self.env)
        out.name = out.name or op.output.name
        self.env[op.output] = out

    def views_for_cupy(self, block: Block) -> list[Op]:
        """Ops of `block` whose results are views that only CuPy reads, in the same block."""
        readers = {x for op in block.ops if self.is_cupys(op) for x in op.inputs}
        others = {*block.yields, *(x for op in block.ops if not self.is_cupys(op)
                                   for x in op_free_values(op))}
        return [op for op in block.ops if op.record.views and self.is_cupys(op)
                and op.output in readers and op.output not in others]

    def is_cupys(self, op: Op) -> bool:
        """Whether `op` is a call of CuPy, which reads arrays of any layout."""
        return (not op.blocks and op.record.allocates is None and op.record.helper is None
                and op.record is not contiguous and self.reads_arrays(op)
                and all(isinstance(y.type, Array) for y in op.outputs))

    def reads_arrays(self, op: Op) -> bool:
        touched = [x for k, x in enumerate(op.inputs) if k not in op.record.shapes]
        return any(isinstance(v.type, Array)
                   for v in (*touched, *op.outputs)) and op.record.writes is None

    # numbers

    def type_of(self, x: Value) -> Type:
        """The type of what the host has for `x`."""
        return Array(x.type.dtype, ()) if x in self.device else x.type

    def on_host(self, x: Value) -> Value:
        """`x`, read from the device if it is a number there."""
        if not is_device_number(x):
            return x
        self.note_wait("a number is read from the device in each trip of a loop")
        return emit(to_host, x)

    def note_wait(self, what: str, in_loops: bool = True) -> None:
        """Note that the host waits for the device here, if that is in a loop or anywhere."""
        if current().line is not None and (self.loop_depth or not in_loops):
            self.waits.append((current().line, what))

    def fitted(self, news: Sequence[Value], olds: Sequence[Value]) -> list[Value]:
        """The values `news`, each where one of `olds`, which it becomes, is to be."""
        return [new if old in self.device and is_device_number(new)
                else emit(to_device, new) if old in self.device else self.on_host(new)
                for new, old in zip(news, olds, strict=True)]

    def is_kernel(self, op: Op) -> bool:
        """Whether the host launches a kernel for the loop `op`."""
        return (op.name == "for" and self.roles.of(op) is not None
                and is_lane_code(op.blocks[0]))

    def control(self, op: Op, inputs: list[Value]) -> None:
        if self.is_kernel(op):
            return self.parallel(op, nest_of(op, self.roles))
        outs: Sequence[Value]
        stops = [op] if op.attrs.get("breaks") else []  # a condition, which is on the host

        def run(block: Block, args: Sequence[Value] = ()) -> list[Value]:
            return self.fitted(self.block(block, args), [*stops, *op.outputs])

        self.loop_depth += op.name != "if"
        match op.name:
            case "if":
                outs = if_(inputs[0], lambda: run(op.blocks[0]), lambda: run(op.blocks[1]),
                           [o.name for o in op.outputs])
            case "for":
                body = op.blocks[0]
                outs = for_loop(*map(self.on_host, inputs[:3]), self.fitted(inputs[3:], op.outputs),
                                lambda *args: run(body, args), op.attrs["breaks"],
                                [p.name for p in body.params[1:]], body.params[0].name)
            case _:
                head, body = op.blocks
                outs = while_loop(self.fitted(inputs, op.outputs),
                                  lambda *args: self.block(head, args)[0],
                                  lambda *args: run(body, args), op.attrs["breaks"],
                                  [p.name for p in body.params])
        self.loop_depth -= op.name != "if"
        self.env.update(zip(op.outputs, outs))

    # launches

    def name(self) -> str:
        return f"{self.loops.name}_kernel" + (f"_{len(self.kernels)}" if self.kernels else "")

    def parallel(self, op: Op, nest: Nest) -> None:
        """Launch a nest of independent trips; again, with more room, if its tapes turn out too
        short.
        """
        kernel = parallel_kernel(nest, self.name(), self.roles, self.memory,
                                 {x for x, y in self.env.items() if is_device_number(y)})
        self.kernels.append(kernel)
        trips = self.product([trip_count(loop, self.env) for loop in nest.loops])
        inits = dict(enumerate(self.env.get(x, x) for x in op.inputs[3:]))
        for k, out in enumerate(op.outputs):
            if not inits[k].name and inits[k].constant is MISSING:
                inits[k].name = out.name
        inner = [trip_count(loop, self.env) for loop in kernel.shared]
        sizes = [self.product([length(inits[k], axis=axis)
                               for axis in range(inits[k].type.rank)]) for k in kernel.private]
        size = [functools.reduce(operator.add, sizes)] if sizes else []
        grid = (emit(teams_of, trips, self.largest(inner), *size) if inner
                else trips if trips.constant == 1 else emit(blocks_of, trips))
        blocks = emit(blocks_in, grid) if inner else grid
        reads = [emit(cell, x) if is_device_number(x) else x
                 for x in (self.env.get(x, x) for x in kernel.reads)]
        kind = "teams" if inner else "single" if trips.constant == 1 else "threads"

        parts = {k: self.allocate([blocks], Value(Array(dtype, (1,)),
                                                  f"{op.outputs[k].name}_parts"))
                 for k, (_, dtype) in kernel.parts.items()}
        ends = {}  # by key: what lanes leave of their tapes, or have left of them
        for k, role in kernel.lane_tapes.items():
            before = self.lane_tapes.get(op.inputs[3 + k], (None, None))
            ends[tape_key(k)], ends[counts_key(k)] = before
            if role == "push":
                ends[counts_key(k)] = self.allocate([trips], kernel.writes[counts_key(k)])

        def run(capacity: Value | None, arrays: dict) -> dict:
            """Launch; return the arrays that it is given."""
            given = {key: v for key, v in (arrays | ends).items() if key in kernel.writes}
            for k in kernel.private:
                given[k] = self.allocate(
                    [emit(teams_in, grid), *(length(arrays[k], axis=axis)
                                             for axis in range(arrays[k].type.rank))],
                    kernel.writes[k], zero=True)
            extra = [] if capacity is None else [capacity]
            for key, v in kernel.writes.items():
                if key == "needed":
                    given[key] = self.allocate([value(1)], v, zero=True)
                elif key in kernel.rooms:
                    given[key] = self.allocate([trips if n is None else self.length(n)
                                                for n in kernel.rooms[key]], v)
                elif isinstance(key, str) and given.get(key) is None:
                    given[key] = self.allocate([capacity, trips], v)
            emit(launch, grid, trips, *reads, *extra, *(given[key] for key in kernel.writes),
                 *parts.values(), kernel=kernel.name, kind=kind, has_stream=self.has_stream)
            for k in kernel.private:
                emit(add_parts, arrays[k], given[k])
            return given

        if kernel.grows:
            zeros = {k: made for k in inits if k in kernel.writes
                     and (made := self.taken_back(op.inputs[3 + k], op)) is not None}
            read = [k for k in inits if k in kernel.writes and not is_empty(op.inputs[3 + k])]
            filled = [tape_key(k) for k, role in kernel.lane_tapes.items() if role == "push"]
            starts = [self.allocate([value(0), trips], kernel.writes[key]) for key in filled]

            def attempt(longest: Value, capacity: Value, *_: Value) -> list[Value]:
                copies = {k: emit(device_array, *zeros[k].inputs, **zeros[k].attrs)
                          if k in zeros else emit(device_copy, inits[k]) for k in read}
                given = run(longest, inits | copies)
                saved = emit(element, given["needed"], value(0), type=INT)
                saved.name = "saved"
                return [saved, longest, *copies.values(), *(given[key] for key in filled)]

            _, _, *arrays = while_loop(
                [emit(room_for, trips), value(0),
                 *(self.allocate([value(0)] * inits[k].type.rank, inits[k]) if k in zeros
                   else inits[k] for k in read), *starts],
                lambda longest, capacity, *_: longest > capacity, attempt,
                names=["longest", "capacity", *(op.outputs[k].name for k in read),
                       *(start.name for start in starts)])
            inits.update(zip(read, arrays))
            ends.update(zip(filled, arrays[len(read):]))
        else:
            run(None, inits)
        for k, (step, dtype) in kernel.parts.items():
            type = self.type_of(op.outputs[k])
            total = emit(combine_parts, parts[k], type=type, name=reduction_by(step)[0])
            if isinstance(type, Scalar):
                self.note_wait("a number is read from the device in each trip of a loop")
            if not is_constant(inits[k], identity(step, dtype)):
                if isinstance(type, Scalar):
                    total = step(self.on_host(inits[k]), total)
                else:
                    total = add_op(step, [inits[k], total], {}, [type]).output
            total.name = total.name or op.outputs[k].name
            inits[k] = total
        for k, out in enumerate(op.outputs):
            self.env[out] = inits[k]
        for k in kernel.lane_tapes:
            self.lane_tapes[op.outputs[k]] = ends[tape_key(k)], ends[counts_key(k)]

    def taken_back(self, x: Value, op: Op) -> Op | None:
        """The allocation of `x`, an array of zeros that only `op` uses, without which the host does
        from now on; None for any other array.
        """
        made, ops = self.env.get(x, x).op, current().block.ops
        is_zero = x.op is not None and x.op.name == "buffer" and x.op.attrs["zero"]
        if not is_zero or self.users[x] != 1 or made not in ops:
            return None
        ops.remove(made)
        return made

    @staticmethod
    def product(counts: Sequence[Value]) -> Value:
        found = counts[0]
        for n in counts[1:]:
            found = found * n
        return found

    @staticmethod
    def largest(counts: Sequence[Value]) -> Value:
        found, *others = dict.fromkeys(counts)
        for n in others:
            found = RECORDS["max_"](found, n)
        return found

    def length(self, n: Value | int | tuple[Value, int]) -> Value:
        """A length that is available on the host, of an array or as a number."""
        if isinstance(n, int):
            return value(n)
        if isinstance(n, tuple):
            return length(self.env.get(n[0], n[0]), axis=n[1])
        return self.env.get(n, n)

    def allocate(self, lengths: Sequence[Value], like: Value, zero: bool = False) -> Value:
        out = emit(device_array, *lengths, type=like.type, zero=zero)
        out.name = like.name
        return out


def is_constant(x: Value, c) -> bool:
    return x.constant is not MISSING and x.constant == c


def is_device_number(x: Value) -> bool:
    return isinstance(x.type, Array) and x.type.dims == ()


def is_empty(x: Value) -> bool:
    """Whether `x` is an array that holds nothing yet."""
    return x.op is not None and x.op.name == "buffer" and not x.op.attrs["zero"]
