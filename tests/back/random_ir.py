"""Random functions in IR: loops whose carries swap, branches, writes through several names, views,
tapes.

They are built to be hard on the printer: everything may alias, nothing is named well.
"""

from __future__ import annotations

from random import Random

from s2s.ir.builder import Builder, emit
from s2s.ir.graph import Block, Function, Value
from s2s.ir.types import INT, Array, Scalar
from s2s.ops.arrays.index import additem, getitem, setitem
from s2s.ops.core import elementwise as ew
from s2s.ops.core.control import (
    for_loop,
    if_,
    make_undefined,
    tape_len,
    tape_new,
    tape_pop,
    tape_push,
    while_loop,
)
from s2s.ops.core.record import value

LENGTH = 4
VECTOR = Array("float64", (LENGTH,))
NAMES = ["x", "y", "u", "v", "x_bar", ""]


class Maker:
    """Makes one function from a seed."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def function(self) -> Function:
        params = [
            Value(Scalar("float64"), "a"),
            Value(VECTOR, "u"),
            Value(VECTOR, "v"),
            Value(INT, "n"),
        ]
        block = Block(params)
        with Builder(block):
            pool = list(params)
            self.statements(pool, 3, self.random.randint(3, 8))
            block.yields = [
                self.pick(pool, self.random.choice(["scalar", "vector"])) for _ in range(2)
            ]
        return Function("f", block, tupled=True)

    def pick(self, pool: list[Value], kind: str) -> Value:
        """Some value of a kind, rather a recent one."""
        fitting = [
            x
            for x in pool
            if kind == "scalar"
            and isinstance(x.type, Scalar)
            and x.type.dtype == "float64"
            or kind == "vector"
            and x.type == VECTOR
            or kind == "int"
            and x.type == INT
        ]
        if not fitting:
            return value(1.5)
        return fitting[-1 - min(int(self.random.expovariate(0.7)), len(fitting) - 1)]

    def name(self, x: Value) -> Value:
        if x.op is not None and not x.name:
            x.name = self.random.choice(NAMES)
        return x

    def statements(self, pool: list[Value], depth: int, count: int) -> None:
        for _ in range(count):
            kinds = [
                "number",
                "number",
                "count",
                "vector",
                "read",
                "view",
                "write",
                "write",
                "add",
                "store",
            ]
            if depth:
                kinds += ["for", "if", "while", "tape", "maybe"]
            getattr(self, "make_" + self.random.choice(kinds))(pool, depth)

    def index(self, pool: list[Value]) -> Value:
        return value(self.random.randrange(LENGTH))

    def make_number(self, pool, depth) -> None:
        a, b = self.pick(pool, "scalar"), self.pick(pool, "scalar")
        op = self.random.choice([ew.add, ew.subtract, ew.multiply, lambda a, b: ew.sin(a)])
        pool.append(self.name(op(a, b)))

    def make_count(self, pool, depth) -> None:
        pool.append(self.name((self.pick(pool, "int") + self.pick(pool, "int")) % 4))

    def make_vector(self, pool, depth) -> None:
        a, b = self.pick(pool, "vector"), self.pick(pool, self.random.choice(["scalar", "vector"]))
        op = self.random.choice([ew.add, ew.subtract, ew.multiply, lambda a, b: ew.sin(a)])
        pool.append(self.name(op(a, b)))

    def make_read(self, pool, depth) -> None:
        pool.append(self.name(getitem(self.pick(pool, "vector"), self.index(pool), pattern=("i",))))

    def make_view(self, pool, depth) -> None:
        pattern = self.random.choice([("...",), ("..x",)])
        steps = [value(-1)] if pattern == ("..x",) else []
        pool.append(self.name(getitem(self.pick(pool, "vector"), *steps, pattern=pattern)))

    def make_write(self, pool, depth) -> None:
        new = setitem(
            self.pick(pool, "vector"), self.pick(pool, "scalar"), self.index(pool), pattern=("i",)
        )
        pool.append(self.name(new))

    def make_store(self, pool, depth) -> None:
        new = setitem(self.pick(pool, "vector"), self.pick(pool, "vector"), pattern=("...",))
        pool.append(self.name(new))

    def make_add(self, pool, depth) -> None:
        x, i = self.pick(pool, "vector"), self.index(pool)
        if self.random.random() < 0.5:
            pool.append(self.name(additem(x, self.pick(pool, "scalar"), i, pattern=("i",))))
        else:
            new = getitem(x, i, pattern=("i",)) + self.pick(pool, "scalar")
            pool.append(self.name(setitem(x, new, i, pattern=("i",))))

    def carries(self, pool) -> tuple[list[str], list[Value], list[str]]:
        kinds = [
            self.random.choice(["scalar", "vector", "int"])
            for _ in range(self.random.randint(1, 3))
        ]
        inits = [self.pick(pool, kind) for kind in kinds]
        return kinds, inits, [x.name or self.random.choice(NAMES) for x in inits]

    def block(self, pool, depth, params, kinds, flag: bool) -> list[Value]:
        inner = [*pool, *params]
        self.statements(inner, depth - 1, self.random.randint(1, 4))
        yields = [self.pick(inner, kind) for kind in kinds]
        self.random.shuffle(yields) if len(set(kinds)) == 1 else None
        if not flag:
            return yields
        stop = self.pick(inner, "scalar") > 2.0
        if self.random.random() < 0.5:
            early, late = list(yields), [self.pick(inner, kind) for kind in kinds]
            return list(
                if_(stop, lambda: [True, *early], lambda: [False, *self.more(inner, depth, late)])
            )
        return [stop, *yields]

    def more(self, pool, depth, late):
        self.statements(pool, depth - 1, 1)
        return late

    def make_for(self, pool, depth) -> None:
        kinds, inits, names = self.carries(pool)
        flag = self.random.random() < 0.4

        def body(i, *params):
            return self.block([*pool, i], depth, params, kinds, flag)

        state = self.random.getstate()
        pool += for_loop(
            0, self.pick(pool, "int"), 1, inits, self.repeated(body, state), flag, names
        )

    def make_while(self, pool, depth) -> None:
        kinds, inits, names = self.carries(pool)
        inits, names = [value(0.0), *inits], ["k", *names]
        flag = self.random.random() < 0.4

        def body(k, *params):
            stop_and = self.block([*pool, k], depth, params, kinds, flag)
            return [stop_and[0], k + 1.0, *stop_and[1:]] if flag else [k + 1.0, *stop_and]

        state = self.random.getstate()
        pool += while_loop(
            inits, lambda k, *params: k < 3.0, self.repeated(body, state), flag, names
        )[1:]

    def repeated(self, body, state):
        """`body`, making the same choices each time a loop's builder emits it."""

        def again(*params):
            self.random.setstate(state)
            return body(*params)

        return again

    def make_if(self, pool, depth) -> None:
        kinds, inits, names = self.carries(pool)
        test = self.pick(pool, "scalar") > 0.5
        pool += if_(
            test,
            lambda: self.block(pool, depth, [], kinds, False),
            lambda: (
                inits if self.random.random() < 0.4 else self.block(pool, depth, [], kinds, False)
            ),
            names,
        )

    def make_maybe(self, pool, depth) -> None:
        """A value that exists on one path only, and is handed on on both."""
        x, test = (
            self.pick(pool, self.random.choice(["scalar", "vector"])),
            self.pick(pool, "scalar") > 0.5,
        )
        names = [self.random.choice(NAMES)]
        (y,) = if_(test, lambda: [x], lambda: [make_undefined()], names)
        (z,) = for_loop(
            0, 2, 1, [make_undefined()], lambda i, z: [y], names=[self.random.choice(NAMES)]
        )
        pool += if_(test, lambda: [z], lambda: [x], names)

    def make_tape(self, pool, depth) -> None:
        x = self.pick(pool, "vector")

        def save(i, tape, x):
            return [tape_push(tape, x), setitem(x, self.pick(pool, "scalar"), i, pattern=("i",))]

        def load(i, tape, y):
            tape, x = tape_pop(tape)
            return [tape, y + x]

        tape, x = for_loop(0, 3, 1, [emit(tape_new), x], save, names=["x_tape", x.name])
        trips = emit(tape_len, tape) if self.random.random() < 0.5 else 3
        _, y = for_loop(0, trips, 1, [tape, x], load, names=["x_tape", self.random.choice(NAMES)])
        pool += [x, y]
