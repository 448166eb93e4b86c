"""Out of SSA: which values share a variable, and what the variables are called.

Two values may share a variable if neither is made while the other is still to be read.  Those that ought
to share one (a loop's carry from trip to trip, what the branches of an `if` assign, an array and what it
is after a write) are joined first, where they may; then every variable gets the name that the user gave
to it, or `t`, with `_1`, `_2` where that name is taken.
"""

from __future__ import annotations

import keyword
from collections.abc import Container

from ..ir.graph import Block, Op, Value
from ..ir.types import INT, Array, List, Scalar, Tape
from .expressions import Layout
from .prune import handed_on

RESERVED = frozenset(
    {
        "np",
        "math",
        "scipy",
        "True",
        "False",
        "None",
        *keyword.kwlist,
        "len",
        "range",
        "reversed",
        "abs",
        "min",
        "max",
        "float",
        "int",
        "bool",
        "complex",
        "slice",
        "print",
        "tuple",
        "list",
    }
)


LARGE = 300  # variables of a function of which Numba is given each under a name of its own


class Names:
    """The variables of one function: `names[value]` for every value that has a statement.

    Variables whose values never live at one time may have one name, as a reader expects: `x` in the sweep forward, and `x` in the
    sweep back.  Numba goes through all statements of a function for each name that is assigned in several places, which takes
    most of the time for a thousand of them; so in large native functions no two variables have one name.
    """

    def __init__(
        self, layout: Layout, reserved: frozenset[str] = frozenset(), native: bool = False
    ):
        self.layout, self.native = layout, native
        self.reserved = RESERVED | reserved
        self.joined: dict[Value, Value] = {}
        self.order: dict[Value, int] = {}  # every value that needs a variable, in program order
        self.apart: dict[Value, dict[Value, None]] = {}  # values that may not share a variable
        function = layout.function
        self._list(function.block)
        for value in self.order:
            self.apart[value] = {}
        self.members: dict[Value, list[Value]] = {value: [value] for value in self.order}
        live = self._visit(function.block, {})
        self._separate(function.params, live)
        self.params = set(function.params)
        for a, b, eager in self._affinities(function.block):
            self._join(a, b, eager)
        self.temporaries: dict[str, str] = {}  # the names nobody chose -> what they are versions of
        self.names = self._choose()

    def __getitem__(self, value: Value) -> str:
        return self.names[self.find(value)]

    def find(self, value: Value) -> Value:
        """The value that stands for all that share its variable."""
        while value in self.joined:
            value = self.joined[value]
        return value

    # ------------------------------------------------------------------------------- interference

    def _list(self, block: Block) -> None:
        for param in block.params:
            self.order.setdefault(param, len(self.order))
        for op in block.ops:
            if op in self.layout.inlined:
                continue
            for inner in op.blocks:
                self._list(inner)
            for y in op.outputs:
                self.order.setdefault(y, len(self.order))

    def _leaves(self, values) -> dict[Value, None]:
        found: dict[Value, None] = {}
        for x in values:
            found.update(self.layout.leaves(x))
        return found

    def _separate(self, made, live) -> None:
        """Values made at one point differ from one another and from all that is read afterwards."""
        for y in made:
            for x in (*made, *live):
                if x is not y and x in self.apart and y in self.apart:
                    self.apart[y][x] = None
                    self.apart[x][y] = None

    def _visit(self, block: Block, after: dict[Value, None], counters: tuple[Value, ...] = ()) -> dict[Value, None]:
        """What is live at the start of `block`, if `after` is live at its end; `counters` are those of the loops around it."""
        live = {**after, **self._leaves(block.yields)}
        for op in reversed(block.ops):
            if op in self.layout.inlined:
                continue
            for y in op.outputs:
                live.pop(y, None)
            self._separate(op.outputs, live)
            match op.name:
                case "if":
                    branches = [self._visit(inner, live, counters) for inner in op.blocks]
                    live = {**branches[0], **branches[1], **self._leaves(op.inputs)}
                case "for" | "while":
                    around, inside = dict(live), counters
                    if op.name == "for" and self._counts(op):
                        inside = (*counters, op.blocks[0].params[0])
                        self._separate(inside[-1:], dict.fromkeys(counters))  # right without, but nobody would write it
                    for inner in op.blocks:
                        around.update(self._read_inside(inner))
                    for inner in op.blocks:
                        carries = dict.fromkeys(inner.params if inner is not op.blocks[-1] else ())
                        start = self._visit(inner, {**around, **carries}, inside)
                        self._separate(inner.params, {**around, **start})
                    self._separate_from_range(op)
                    live = {**around, **self._leaves(op.inputs)}
                case _:
                    if op.record.writes is not None and op.outputs:
                        others = self._leaves(
                            x for k, x in enumerate(op.inputs) if k != op.record.writes
                        )
                        others.pop(op.inputs[op.record.writes], None)
                        self._separate(op.outputs[:1], others)
                    live.update(self._leaves(op.inputs))
        return live

    def _counts(self, op: Op) -> bool:
        """Whether a `for` has a counter with a name of its own: `for _ in` has none, nor has `for x in reversed(x_tape)`."""
        counter, first = op.blocks[0].params[0], next((x for x in op.blocks[0].ops if x not in self.layout.inlined), None)
        return counter.name != "_" and (self.native or bool(self.layout.uses.get(counter)) or first is None or first.name != "tape_pop")

    def _separate_from_range(self, op: Op) -> None:
        """The carries are assigned before `range(...)` is evaluated, or a tape is reversed."""
        count = len(op.outputs)
        inits, params = op.inputs[len(op.inputs) - count :], op.blocks[-1].params
        tapes = [x for x in inits if isinstance(x.type, List)]
        read = self._leaves([*op.inputs[: len(op.inputs) - count], *tapes])
        for init, param in zip(inits, params[len(params) - count :]):
            self._separate([param], {x: None for x in read if x is not init})

    def _read_inside(self, block: Block) -> dict[Value, None]:
        """The variables from outside that the statements of `block` read."""
        bound: set[Value] = set()
        found: dict[Value, None] = {}

        def visit(inner: Block) -> None:
            bound.update(inner.params)
            for op in inner.ops:
                bound.update(op.outputs)
                if op in self.layout.inlined:
                    continue
                found.update(self._leaves(op.inputs))
                for child in op.blocks:
                    visit(child)
            found.update(self._leaves(inner.yields))

        visit(block)
        return {x: None for x in found if x not in bound}

    # ---------------------------------------------------------------------------------- joining

    def _affinities(self, block: Block):
        """Pairs of values that ought to share a variable, the most important first.

        The third member says whether they should even if the user has two names for them.
        """
        writes, loops, ends, starts = [], [], [], []

        def visit(inner: Block) -> None:
            for op in inner.ops:
                if op in self.layout.inlined:
                    continue
                for child in op.blocks:
                    visit(child)
                if op.record.writes is not None:
                    writes.append((op.inputs[op.record.writes], op.outputs[0], True))
                for k, source in handed_on(op).items():
                    writes.append((op.inputs[source], op.outputs[k], True))
                if op.name == "if":
                    for k, y in enumerate(op.outputs):
                        for child in op.blocks:
                            ends.append((child.yields[k], y, False))
                elif op.name in ("for", "while"):
                    inits = op.inputs[3:] if op.name == "for" else op.inputs
                    body = op.blocks[-1]
                    params = body.params[len(body.params) - len(inits) :]
                    yields = body.yields[len(body.yields) - len(inits) :]
                    for k, param in enumerate(params):
                        for head in op.blocks[:-1]:
                            loops.append((head.params[k], param, True))
                        loops.append((param, op.outputs[k], True))
                        ends.append((yields[k], param, False))
                        starts.append((inits[k], param, False))

        visit(block)
        return loops + writes + ends + starts

    def _join(self, a: Value, b: Value, eager: bool) -> None:
        if a not in self.order or b not in self.order:
            return
        a, b = self.find(a), self.find(b)
        if a is b or b in self.apart[a]:
            return
        if not eager:
            hints = {self._hint(a), self._hint(b)} - {""}
            if len(hints) > 1:
                return
        if self.order[b] < self.order[a]:
            a, b = b, a
        self.joined[b] = a
        self.members[a] = sorted(self.members[a] + self.members.pop(b), key=self.order.__getitem__)
        for x in self.apart.pop(b):
            self.apart[x].pop(b, None)
            self.apart[x][a] = None
            self.apart[a][x] = None

    def _is_param(self, value: Value) -> bool:
        return any(x in self.params for x in self.members[value])

    def _hint(self, root: Value) -> str:
        """The user's name for a variable: that of its first value that has one, a carry's before others."""
        named = [x for x in self.members[root] if x.name]
        if not named:
            return ""
        params = [x for x in named if x.op is None]
        outputs = [x for x in named if x.op is not None and x.op.blocks]
        return (params or outputs or named)[0].name

    # ---------------------------------------------------------------------------------- choosing

    def _choose(self) -> dict[Value, str]:
        names: dict[Value, str] = {}
        roots = [x for x in self.order if x not in self.joined]
        hints = {root: self._hint(root) for root in roots}
        wanted = set(hints.values())
        kinds: dict[str, object] = {}  # of compiled code: what a variable holds, which may not change
        counts: dict[str, int] = {}
        distinct = self.native and len(roots) > LARGE
        for root in sorted(roots, key=lambda x: (not self._is_param(x), self.order[x])):
            taken = kinds if distinct else {names[x] for x in self.apart[root] if x in names}
            if self.native and not distinct:
                taken |= {name for name, kind in kinds.items() if kind != _kind(root)}
            hint = hints[root]
            if hint == "_" and not self._is_param(root) and any(self.layout.uses.get(x) for x in self.members[root]):
                hint = "i" if root.op is None and root.type == INT else ""  # `_` is what nothing reads
            if hint and hint.isidentifier():
                names[root] = self._free(hint, taken)
            else:
                hint = (
                    "value"
                    if root.op is not None and self.layout.is_forward_result(root.op)
                    else _default_hint(root)
                )
                names[root] = self._free(hint, taken, wanted, self.temporaries, counts=counts)
                self.temporaries[names[root]] = hint
            kinds[names[root]] = _kind(root)
        return names

    def renumber(self, order: list[str]) -> dict[str, str]:
        """New names for the temporaries, numbered as they appear: `order` is every name in the text, in order."""
        taken = set(order) - self.temporaries.keys()
        renamed: dict[str, str] = {}
        counts: dict[str, int] = {}
        for name in order:
            if name in self.temporaries and name not in renamed:
                renamed[name] = self._free(self.temporaries[name], taken, counts=counts)
                taken.add(renamed[name])
        return renamed

    def _free(self, hint: str, *taken: Container[str], counts: dict[str, int] | None = None) -> str:
        """A name that is not taken; `counts` are the numbers given last, by hint, where none below them is free again."""
        count = 0 if counts is None else counts.get(hint, 0)
        name = f"{hint}_{count}" if count else hint
        while name in self.reserved or any(name in names for names in taken):
            count += 1
            name = f"{hint}_{count}"
        if counts is not None:
            counts[hint] = count
        return name


def _kind(value: Value) -> object:
    """What a variable may not change from or to: numbers of any kind are one."""
    match value.type:
        case Scalar():
            return "number"
        case Array(dtype, dims):
            return dtype, len(dims)
    return value.type


def _default_hint(value: Value) -> str:
    """What a variable that the user has no name for is called."""
    if isinstance(value.type, List):
        return "tape" if isinstance(value.type, Tape) else "items"
    if value.op is None and getattr(value.type, "dtype", "") == "bool":
        return "done"
    if value.op is not None and value.op.name == "length":
        return "n"
    if value.op is not None and value.op.name in ("shape", "size"):
        return value.op.name
    return "t"
