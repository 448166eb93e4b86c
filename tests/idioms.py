"""Random programs in all of the Python that numerical code is written in: generate.py's, and these idioms between.

Each method of `Wide` writes one idiom with random parts and belongs to a family, so that the fuzzer can be asked for some
of them (`tools/fuzz --wide --idioms lists views`).  Like generate.py's, programs end, stay finite, and are smooth almost everywhere.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable

from generate import COLUMNS, CONSTANTS, LENGTH, ROWS, Scope, Writer

PREAMBLE = {
    "damped": """
def damped(u, k):
    if k <= 0:
        return np.sin(u)
    return 0.5 * damped(0.9 * u, k - 1) + np.cos(u)
""",
    "tree_sum": """
def tree_sum(v):
    if len(v) < 2:
        return np.tanh(v[0])
    h = len(v) // 2
    return tree_sum(v[:h]) + 0.7 * tree_sum(v[h:])
""",
    "even": """
def even(u, k):
    return np.cos(u) if k == 0 else odd(0.8 * u, k - 1)


def odd(u, k):
    return np.sin(u) if k == 0 else even(u + 0.3, k - 1)
""",
    "bump": """
def bump(v, s):
    v[0] = v[0] * 0.5 + np.sin(s)
    v[1:] += 0.1 * s
""",
    "mix": """
def mix(v, w):
    v[1] = np.tanh(w[0]) + 0.5 * v[1]
    w[-1] = np.sin(v[0])
    return v[1] * w[-1]
""",
    "applied": """
def applied(g, u, *rest, scale=0.5, **others):
    s = g(u)
    for r in rest:
        s = s + scale * g(r)
    for k in others:
        s = s + 0.1 * others[k]
    return s
""",
    "safe_log": """
def safe_log(u):
    if u < 0.2:
        raise ValueError(f"too small: {u}")
    return np.log(u)
""",
    "Body": """
@dataclasses.dataclass
class Body:
    x: float
    h: np.ndarray

    def step(self, d):
        self.x = self.x + d * np.sin(self.x)
        self.h[0] = np.tanh(self.x)
        return self.energy()

    def energy(self):
        return 0.5 * self.x * np.cos(self.x) + np.mean(self.h)
""",
    "Pair": """
Pair = collections.namedtuple("Pair", "first second")
""",
}


def text(seed: int, families: tuple[str, ...] = ()) -> str:
    """The program of this seed: the definitions it needs, and `f(x, y, a, m, n)`."""
    return Wide(random.Random(f"wide {seed}"), 3 + seed % 10, families).program()


class Wide(Writer):
    """Writes statements of generate.py, and idioms of `families` (all of them, if none is named) between them."""

    def __init__(self, rng: random.Random, size: int, families: tuple[str, ...]):
        super().__init__(rng, size)
        self.needs: dict[str, None] = {}
        self.idioms = [idiom for family, idioms in FAMILIES.items() if not families or family in families for idiom in idioms]

    def program(self) -> str:
        body = super().program()
        definitions = "".join(PREAMBLE[name] + "\n" for name in self.needs)
        return ast.unparse(ast.parse(definitions + body)) + "\n"

    def statement(self, scope: Scope, loop: str | None) -> None:
        if not self.chance(0.55) or self.depth > 4:
            return super().statement(scope, loop)
        self.left -= 1
        self.pick(self.idioms)(self, scope, loop)

    # -------------------------------------------------------------------------------------- parts

    def need(self, name: str) -> str:
        self.needs[name] = None
        return name

    def new(self, scope: Scope, expression: str, prefix: str = "s") -> None:
        """A new number, or a new value for an old one."""
        name = self.pick(scope.scalars) if self.chance(0.4) else self.fresh(prefix)
        self.emit(f"{name} = {expression}")
        if name not in scope.scalars:
            scope.scalars.append(name)

    def block(self, scope: Scope, loop: str | None, most: int = 2) -> Scope:
        inner = scope.inner()
        self.left = max(self.left, 1)
        self.body(inner, loop, most)
        return inner

    def trips(self, scope: Scope) -> str:
        return self.pick(["range(n)", "range(3)", "range(1, n + 1)", f"range({self.pick(scope.ints)} % 3 + 1)"])

    # ------------------------------------------------------------------------------------ control

    def raise_and_catch(self, scope: Scope, loop: str | None) -> None:
        """An explicit raise, caught; what came before it stays done."""
        name = self.pick(scope.scalars)
        self.emit("try:")
        self.depth += 1
        self.emit(f"{name} = {self.bounded(scope)}")
        inner = scope.inner()
        if self.chance(0.4):
            self.left = max(self.left, 1)
            self.statement(inner, loop)
        self.emit(f"if {self.condition(inner)}:")
        self.emit("    raise ValueError('left')")
        self.emit(f"{name} = {name} + {self.bounded(inner)}")
        self.depth -= 1
        self.emit(self.pick(["except ValueError:", "except (KeyError, ValueError) as error:", "except Exception:"]))
        self.block(scope, loop)
        if self.chance(0.3):
            self.emit("else:")
            self.block(scope, loop, 1)
        if self.chance(0.3):
            self.emit("finally:")
            self.depth += 1
            self.emit(f"{name} *= 0.9")
            self.depth -= 1

    def error_of_an_operation(self, scope: Scope, loop: str | None) -> None:
        i = self.pick(scope.ints)
        kind, risky = self.pick([
            ("ZeroDivisionError", f"1.0 / ({i} % 2)"), ("IndexError", f"{self.pick(scope.arrays)}[{i} + 3]"),
            ("ValueError", f"{self.need('safe_log')}({self.scalar(scope, 1)})"),
            ("ZeroDivisionError", f"{i} // ({i} % 3) * 0.1"),
        ])
        name = self.fresh("s")
        self.emit("try:")
        self.emit(f"    {name} = np.tanh({risky})")
        self.emit(f"except {kind}:")
        self.emit(f"    {name} = {self.bounded(scope)}")
        scope.scalars.append(name)

    def loop_else(self, scope: Scope, loop: str | None) -> None:
        name = self.pick(scope.scalars)
        if self.chance(0.6):
            self.emit(f"for {self.fresh('i')} in {self.trips(scope)}:")
        else:
            k = self.fresh("k")
            self.emit(f"{k} = 0")
            self.emit(f"while {k} < {self.rng.randint(1, 4)}:")
            self.emit(f"    {k} += 1")
        self.emit(f"    {name} = {name} * 0.8 + {self.bounded(scope)}")
        self.emit(f"    if {self.condition(scope)}:")
        self.emit(f"        {name} += 0.1")
        self.emit("        break")
        self.emit("else:")
        self.emit(f"    {name} = {self.bounded(scope)}")

    def match(self, scope: Scope, loop: str | None) -> None:
        name, i = self.pick(scope.scalars), self.pick(scope.ints)
        subject, patterns = self.pick([
            (f"{i} % 4", ["0", "1 | 2", "_"]), (f"({i} % 2, {self.pick(scope.scalars)})", ["(0, u)", "(1, u) if u > 0.2137", "(_, u)"]),
            (f"{self.pick(scope.scalars)}", ["u if u < 0.1237", "u if u < 0.9137", "u"]),
        ])
        self.emit(f"match {subject}:")
        for pattern in patterns:
            self.emit(f"    case {pattern}:")
            extra = " + 0.1 * np.sin(u)" if "u" in pattern else ""
            self.emit(f"        {name} = {self.bounded(scope)}{extra}")

    def walrus(self, scope: Scope, loop: str | None) -> None:
        w = self.fresh("w")
        self.emit(f"if ({w} := {self.bounded(scope)}) > {self.pick(CONSTANTS) + 0.0137:.4f}:")
        scope.scalars.append(w)
        self.block(scope, loop)

    def unpack(self, scope: Scope, loop: str | None) -> None:
        p, q, r = self.fresh("s"), self.fresh("s"), self.fresh("r")
        source = self.pick([
            f"({self.bounded(scope)}, {self.bounded(scope)}, {self.bounded(scope)}, {self.bounded(scope)})",
            f"[{self.bounded(scope)}, {self.bounded(scope)}, {self.bounded(scope)}]", self.pick(scope.arrays),
        ])
        self.emit(self.pick([f"{p}, *{r}, {q} = {source}", f"{p}, {q}, *{r} = {source}", f"*{r}, {p}, {q} = {source}"]))
        self.emit(f"{p} = {p} + 0.5 * sum({r})")
        scope.scalars += [p, q]

    def chained(self, scope: Scope, loop: str | None) -> None:
        p, q = self.fresh("s"), self.pick(scope.scalars)
        self.emit(f"{p} = {q} = {self.bounded(scope)}")
        scope.scalars.append(p)

    def with_statement(self, scope: Scope, loop: str | None) -> None:
        self.emit(self.pick(["with np.errstate(all='ignore'):", "with contextlib.nullcontext():"]))
        self.body(scope, loop, 2)

    def checks(self, scope: Scope, loop: str | None) -> None:
        u = self.pick(scope.scalars)
        self.emit(self.pick([f"assert abs({u}) < 1e9, f'{{{u}}} is large'", f"if not {u} < 1e9:\n{'    ' * self.depth}    raise ValueError('large')"]))

    def nested_function(self, scope: Scope, loop: str | None) -> None:
        g, u = self.fresh("g"), self.fresh("u")
        free = self.pick(scope.scalars)
        self.emit(f"def {g}({u}, k=2):")
        self.emit(f"    if {u} > {free}:")
        self.emit(f"        return np.sin({u}) * k")
        self.emit(f"    return {u} * np.cos({free})")
        if self.chance(0.3):
            self.emit(f"{free} = {free} * 0.7")
        self.new(scope, f"{g}({self.bounded(scope)}) + {g}({self.pick(scope.scalars)}, k=1)")

    # ---------------------------------------------------------------------------------- functions

    def recursion(self, scope: Scope, loop: str | None) -> None:
        i, s = self.pick(scope.ints), self.pick(scope.scalars)
        self.new(scope, self.pick([
            lambda: f"{self.need('damped')}({s}, {i} % 4)", lambda: f"{self.need('tree_sum')}({self.pick(scope.arrays)})",
            lambda: f"{self.need('even')}({s}, {i} % 5)", lambda: f"{self.need('damped')}({s}, 3)",
        ])())

    def functions_as_values(self, scope: Scope, loop: str | None) -> None:
        s = self.pick(scope.scalars)
        self.new(scope, self.pick([
            f"{self.need('applied')}(np.sin, {s}, {self.bounded(scope)}, scale=0.3)",
            f"{self.need('applied')}(lambda u: np.cos(u) * {s}, *({s}, 0.3), w={self.bounded(scope)})",
            f"functools.partial({self.need('applied')}, np.tanh, scale=0.2)({s}, {s})",
            f"functools.reduce(lambda p, q: 0.5 * p + np.sin(q), [{s}, {self.bounded(scope)}, {s}])",
            f"sum(map(np.sin, ({s}, {self.bounded(scope)})))",
            f"[np.sin, np.cos, np.tanh][{self.rng.randrange(3)}]({s})",
        ]))

    def writes_into_arguments(self, scope: Scope, loop: str | None) -> None:
        b, t = self.pick(scope.arrays), self.pick(scope.tables)
        place = self.pick([b, f"{b}[1:]", f"{b}[::2]", f"{t}[{self.index(scope, ROWS)}]", f"{t}[:, {self.index(scope, COLUMNS)}]"])
        if self.chance(0.6):
            self.emit(f"{self.need('bump')}({place}, {self.bounded(scope)})")
        else:
            other = self.pick([f"{b}[2:]", f"{b}[:3]", self.pick(scope.arrays), place])
            self.new(scope, f"{self.need('mix')}({place}, {other})")

    # -------------------------------------------------------------------------------------- lists

    def appended(self, scope: Scope, loop: str | None) -> None:
        xs, i = self.fresh("xs"), self.fresh("i")
        self.emit(f"{xs} = {self.pick(['[]', f'[{self.bounded(scope)}]'])}")
        inner = scope.inner()
        self.emit(f"for {i} in {self.trips(scope)}:")
        inner.ints.append(i)
        self.depth += 1
        if self.chance(0.3):
            self.emit(f"if {self.condition(inner)}:")
            self.emit(f"    {xs}.append({self.bounded(inner)})")
        else:
            self.emit(f"{xs}.append({self.bounded(inner)})")
        self.depth -= 1
        self.new(scope, self.pick([
            f"sum({xs})", f"np.sum(np.array({xs}))", f"sum(np.sin(v) * k for k, v in enumerate({xs}))", f"len({xs}) * 0.1",
            f"sum([p * q for p, q in zip({xs}, {xs}[1:])])", f"np.tanh({xs}[-1]) if len({xs}) > 0 else 0.5", f"max({xs}, default=0.3)",
        ]))

    def appended_arrays(self, scope: Scope, loop: str | None) -> None:
        xs, i = self.fresh("xs"), self.fresh("i")
        self.emit(f"{xs} = [{self.pick(scope.arrays)} * 0.5]")
        self.emit(f"for {i} in {self.trips(scope)}:")
        self.emit(f"    {xs}.append(np.sin({xs}[-1]) + {self.bounded(scope)})")
        self.new(scope, self.pick([
            f"np.mean(np.stack({xs}))", f"np.sum(np.concatenate({xs})) * 0.1", f"np.mean({xs}[-1] * {xs}[0])", f"np.mean(np.array({xs})[:, 1])",
            f"sum(v[0] for v in {xs})",
        ]))

    def comprehension(self, scope: Scope, loop: str | None) -> None:
        i, b, s = self.fresh("i"), self.pick(scope.arrays), self.bounded(scope)
        self.new(scope, self.pick([
            f"sum([{s} * {i} for {i} in {self.trips(scope)}])", f"sum(np.sin(v) * {self.pick(scope.scalars)} for v in {b})",
            f"np.sum(np.array([np.cos(v) * {s} for v in {b}]))", f"max(np.sin(v) for v in {b})", f"sum(v * v for v in {b} if v > 0.1137)",
            f"np.mean(np.array([[p * q for p in {b}] for q in {self.pick(scope.arrays)}[:3]]))",
            f"sum(sorted([v * {s} for v in {b}])[1:3])", f"sum(p * q for p, q in zip({b}, {self.pick(scope.arrays)}[1:]))",
            f"sum({{k: np.sin({s} + k) for k in range(3)}}.values())", f"sum(v for row in {self.pick(scope.tables)} for v in row) * 0.1",
            f"sum(itertools.accumulate([{s}, {self.pick(scope.scalars)}, 0.3]))", f"0.5 * any(v > 0.3137 for v in {b}) + {s}",
        ]))

    # --------------------------------------------------------------------------------------- data

    def dictionary(self, scope: Scope, loop: str | None) -> None:
        d = self.fresh("d")
        self.emit(f"{d} = {{'u': {self.bounded(scope)}, 'h': {self.pick(scope.arrays)}}}")
        store = self.pick([f"{d}['u'] = {d}['u'] * 0.5 + {self.bounded(scope)}", f"{d}['h'][{self.index(scope, LENGTH)}] = np.sin({d}['u'])",
                           f"{d}['h'] = np.tanh({d}['h']) + {d}['u']"])
        if self.chance(0.5):
            self.emit(f"for {self.fresh('i')} in {self.trips(scope)}:")
            self.emit(f"    {store}")
        else:
            self.emit(store)
        self.new(scope, self.pick([f"{d}['u'] * {d}['h'][0]", f"np.sum({d}['h']) * 0.1 + {d}['u']", f"sum(np.sum(v) for v in {d}.values()) * 0.1"]))

    def dataclass(self, scope: Scope, loop: str | None) -> None:
        p = self.fresh("p")
        shared = self.pick([self.pick(scope.arrays), f"{self.pick(scope.arrays)}.copy()"])
        self.emit(f"{p} = {self.need('Body')}({self.bounded(scope)}, {shared})")
        if self.chance(0.6):
            self.emit(f"for {self.fresh('i')} in {self.trips(scope)}:")
            self.emit(f"    {p}.step({self.pick(CONSTANTS)})")
        self.emit(self.pick([f"{p}.x += {self.bounded(scope)}", f"{p}.h[{self.index(scope, LENGTH)}] += {p}.x", f"{p} = dataclasses.replace({p}, x=0.3)"]))
        self.new(scope, f"{p}.energy() + 0.3 * {p}.x")

    def named_pair(self, scope: Scope, loop: str | None) -> None:
        p = self.fresh("p")
        self.emit(f"{p} = {self.need('Pair')}({self.bounded(scope)}, second={self.pick(scope.arrays)})")
        if self.chance(0.5):
            self.emit(f"{p} = {p}._replace(first={p}.first * 0.5)")
        self.new(scope, f"{p}.first * {p}[1][0] + np.mean({p}.second)")

    def unequal_arrays(self, scope: Scope, loop: str | None) -> None:
        w, b = self.fresh("w"), self.fresh("c")
        name = self.pick(scope.scalars)
        t = self.pick(scope.tables)
        self.emit(f"for {w}, {b} in (({self.pick(scope.arrays)}, {self.bounded(scope)}), ({t}[0], {self.pick(scope.scalars)}), ({t}, 0.3)):")
        self.emit(f"    {name} = np.tanh({name} + np.mean({w}) * {b})")

    # ----------------------------------------------------------------------------------- mutation

    def stores(self, scope: Scope, loop: str | None) -> None:
        b, c, t = self.pick(scope.arrays), self.pick(scope.arrays), self.pick(scope.tables)
        i, j = self.index(scope, LENGTH), self.index(scope, LENGTH)
        self.emit(self.pick([
            f"np.add.at({b}, [0, 2, 2], np.sin({c}[:3]))", f"{b}[[3, 1]] = np.cos({c}[[0, 0]])", f"{b}[[0, 2, 2]] += {self.bounded(scope)}",
            f"{b}[{b} > {self.pick(CONSTANTS) + 0.0137:.4f}] = {self.bounded(scope)}", f"{b}[{c} < 0.2137] *= 0.5", f"np.fill_diagonal({t}, {self.bounded(scope)})",
            f"np.sin({c}, out={b})", f"np.multiply({b}, 0.5, out={b})", f"{b}.fill({self.bounded(scope)})", f"{b}.sort()", f"np.copyto({b}, np.tanh({c}))",
            f"{b}[{i}], {b}[{j}] = {b}[{j}], {b}[{i}]", f"{t}[[0, 1]] = {t}[[1, 0]]", f"{b}[1:] += {b}[:-1] * 0.5", f"{b}[:] = {c}[::-1]",
        ]))

    def views(self, scope: Scope, loop: str | None) -> None:
        b, t, v = self.pick(scope.arrays), self.pick(scope.tables), self.fresh("v")
        value = self.bounded(scope)
        for line in self.pick([
            [f"{v} = {b}[1:]", f"{v}[{self.rng.randrange(4)}] = {value}", f"{v} *= 0.9"],
            [f"for {v} in {t}:", f"    {v}[:] = np.sin({v}) + {value}"],
            [f"{v} = {t}.T", f"{v}[{self.index(scope, COLUMNS)}] = {value}"],
            [f"{v} = {t}.reshape(-1)", f"{v}[{self.rng.randrange(12)}] += {value}"],
            [f"{v} = {b}.reshape({LENGTH}, 1)", f"{v}[2, 0] = {value}"],
            [f"{v} = {t}[1:, ::2]", f"{v}[0] = {v}[1] * 0.5 + {value}"],
            [f"{v} = {b} if {self.condition(scope)} else {b}[:]", f"{v}[0] = {value}"],
            [f"{v} = [{b}, {t}[0]]", f"{v}[0][1] = {value}", f"{v}[1][:] = 0.5"],
            [f"for {v} in ({b}, {t}[1]):", f"    {v}[0] = np.tanh({v}[1]) + {value}"],
        ]):
            self.emit(line)

    def two_buffers(self, scope: Scope, loop: str | None) -> None:
        p, q = self.fresh("b"), self.fresh("b")
        self.emit(f"{p}, {q} = {self.pick(scope.arrays)}.copy(), np.zeros({LENGTH})")
        self.emit(f"for {self.fresh('i')} in {self.trips(scope)}:")
        self.emit(f"    {q}[1:] = np.sin({p}[:-1]) + {self.bounded(scope)}")
        self.emit(f"    {p}, {q} = {q}, {p}")
        scope.arrays.append(p)
        scope.arrays.append(q)

    # -------------------------------------------------------------------------------------- sizes

    def masked(self, scope: Scope, loop: str | None) -> None:
        b, c, w = self.pick(scope.arrays), self.pick(scope.arrays), self.fresh("z")
        self.emit(f"{w} = {b}[{c} > {self.pick(CONSTANTS) - 0.6137:.4f}]")
        self.new(scope, self.pick([f"np.sum(np.sin({w}))", f"len({w}) * 0.1 + np.sum({w} * {w})", f"np.tanh(np.sum({w}[:2]))", f"sum(u * u for u in {w})",
                                   f"np.sum({b}[np.nonzero({c} > 0.1137)[0]])", f"np.tanh({w}.sum()) * {w}.size"]))

    def grown_array(self, scope: Scope, loop: str | None) -> None:
        g, i = self.fresh("z"), self.fresh("i")
        self.emit(f"{g} = {self.pick(['np.zeros(0)', f'{self.pick(scope.arrays)}[:2]'])}")
        self.emit(f"for {i} in {self.trips(scope)}:")
        self.emit("    " + self.pick([f"{g} = np.append({g}, {self.bounded(scope)})", f"{g} = np.concatenate([{g}, np.sin({self.pick(scope.arrays)}[:{i} % 3 + 1])])",
                                      f"{g} = np.concatenate(({g} * 0.9, np.full({i} % 2 + 1, {self.pick(scope.scalars)})))"]))
        self.new(scope, self.pick([f"np.sum(np.sin({g}))", f"np.sum({g}) / (1 + len({g}))", f"np.sum({g} * {g})"]))

    def sized_by_data(self, scope: Scope, loop: str | None) -> None:
        k, z = self.fresh("k"), self.fresh("z")
        self.emit(f"{k} = int(np.sum({self.pick(scope.arrays)} > 0.0137))")
        scope.ints.append(k)
        self.emit(self.pick([f"{z} = np.zeros({k} + 1)", f"{z} = np.arange({k} + 2) * 0.1", f"{z} = np.linspace(0.0, {self.pick(scope.scalars)}, {k} + 2)"]))
        self.emit(f"{z}[:1] = {self.bounded(scope)}")
        self.new(scope, f"np.sum({z}) * 0.3 + np.sum({self.pick(scope.arrays)}[:{k}])")

    def complex_numbers(self, scope: Scope, loop: str | None) -> None:
        s, z = self.pick(scope.scalars), self.fresh("z")
        self.emit(f"{z} = {s} + 1j * {self.bounded(scope)}")
        if self.chance(0.4):
            self.emit(f"for {self.fresh('i')} in {self.trips(scope)}:")
            self.emit(f"    {z} = {z} * np.exp(1j * {self.pick(scope.scalars)}) * 0.9 + 0.1")
        self.new(scope, self.pick([f"{z}.real * 0.5 + {z}.imag", f"abs({z} + 2.0)", f"np.real(np.conj({z}) * {z})", f"np.abs({z} + 1.5j) ** 2 * 0.1"]))


FAMILIES: dict[str, list[Callable]] = {
    "control": [Wide.raise_and_catch, Wide.error_of_an_operation, Wide.loop_else, Wide.match, Wide.walrus, Wide.unpack, Wide.chained,
                Wide.with_statement, Wide.checks],
    "functions": [Wide.nested_function, Wide.recursion, Wide.functions_as_values, Wide.writes_into_arguments],
    "lists": [Wide.appended, Wide.appended_arrays, Wide.comprehension],
    "data": [Wide.dictionary, Wide.dataclass, Wide.named_pair, Wide.unequal_arrays],
    "mutation": [Wide.stores, Wide.views, Wide.two_buffers, Wide.writes_into_arguments],
    "sizes": [Wide.masked, Wide.grown_array, Wide.sized_by_data, Wide.complex_numbers],
}
