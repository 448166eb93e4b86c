"""Branches and loops in StableHLO: `if` and `while`, whose regions read the values around them.

A condition that is known chooses its side while the text is written.  A loop is one `while` whose
carries are Tensors of fixed shape; if something in its body has to be known, such as the length of
`x[:i]`, it is written out trip by trip, up to MOST_TRIPS of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import UnsupportedError
from ...ir.graph import Block, Op, Value
from ...ir.treedef import form_of
from ...ir.types import List, Tuple, Type
from .stablehlo_text import INTEGER, NotKnownError, Tensor, Text

MOST_TRIPS = 256  # of a loop that is written out


# -------------------------------------------------------------------------------------------- trees


def leaves_of(x, type: Type) -> list:
    """The leaves of a value of this type; a list is one."""
    if not isinstance(type, Tuple):
        return [x]
    members = x if type.form is None else form_of(x).members(x)
    return [leaf for member, inner in zip(members, type.items)
            for leaf in leaves_of(member, inner)]


def leaf_types(type: Type) -> list[Type]:
    """The types of the leaves."""
    return ([leaf for inner in type.items for leaf in leaf_types(inner)]
            if isinstance(type, Tuple) else [type])


def tree_of(type: Type, leaves):
    """The value of this type with the next of the iterator `leaves`."""
    if not isinstance(type, Tuple):
        return next(leaves)
    members = [tree_of(inner, leaves) for inner in type.items]
    return tuple(members) if type.form is None else type.form.build(members)


def all_leaves(xs: Sequence, values: Sequence[Value]) -> list:
    """The leaves of several values."""
    return [leaf for x, v in zip(xs, values, strict=True) for leaf in leaves_of(x, v.type)]


# ----------------------------------------------------------------------------------------- branches


def branch(text: Text, op: Op, env: dict, condition) -> list:
    """The rule of `if`."""
    if not isinstance(condition, Tensor):
        return text.run(op.blocks[0 if condition else 1], [], env)
    condition = text.tensor(condition, "bool", ())
    sides = [text.captured(lambda block=block: all_leaves(text.run(block, [], env), op.outputs))
             for block in op.blocks]
    types = [t for y in op.outputs for t in leaf_types(y.type)]
    made = [joined(text, a, b, type) for a, b, type in zip(*(leaves for leaves, _ in sides), types)]
    carried = [k for k, x in enumerate(made) if isinstance(x, Tensor)]
    if carried:
        found = iter(choose(text, condition, sides, [made[k] for k in carried], carried))
        made = [next(found) if k in carried else x for k, x in enumerate(made)]
    leaves = iter(made)
    return [tree_of(y.type, leaves) for y in op.outputs]


def joined(text: Text, a, b, type: Type):
    """What both sides of a branch make of a leaf: a Tensor without a name of its shape and dtype,
    or a value that is the same on both.
    """
    if isinstance(a, Tensor) and a is b or not isinstance(a, Tensor | list) and is_same(a, b):
        return a if not isinstance(a, Tensor) else Tensor("", a.dtype, a.shape)
    if a is None or b is None:  # a name that is not bound on one side, and not read after it
        a, b = (b, b) if a is None else (a, a)
    for x in (a, b):
        if not isinstance(x, (Tensor, np.ndarray, np.generic, bool, int, float, complex)):
            raise NotKnownError("a branch that changes a list, or chooses what is no number",
                                text.line)
    if np.shape(outline(a)) != np.shape(outline(b)):
        raise UnsupportedError(f"arrays of the shapes {np.shape(outline(a))} and "
                               f"{np.shape(outline(b))} on two sides of a branch", text.line,
                               "give them one shape, by np.where for example")
    dtype = getattr(type, "dtype", None) or np.result_type(outline(a), outline(b)).name
    return Tensor("", dtype, np.shape(outline(a)))


def outline(x):
    """An array of the shape of a value, or its number."""
    return x.hollow if isinstance(x, Tensor) else x


def is_same(a, b) -> bool:
    """Whether two known values are the same."""
    if a is b:
        return True
    numbers = (np.ndarray, np.generic, bool, int, float, complex)
    return (type(a) is type(b) and isinstance(a, numbers) and np.shape(a) == np.shape(b)
            and np.asarray(a).dtype == np.asarray(b).dtype
            and np.asarray(a).tobytes() == np.asarray(b).tobytes())


def choose(text: Text, condition: Tensor, sides: list, made: list[Tensor],
           carried: Sequence[int]) -> list[Tensor]:
    """Emit an `if` whose results are the leaves `carried` of its two sides."""
    types = ", ".join(x.type for x in made)
    name, count = text.fresh(), len(made)
    text.append(f'{name}{f":{count}" if count > 1 else ""} = "stablehlo.if"({condition.name}) ({{')
    for end, (leaves, lines) in zip(("}, {", f"}}) : ({condition.type}) -> ({types})"), sides):
        text.lines += lines
        with text.region():
            give_back(text, [text.tensor(0 if leaves[k] is None else leaves[k], x.dtype, x.shape)
                             for k, x in zip(carried, made)])
        text.append(end)
    return [Tensor(f"{name}#{k}" if count > 1 else name, x.dtype, x.shape)
            for k, x in enumerate(made)]


def give_back(text: Text, xs: Sequence[Tensor]) -> None:
    """Emit the end of a region."""
    text.append(f"stablehlo.return {', '.join(x.name for x in xs)} : "
                f"{', '.join(x.type for x in xs)}")


# -------------------------------------------------------------------------------------------- loops


def counted(text: Text, op: Op, env: dict, lo, hi, step, *inits) -> list:
    """The rule of `for`."""
    (block,) = op.blocks
    if isinstance(step, Tensor):
        raise UnsupportedError("a loop whose step depends on Tensors", op.line,
                               "count by a number")
    trips = range(lo, hi, step) if not any(isinstance(x, Tensor) for x in (lo, hi)) else None
    if trips is not None and len(trips) < 2 and not op.attrs["breaks"]:
        return text.run(block, [lo, *inits], env) if trips else list(inits)

    def test(i: Tensor, *_) -> Tensor:
        if trips:
            text.bounds[i.name] = min(trips[0], trips[-1]), max(trips[0], trips[-1])
        return text.compare("LT" if step > 0 else "GT", i, text.tensor(hi, INTEGER))

    def body(i: Tensor, *carries) -> list:
        found = text.run(block, [i, *carries], env)
        return [*found, text.op("add", i, text.tensor(step, INTEGER))]

    def trip(number: int, carries: list) -> list | None:
        return text.run(block, [trips[number], *carries], env) if number < len(trips) else None

    found = text.attempt(lambda: repeated(text, op, block, list(inits), lo, test, body))
    return written_out(text, op, found, inits, trip if trips is not None else None)


def conditional(text: Text, op: Op, env: dict, *inits) -> list:
    """The rule of `while`."""
    head, block = op.blocks

    def test(_, *carries):
        (found,) = text.run(head, carries, env)
        return text.tensor(found, "bool", ())

    def trip(_, carries: list) -> list | None:
        (goes_on,) = text.run(head, carries, env)
        if isinstance(goes_on, Tensor):
            raise NotKnownError("", op.line)
        return text.run(block, carries, env) if goes_on else None

    found = text.attempt(lambda: repeated(text, op, block, list(inits), None, test,
                                          lambda _, *carries: text.run(block, carries, env)))
    return written_out(text, op, found, inits, trip)


def written_out(text: Text, op: Op, found, inits: Sequence, trip: Callable | None) -> list:
    """What was `found`, or, if that is an error that asks for what must be known, the loop trip by
    trip; the error where that is no way either.

    `trip(number, carries)` emits a trip, or returns None after the last one.
    """
    if not isinstance(found, NotKnownError):
        return found
    if trip is None:
        raise found
    carries = list(inits)
    for number in range(MOST_TRIPS + 1):
        try:
            yields = trip(number, carries)
        except NotKnownError as error:
            raise (found if not error.message else error) from None
        if yields is None:
            return carries
        if op.attrs["breaks"]:
            stop, *yields = yields
            if isinstance(stop, Tensor):
                raise found
            if stop:
                return yields
        carries = yields
    raise found


def repeated(text: Text, op: Op, block: Block, inits: list, first, test: Callable,
             body: Callable) -> list:
    """Emit one `while`.  It counts from `first`, unless that is None; `test(i, *carries)` is its
    condition, `body(i, *carries)` what its block yields, and then the next i.
    """
    count, breaks = len(inits), op.attrs["breaks"]
    params = block.params[len(block.params) - count:]
    ends = block.yields[breaks:]
    changes = [k for k in range(count) if ends[k] is not params[k]]
    inits = with_unbound(text, op, block, inits, params, first, body, breaks)
    own = [params[k] for k in changes]
    starts = [as_carry(text, leaf, type) for k in changes
              for leaf, type in zip(leaves_of(inits[k], params[k].type),
                                    leaf_types(params[k].type))]
    extra = [text.tensor(first, INTEGER, ())] if first is not None else []
    extra += [text.tensor(False, "bool", ())] if breaks else []

    def named(x: Tensor, name: str = "") -> Tensor:
        made = Tensor(text.fresh(), x.dtype, x.shape)
        text.call(made, name)
        return made

    names = [v.name for v in own for _ in leaf_types(v.type)]
    given = [named(x, name) for x, name in zip(starts, names)]
    more = [named(x, block.params[0].name if k == 0 and first is not None else "")
            for k, x in enumerate(extra)]
    i = more[0] if first is not None else None
    stopped = more[-1] if breaks else None

    def all_carries(leaves: Sequence[Tensor]) -> list:
        rest, found = iter(leaves), list(inits)
        for k in changes:
            found[k] = tree_of(params[k].type, rest)
        return found

    def condition() -> None:
        found = test(i, *all_carries(given))
        if stopped is not None:
            found = text.op("and", found, text.op("not", stopped))
        give_back(text, [found])

    def one_trip() -> None:
        yields, after = body(i, *all_carries(given)), []
        if first is not None:
            after = [yields.pop()]
        if breaks:
            after.append(text.tensor(yields.pop(0), "bool", ()))
        leaves = all_leaves([yields[k] for k in changes], own)
        for x, before in zip(leaves, given):
            if np.shape(outline(x)) != before.shape:
                raise NotKnownError(f"a value that a loop carries has the shape {before.shape} "
                                    f"before a trip and {np.shape(outline(x))} after it",
                                    op.line, "give it one shape")
        give_back(text, [*(text.tensor(x, g.dtype, g.shape) for x, g in zip(leaves, given)),
                         *after])

    name, everything = text.fresh(), given + more
    if not everything:
        raise UnsupportedError("a loop that computes nothing", op.line, "leave it out")
    many = f":{len(everything)}" if len(everything) > 1 else ""
    _, tested = text.captured(condition)
    _, run = text.captured(one_trip)
    pairs = ", ".join(f"{p.name} = {x.name}" for p, x in zip(everything, starts + extra))
    text.append(f"{name}{many} = stablehlo.while({pairs}) : "
                f"{', '.join(x.type for x in everything)}")
    text.append("cond {")
    text.lines += tested
    text.append("} do {")
    text.lines += run
    text.append("}")
    return all_carries([Tensor(f"{name}#{k}" if many else name, x.dtype, x.shape)
                        for k, x in enumerate(given)])


def as_carry(text: Text, x, type: Type) -> Tensor:
    """The Tensor with which a loop starts."""
    if isinstance(type, List) or isinstance(x, list):
        raise NotKnownError("a list that a loop makes longer or shorter", text.line,
                            "use an array of a known length")
    return text.tensor(x, getattr(type, "dtype", None))


def with_unbound(text: Text, op: Op, block: Block, inits: list, params: Sequence[Value], first,
                 body: Callable, breaks: bool) -> list:
    """The initial values of carries, with zeros for those that a trip binds first."""
    if not any(x is None for v, param in zip(inits, params) for x in leaves_of(v, param.type)):
        return inits
    i = None if first is None else Tensor(text.fresh(), INTEGER, ())
    yields = text.tried(lambda: body(i, *inits))
    ends = yields[breaks:len(yields) - (first is not None)]

    def bound(x, end, type: Type):
        zero = np.zeros(np.shape(outline(end)), getattr(type, "dtype", None) or "float64")
        return zero if x is None and end is not None else x

    found = []
    for x, end, param in zip(inits, ends, params):
        leaves = [bound(a, b, t) for a, b, t in zip(leaves_of(x, param.type),
                                                    leaves_of(end, param.type),
                                                    leaf_types(param.type))]
        found.append(tree_of(param.type, iter(leaves)))
    return found
