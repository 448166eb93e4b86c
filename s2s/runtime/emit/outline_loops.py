"""Outline loops into functions of their own, so that two threads can compile the loops of one
function (runtime/llvm/parallel_codegen.py).

    def f(x, y):                                f.loop(results, raised, x, y, n):
        n = len(x)                                  total = results.total
        total = 0.0                     ->          for i in range(n): total += x[i] * y[i]
        for i in range(n):                          results.total = total
            total += x[i] * y[i]                f:  results.total = total
        return total                                if f.loop(results, ...) raises: leave

LLVM takes most of its time for loops, and compiles one function in one thread. An outlined loop
gets what it reads as arguments: numbers, and for each array its data pointer, lengths and meminfo;
a value shared by several arrays is one argument, so that known equalities are kept. Values that it
binds and others read are returned through `results`. Loops with lists or returns are not outlined.
An inner loop is called in each trip of the outer one, so it has to be long: a call takes some ten
nanoseconds. Trips of strip-mined loops are long. If all loops of a function are outlined, the rest
runs once per call, or once per part of a parallel loop: it is bare, and compiled at the lowest
level, like the Python wrapper.

Note [Promises]
An array allocated here is noalias (runtime/intrinsics/noalias_alloc.py), and LLVM has to know this
of an argument, too; otherwise it guards vectorised loops, or leaves them scalar. So arguments that
come from one promise each are marked. An array that comes from several promises, through a slot, is
not marked; `Sources` knows by names what it may alias, and if that is another argument, the loop is
not outlined: in place, LLVM sees the slot and the values stored into it.

Considered: LLVM's own loop extraction, which loses the promises; a thread for each loop (passing a
module to LLVM takes a few milliseconds, and there are two cores); several functions in the
generated text, which a reader would have to follow.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from llvmlite import ir
from numba import types

from ...back.syntax.ast_names import nodes_in
from ..intrinsics.element_access import field
from ..intrinsics.noalias_alloc import is_promise, laid_out
from ..numba_internals import cgutils
from ..threads.parallel_for import flatten_argument
from .infer_expressions import SCALARS
from .ssa_names import FIRST, Mention, mentions_of, read, webs

LEAST = 80  # least weight of a function whose loops are outlined
LEFT = 30  # least weight of the rest, or of all but the heaviest loop
# weight of a loop inside of another, which may have few trips, from which on it is extracted; half
# of that in functions of so much
HEAVY, MUCH = 50, 400
DEAR = 25  # weight of a function of vector math, which is written where it is called
DEARS = "vector_"
STAYING = (ast.Return, ast.List, ast.ListComp, ast.JoinedStr)
COMPOUND = (ast.For, ast.While, ast.If)
FRESH = ("unshared_", "blas_product", "native_copy", "with_room")  # calls that allocate
HANDED = (*SCALARS, types.Literal, types.Array, types.BaseTuple, types.DType, types.SliceType,
          types.NoneType)
WEIGHED = (ast.BinOp, ast.Subscript, ast.Compare, ast.UnaryOp, ast.IfExp, ast.Call, ast.If, ast.For,
           ast.While)


def extracted(function: ast.FunctionDef, inference, short: Container[ast.For]) -> set[ast.For]:
    """The loops of a function to outline, except `short` ones, which LLVM unrolls, and anything
    inside them.
    """
    weights = {}
    total = sum(weigh(stmt, weights) for stmt in function.body)
    found = (list(chosen(function.body, inference, short, weights, total, False)) if total >= LEAST
             else [])
    return set(found) if found and total - max(map(weights.get, found)) >= LEFT else set()


def weigh(node: ast.AST, weights: dict[ast.AST, int]) -> int:
    """Estimate LLVM's work for a piece of syntax; record that of each loop."""
    own = int(isinstance(node, WEIGHED))
    for name in node._fields:
        x = getattr(node, name, None)
        for each in x if isinstance(x, list) else (x,):
            if isinstance(each, (ast.expr, ast.stmt)):
                own += weigh(each, weights)
    if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        and node.func.id.startswith(DEARS)):
        own += DEAR
    if isinstance(node, ast.For):
        weights[node] = own
    return own


def chosen(body: list[ast.stmt], inference, short: Container[ast.For], weights: dict[ast.AST, int],
           total: int, inside: bool) -> Iterator[ast.For]:
    """The loops of a block to outline, `inside` a loop or not: whole loops, but in a loop that
    dominates the function, the loops inside it.
    """
    for stmt in body:
        match stmt:
            case ast.For() if stmt not in short and (not inside
                                                     or weights[stmt] >= (HEAVY if total < MUCH
                                                                          else HEAVY // 2)):
                is_whole = is_extractable(stmt, inference)
                within = ([] if is_whole and 3 * weights[stmt] <= 2 * total
                          else list(chosen(stmt.body, inference, short, weights, total,
                                           inside or not is_over_strips(stmt))))
                if within:
                    yield from within
                elif is_whole:
                    yield stmt
            case ast.While(_, inner):
                yield from chosen(inner, inference, short, weights, total, True)
            case ast.If(_, first, second):
                yield from chosen(first, inference, short, weights, total, inside)
                yield from chosen(second, inference, short, weights, total, inside)


def is_over_strips(loop: ast.For) -> bool:
    """Whether each trip of a loop handles the rows from `i * n` on, at most n of them
    (back/arrays/strip_mine_batch.py): few, long trips.
    """
    match loop.body:
        case [ast.Assign(_, ast.BinOp(ast.Name(index), ast.Mult())),
              ast.Assign(_, ast.Call(ast.Name("min"))), *_]:
            return index == loop.target.id
    return False


def is_bare(body: list[ast.stmt], done: Container[ast.For]) -> bool:
    """Whether the remaining loops of a block only surround loops `done` elsewhere, and access no
    array elements themselves.
    """
    for stmt in body:
        match stmt:
            case ast.For(_, _, inner) | ast.While(_, inner) if stmt not in done:
                own = [node for each in inner if not isinstance(each, COMPOUND)
                       for node in nodes_in(each)]
                if (not any(each in done for each in nodes_in(stmt))
                    or any(isinstance(node, ast.Subscript) for node in own)
                    or not is_bare(inner, done)):
                    return False
            case ast.If(_, first, second):
                if not is_bare(first, done) or not is_bare(second, done):
                    return False
    return True


def is_extractable(loop: ast.For, inference) -> bool:
    """Whether a loop produces only numbers and arrays of numbers."""
    return not any(isinstance(node, STAYING)
                   or isinstance(node, ast.expr) and id(node) not in inference.statics
                   and not isinstance(inference.kinds.get(id(node), types.none), HANDED)
                   for node in nodes_in(loop))


class Sources:
    """Alias analysis by names: the arrays that a name may refer to."""

    def __init__(self, function: ast.FunctionDef):
        self.found: dict[str, set[str]] = {}
        for node in nodes_in(function):
            if not isinstance(node, ast.Assign):
                continue
            target, value = node.targets[0], node.value
            if not isinstance(target, ast.Tuple):
                pairs = [(target, value)]
            elif isinstance(value, ast.Tuple):
                pairs = zip(target.elts, value.elts)
            else:
                pairs = [(each, value) for each in target.elts]
            for target, value in pairs:
                if (isinstance(target, ast.Name) and not isinstance(value, (ast.BinOp, ast.Compare))
                    and not is_fresh(value)):
                    # a call's result is new, or aliases an argument
                    self.found.setdefault(target.id, set()).update(node.id
                                                                   for node in nodes_in(value)
                                                                   if isinstance(node, ast.Name))

    def reached(self, name: str) -> set[str]:
        """The names of the arrays that it may alias."""
        found, ahead = set(), [name]
        while ahead:
            each = ahead.pop()
            if each not in found:
                found.add(each)
                ahead += self.found.get(each, ())
        return found


def is_fresh(value: ast.expr) -> bool:
    """Whether an expression always allocates a new array."""
    return (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
            and value.func.id.startswith(FRESH))


def begins(data: ir.Value) -> ir.Value:
    """The base address of an array's elements."""
    while isinstance(data, (ir.GEPInstr, ir.CastInstr)):
        data = data.operands[0]
    return data


def promise_of(data: ir.Value) -> ir.Value | None:
    """The noalias promise, or the argument, that the base address of an array comes from."""
    data = begins(data)
    return data if is_promise(data) or isinstance(data, ir.Argument) else None


class Reads(NamedTuple):
    """The names that a loop mentions, those it binds for readers outside (ssa_names.py), and those
    that each trip binds before reading.
    """

    names: list[str]
    bound: set[str]
    own: set[str]

    @staticmethod
    def of(loop: ast.For, values: Container[int]) -> Reads:
        found: dict[str, list[Mention]] = {}
        counter = Mention(loop.target, loop.target.id, True, ((0, 0), (id(loop.body), FIRST)))
        for each in (*read(loop.iter, ()), counter, *mentions_of(loop.body, ((0, 0),))):
            found.setdefault(each.name, []).append(each)
        bound = {name
                 for name, several in found.items()
                 if any(each.binds and id(each.node) not in values for each in several)}
        return Reads(
            list(found), bound,
            {name for name, several in found.items() if several[0].path and webs(several, 1, [])})


class LoopArguments:
    """The arguments of an outlined loop, and the values that replace them inside it."""

    def __init__(self, context, builder, sources: Sources, promises: Mapping[str, set[int]]):
        self.context, self.builder, self.sources, self.promises = (context, builder, sources,
                                                                   promises)
        # names, and the parts of their values
        self.taken: dict[str, tuple[types.Type, list[ir.Value]]] = {}
        self.given: dict[int, ir.Value] = {}  # the non-constant parts
        # data pointers of arrays, and their noalias promises
        self.data: dict[int, ir.Value | None] = {}
        self.unsure: set[str] = set()  # names of arrays without a promise

    def takes(self, name: str, kind: types.Type, value: ir.Value) -> bool:
        """Add a value as an argument, if possible; return whether it was."""
        if not isinstance(kind, (*SCALARS, types.Literal, types.Array)):
            return False
        pieces = flatten_argument(self.context, self.builder, kind, value)
        if isinstance(kind, types.Array):
            pieces.append(field(self.context, self.builder, kind, value, "parent"))
            data = pieces[1]
            # LLVM promotes arrays on the stack to registers
            if isinstance(begins(data), ir.AllocaInstr):
                return False
            self.data[id(data)] = promise_of(data)
            if self.data[id(data)] is None:
                self.unsure |= self.sources.reached(name)
        self.taken[name] = kind, pieces
        self.given.update((id(x), x) for x in pieces if not isinstance(x, ir.Constant))
        return True

    def is_sure(self) -> bool:
        """Whether addresses without a promise cannot alias an argument with one.  Note [Promises]
        """
        other = {promise for name in self.unsure for promise in self.promises.get(name, ())}
        return other.isdisjoint(id(promise)
                                for promise in self.data.values()
                                if promise is not None and is_promise(promise))

    def values(self, builder,
               args: Sequence[ir.Argument]) -> Iterator[tuple[str, types.Type, ir.Value]]:
        """The values inside the outlined function, rebuilt from its arguments."""
        inside = dict(zip(self.given, args))
        promises = [id(promise) for promise in self.data.values()]
        for key, promise in self.data.items():
            if (key in inside and promise is not None and is_promise(promise)
                and promises.count(id(promise)) == 1):
                inside[key].add_attribute("noalias")
        for name, (kind, pieces) in self.taken.items():
            pieces = [inside.get(id(x), x) for x in pieces]
            yield (name, kind,
                   self.array(builder, kind, *pieces) if isinstance(kind, types.Array)
                   else pieces[0])

    def array(self, builder, kind: types.Array, meminfo: ir.Value, data: ir.Value,
              *others: ir.Value) -> ir.Value:
        *extents, parent = others
        shape, strides = extents[:kind.ndim], extents[kind.ndim:]
        word, place = (self.context.get_value_type(types.intp),
                       self.context.data_model_manager[kind].get_field_position)
        made = builder.insert_value(laid_out(self.context, builder, kind, shape, meminfo,
                                             data).value, parent, place("parent"))
        if kind.layout == "C":
            return made
        strides = (strides
                   or fortran(builder, shape, word(self.context.get_abi_sizeof(data.type.pointee))))
        return builder.insert_value(made, cgutils.pack_array(builder, strides, ty=word),
                                    place("strides"))


def fortran(builder, shape: Sequence[ir.Value], step: ir.Value) -> list[ir.Value]:
    """The strides of an array in Fortran order."""
    strides = [step]
    for n in shape[:-1]:
        strides.append(builder.mul(strides[-1], n))
    return strides
