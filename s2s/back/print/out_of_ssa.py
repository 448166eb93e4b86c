"""Leave SSA form: coalesce values into variables, and name the variables.

Two values may share a variable if neither is defined while the other is live (interference). Those
that ought to share one (a loop's carry from trip to trip, the assignments in the branches of an
`if`, an array before and after a write) are coalesced first, where legal; then every variable gets
the name that the user gave it, or `t`, with `_1`, `_2` where that name is taken.
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Container, Iterable
from dataclasses import dataclass

from ...ir.graph import Block, Op, Value
from ...ir.types import INT, Array, List, Scalar, Tape
from .inlining import Layout
from .prepare import in_place_results

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
        "pow",
        "round",
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


BUILTINS = frozenset(dir(builtins))


class Own(str):
    """The name of a variable, or of a function of the module, as opposed to a name that the text
    refers to, such as `len`.

    `names[value]` is one, and keeps its class in the trees that it is put into, so that a user's
    variable and a function of Python's or s2s's are told apart where they are spelled alike: the
    variable is then renamed. Considered: reserving all names that some text may need (then no user
    variable could be called `sum`, `type` or `input`), and a table of those that each op needs
    beside its syntax, which has them already.
    """


def clashing(words: Iterable[ast.Name], *more: str) -> frozenset[str]:
    """The names of variables among `words` that also refer to builtins; `more` are parameters."""
    own, called = set(more), set()
    for word in words:
        (own if isinstance(word.id, Own) else called).add(str(word.id))
    return frozenset(own & called & BUILTINS)


COUNTERS = ("i", "j", "k", "l", "m")  # counters for which the user has no name
LARGE = 300  # Variables of a function from which on Numba is given a distinct name for each.


class Names:
    """The variables of one function: `names[value]` for every value that has a statement.

    Variables with disjoint live ranges may have one name, as a reader expects: `x` in the forward
    sweep, and `x` in the reverse sweep. Numba visits all statements of a function for each name
    that is assigned in several places, which takes most of the time for a thousand of them; so in
    large native functions all names are distinct.

    Sets of values are bit sets, `1 << order[value]`: the live values at one statement are one `|`,
    and functions of thousands of variables take the time that it takes to read them.
    """

    def __init__(
        self, layout: Layout, reserved: frozenset[str] = frozenset(), native: bool = False
    ):
        self.layout, self.native = layout, native
        self.reserved = RESERVED | reserved
        self.joined: dict[Value, Value] = {}
        self.order: dict[Value, int] = {}  # every value that needs a variable, in program order
        function = layout.function
        self._list(function.block)
        self.members: dict[Value, list[Value]] = {value: [value] for value in self.order}
        # the members as a bit set
        self.ours: dict[Value, int] = {value: 1 << k for value, k in self.order.items()}
        # interference: the values live at the definition of a member
        self.apart: dict[Value, int] = dict.fromkeys(self.order, 0)
        self._separate(function.params, self._visit(function.block, 0))
        self.params = set(function.params)
        for a, b, eager in self._affinities(function.block):
            self._join(a, b, eager)
        # generated names -> the names that they are versions of
        self.temporaries: dict[str, str] = {}
        self.names = self._choose()

    def __getitem__(self, value: Value) -> str:
        return Own(self.names[self.find(value)])

    def arrays(self) -> dict[str, Array]:
        """The types of arrays, by name, for variables that always have the same."""
        found: dict[str, set] = {}
        for value in self.order:
            found.setdefault(self[value], set()).add(value.type)
        return {name: type for name, (type, *others) in found.items()
                if isinstance(type, Array) and not others}

    def find(self, value: Value) -> Value:
        """The representative of all values that share a variable."""
        while value in self.joined:
            value = self.joined[value]
        return value

    # --------------------------------------------------------------------------------- interference

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

    def _set(self, values) -> int:
        found = 0
        for x in values:
            found |= self.ours.get(x, 0)
        return found

    def _leaves(self, values) -> int:
        """The variables that expressions read."""
        found = 0
        for x in values:
            found |= self._set(self.layout.leaves(x))
        return found

    def _separate(self, made, live: int) -> None:
        """Record that values defined at one point interfere mutually and with all live values."""
        live |= self._set(made)
        for y in made:
            if y in self.apart:
                self.apart[y] |= live & ~self.ours[y]

    def _differ(self, a: Value, b: Value) -> bool:
        """Whether two variables interfere."""
        return bool(self.apart[a] & self.ours[b] or self.apart[b] & self.ours[a])

    def _visit(self, block: Block, after: int, counters: tuple[Value, ...] = ()) -> int:
        """The values live before `block`, if those in `after` are live at its end.

        `counters` are those of the loops around it.
        """
        live = after | self._leaves(block.yields)
        for op in reversed(block.ops):
            if op in self.layout.inlined:
                continue
            live &= ~self._set(op.outputs)
            self._separate(op.outputs, live)
            match op.name:
                case "if":
                    branches = [self._visit(inner, live, counters) for inner in op.blocks]
                    live = branches[0] | branches[1] | self._leaves(op.inputs)
                case "for" | "while":
                    around, inside = live, counters
                    if op.name == "for" and self._counts(op):
                        inside = (*counters, op.blocks[0].params[0])
                        # legal without, but nobody would write it
                        self._separate(inside[-1:], self._set(counters))
                    for inner in op.blocks:
                        around |= self._read_inside(inner)
                    for inner in op.blocks:
                        carries = self._set(inner.params if inner is not op.blocks[-1] else ())
                        start = self._visit(inner, around | carries, inside)
                        self._separate(inner.params, around | start)
                    self._separate_from_range(op)
                    live = around | self._leaves(op.inputs)
                case _:
                    if op.record.writes is not None and op.outputs:
                        others = self._leaves(
                            x for k, x in enumerate(op.inputs) if k != op.record.writes
                        )
                        self._separate(op.outputs[:1],
                                       others & ~self._set([op.inputs[op.record.writes]]))
                    live |= self._leaves(op.inputs)
        return live

    def _counts(self, op: Op) -> bool:
        """Whether a `for` has a named counter: `for _ in`, `for x in reversed(tape)` do not."""
        counter, first = (op.blocks[0].params[0],
                          next((x for x in op.blocks[0].ops if x not in self.layout.inlined), None))
        return (bool(self.layout.uses.get(counter)) or counter.name != "_"
                and (self.native or first is None or first.name != "tape_pop"))

    def _separate_from_range(self, op: Op) -> None:
        """Record interference with `range(...)` or a tape: carries are assigned before it."""
        count = len(op.outputs)
        inits, params = op.inputs[len(op.inputs) - count :], op.blocks[-1].params
        tapes = [x for x in inits if isinstance(x.type, List)]
        read = self._leaves([*op.inputs[: len(op.inputs) - count], *tapes])
        for init, param in zip(inits, params[len(params) - count :]):
            self._separate([param], read & ~self._set([init]))

    def _read_inside(self, block: Block) -> int:
        """The variables from outside that the statements of `block` read."""
        bound = found = 0

        def visit(inner: Block) -> None:
            nonlocal bound, found
            bound |= self._set(inner.params)
            for op in inner.ops:
                bound |= self._set(op.outputs)
                if op in self.layout.inlined:
                    continue
                found |= self._leaves(op.inputs)
                for child in op.blocks:
                    visit(child)
            found |= self._leaves(inner.yields)

        visit(block)
        return found & ~bound

    # ----------------------------------------------------------------------------------- coalescing

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
                for k, source in in_place_results(op).items():
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
        if a is b or self._differ(a, b):
            return
        if not eager:
            hints = {self._hint(a), self._hint(b)} - {""}
            if len(hints) > 1:
                return
        if self.order[b] < self.order[a]:
            a, b = b, a
        self.joined[b] = a
        self.members[a] = sorted(self.members[a] + self.members.pop(b), key=self.order.__getitem__)
        self.ours[a] |= self.ours[b]
        self.apart[a] |= self.apart[b]

    def _is_param(self, value: Value) -> bool:
        return any(x in self.params for x in self.members[value])

    def _hint(self, root: Value) -> str:
        """The user's name for a variable: that of its first named value, a carry's preferred."""
        named = [x for x in self.members[root] if x.name]
        if not named:
            return ""
        params = [x for x in named if x.op is None]
        outputs = [x for x in named if x.op is not None and x.op.blocks]
        return (params or outputs or named)[0].name

    # --------------------------------------------------------------------------------------- naming

    def _choose(self) -> dict[Value, str]:
        names: dict[Value, str] = {}
        roots = [x for x in self.order if x not in self.joined]
        hints = {root: self._hint(root) for root in roots}
        wanted = set(hints.values())
        # in compiled code: the kind of a variable, which must not change
        kinds: dict[str, object] = {}
        # for each name: the values of its variables, and what these interfere with
        holders: dict[str, tuple[int, int]] = {}
        counts: dict[str, int] = {}
        distinct = self.native and len(roots) > LARGE
        for root in sorted(roots, key=lambda x: (not self._is_param(x), self.order[x])):
            taken = kinds if distinct else _Taken(self, root, holders, kinds if self.native else {})
            hint = hints[root]
            if hint == "_" and not self._is_param(root) and any(self.layout.uses.get(x)
                                                                for x in self.members[root]):
                # `_` is for counters that nothing reads
                counters = (name for name in COUNTERS if name not in wanted)
                hint = next(counters, COUNTERS[0]) if root.op is None and root.type == INT else ""
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
            ours, apart = holders.get(names[root], (0, 0))
            holders[names[root]] = ours | self.ours[root], apart | self.apart[root]
        return names

    def renumber(self, order: list[str]) -> dict[str, str]:
        """New names for the temporaries, numbered as they appear in `order`, all names in order."""
        taken = set(order) - self.temporaries.keys()
        renamed: dict[str, str] = {}
        counts: dict[str, int] = {}
        for name in order:
            if name in self.temporaries and name not in renamed:
                renamed[name] = self._free(self.temporaries[name], taken, counts=counts)
                taken.add(renamed[name])
        return renamed

    def _free(self, hint: str, *taken: Container[str], counts: dict[str, int] | None = None) -> str:
        """A name that is free; `counts` are the last numbers given out, by hint."""
        count = 0 if counts is None else counts.get(hint, 0)
        name = f"{hint}_{count}" if count else hint
        while name in self.reserved or any(name in names for names in taken):
            count += 1
            name = f"{hint}_{count}"
        if counts is not None:
            counts[hint] = count
        return name


@dataclass
class _Taken:
    """The names that a variable cannot have.

    Those are the names of interfering variables, and in compiled code of variables of another kind.
    """

    names: Names
    root: Value
    holders: dict[str, tuple[int, int]]
    kinds: dict[str, object]

    def __contains__(self, name: str) -> bool:
        ours, apart = self.holders.get(name, (0, 0))
        if ours & self.names.apart[self.root] or apart & self.names.ours[self.root]:
            return True
        return name in self.kinds and self.kinds[name] != _kind(self.root)


def _kind(value: Value) -> object:
    """The kind of a variable in compiled code: all numbers are of one kind."""
    match value.type:
        case Scalar():
            return "number"
        case Array(dtype, dims):
            return dtype, len(dims)
    return value.type


def _default_hint(value: Value) -> str:
    """The name of a variable for which the user has none."""
    if isinstance(value.type, List):
        return "tape" if isinstance(value.type, Tape) else "items"
    if value.op is None and getattr(value.type, "dtype", "") == "bool":
        return "done"
    if value.op is not None and value.op.name == "length":
        return "n"
    if value.op is not None and value.op.record.asks_extents:  # np.shape or np.size
        return value.op.name
    return "t"
