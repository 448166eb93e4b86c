"""Random programs: from a seed to the text of a function, for Hypothesis and for the fuzzer.

`text(seed)` is a function `f(x, y, a, m, n)` of two floats, an array of five, an array of 3 x 4,
and an int.  It nests `if`, `for` and `while`, leaves loops by `break`, `continue` and `return`, and
writes arrays in place, through slices, views and other names.  It always ends: every loop has few
trips.  It stays finite and well-conditioned: what is assigned is bounded, or grows by a bounded
amount.  It is smooth almost everywhere: branches compare numbers that no program makes equal by
design.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable

import numpy as np

LENGTH, ROWS, COLUMNS = 5, 3, 4
CONSTANTS = [0.3, 0.7, -0.4, 1.1, 0.9, -0.8, 0.55, 2.0]


def arguments(seed: int) -> tuple:
    """Arguments for `text(seed)`."""
    rng = np.random.default_rng(seed)
    x, y = (float(v) for v in rng.uniform(-1.5, 1.5, 2))
    return (
        x,
        y,
        rng.uniform(-1.5, 1.5, LENGTH),
        rng.uniform(-1.5, 1.5, (ROWS, COLUMNS)),
        int(rng.integers(1, 4)),
    )


def text(seed: int, size: int | None = None) -> str:
    """The program of this seed, of about `size` statements: 3 to 14 where it is not given."""
    return Writer(random.Random(seed), 3 + seed % 12 if size is None else size).program()


def strategy():
    """Hypothesis: a seed, which shrinks to smaller seeds (the fuzzer's reducer makes smaller
    programs).
    """
    from hypothesis import strategies
    return strategies.integers(0, 2**32 - 1)


class Scope:
    """The names that are certainly bound here, by kind, and the loop indices with their bounds."""

    def __init__(self, scalars, arrays, tables, ints):
        self.scalars, self.arrays, self.tables, self.ints = (
            list(scalars),
            list(arrays),
            list(tables),
            list(ints),
        )

    def inner(self) -> Scope:
        return Scope(self.scalars, self.arrays, self.tables, self.ints)

    def keep_common(self, *branches: Scope) -> None:
        for kind in ("scalars", "arrays", "tables", "ints"):
            names = [set(getattr(branch, kind)) for branch in branches]
            first = getattr(branches[0], kind)
            setattr(self, kind, [name for name in first if all(name in other for other in names)])


class Writer:
    def __init__(self, rng: random.Random, size: int):
        self.rng, self.left = rng, size
        self.lines: list[str] = []
        self.depth = 1
        self.counter = 0

    def program(self) -> str:
        scope = Scope(["x", "y"], ["a"], ["m"], ["n"])
        self.lines = ["def f(x, y, a, m, n):"]
        while self.left > 0:
            self.statement(scope, None)
        self.emit(f"return {self.result(scope)}")
        return ast.unparse(ast.parse("\n".join(self.lines))) + "\n"  # without needless parentheses

    # ------------------------------------------------------------------------------ small choices

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def pick(self, items):
        return self.rng.choice(items)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def index(self, scope: Scope, length: int) -> str:
        """An index that is in range of an axis of this length."""
        i = self.pick(scope.ints)
        return self.pick(
            [
                str(self.rng.randrange(length)),
                str(-1 - self.rng.randrange(length)),
                f"{i} % {length}",
                f"({i} + {self.rng.randrange(1, 4)}) % {length}",
                f"{i} % {length} - 1",
                f"({i} * 2) % {length}",
            ]
        )

    # -------------------------------------------------------------------------------- expressions

    def scalar(self, scope: Scope, depth: int = 2) -> str:
        """An expression for a float, of any sign and not large."""
        if depth == 0 or self.chance(0.2):
            return self.pick(
                [
                    lambda: self.pick(scope.scalars),
                    lambda: self.pick(scope.scalars),
                    lambda: str(self.pick(CONSTANTS)),
                    lambda: self.element(scope),
                    lambda: self.element(scope),
                ]
            )()
        e, g = (lambda: self.scalar(scope, depth - 1)), self.bounded
        return self.pick(
            [
                lambda: f"{e()} + {e()}",
                lambda: f"{e()} - {e()}",
                lambda: f"{g(scope, depth)} * ({e()})",
                lambda: f"({e()}) / (1.0 + ({e()}) ** 2)",
                lambda: f"-({e()})",
                lambda: g(scope, depth),
                lambda: f"{g(scope, depth)} * {self.pick(scope.ints)}",
                lambda: self.reduction(scope),
                lambda: f"(({e()}) if {self.condition(scope)} else ({e()}))",
                lambda: f"np.maximum({e()}, {g(scope, depth)} + 0.3771)",
                lambda: f"min({e()}, {g(scope, depth)} - 0.2837)",
            ]
        )()

    def bounded(self, scope: Scope, depth: int = 2) -> str:
        """An expression for a float between -2 and 2."""
        e = self.scalar(scope, max(depth - 1, 0))
        return self.pick(
            [
                f"np.sin({e})",
                f"np.cos({e})",
                f"np.tanh({e})",
                f"np.exp(-({e}) ** 2)",
                f"1.0 / (1.0 + ({e}) ** 2)",
                f"np.arctan({e})",
                f"np.log(1.0 + np.exp(-abs({e})))",
                f"np.sin({e}) ** 3",
            ]
        )

    def element(self, scope: Scope) -> str:
        if self.chance(0.7):
            return f"{self.pick(scope.arrays)}[{self.index(scope, LENGTH)}]"
        return f"{self.pick(scope.tables)}[{self.index(scope, ROWS)}, {self.index(scope, COLUMNS)}]"

    def reduction(self, scope: Scope) -> str:
        b, c, t = self.pick(scope.arrays), self.pick(scope.arrays), self.pick(scope.tables)
        return self.pick(
            [
                f"np.mean({b})",
                f"np.sum(np.sin({b}))",
                f"{b}.mean()",
                f"np.tanh({b} @ {c})",
                f"np.mean({b}[1:] * {c}[:-1])",
                f"np.mean({t})",
                f"np.tanh(np.sum({t}[:, {self.index(scope, COLUMNS)}]))",
                f"np.mean({t}[{self.index(scope, ROWS)}])",
                f"np.max({b} + np.array([0.1, 0.2, 0.3, 0.4, 0.5]))",
            ]
        )

    def array(self, scope: Scope, depth: int = 2) -> str:
        """An expression for an array of LENGTH."""
        b = self.pick(scope.arrays)
        if depth == 0 or self.chance(0.25):
            return b
        e, s = (lambda: self.array(scope, depth - 1)), (lambda: self.scalar(scope, 1))
        return self.pick(
            [
                lambda: f"np.sin({e()})",
                lambda: f"np.tanh({e()} + {b})",
                lambda: f"np.cos({e()}) * ({s()})",
                lambda: f"({e()}) / (1.0 + {b} ** 2)",
                lambda: f"np.where({b} > {self.scalar(scope, 0)}, {e()}, {e()})",
                lambda: f"{b}[::-1] * 0.5",
                lambda: f"0.5 * ({e()}) + 0.5 * ({e()})",
                lambda: f"np.exp(-({e()}) ** 2)",
                lambda: (
                    f"np.tanh({self.pick(scope.tables)}.T @ {self.pick(scope.tables)}[:, 0])[{self.index(scope, COLUMNS)}] * {b}"
                ),
            ]
        )()

    def condition(self, scope: Scope) -> str:
        compare = f"{self.scalar(scope, 1)} {self.pick(['<', '>', '<=', '>='])} {self.pick(CONSTANTS) + 0.0137:.4f}"
        i, j = self.pick(scope.ints), self.pick(scope.ints)
        return self.pick(
            [
                compare,
                compare,
                compare,
                f"{i} % 2 == {self.rng.randrange(2)}",
                f"{i} < {j} + 1",
                f"{i} > 0 and {compare}",
                f"not {compare} or {i} == 1",
            ]
        )

    def result(self, scope: Scope) -> str:
        b, t = self.pick(scope.arrays), self.pick(scope.tables)
        return self.pick([
            f"{self.scalar(scope)} + np.sum({b}) + {self.pick(scope.scalars)}",
            f"np.sum({b} * {b}) + np.mean({t}) + {self.pick(scope.scalars)}",
            f"{self.pick(scope.scalars)} * {self.pick(scope.scalars)} + np.sin(np.sum({t} * {t})) + np.sum({b})",
        ])

    # --------------------------------------------------------------------------------- statements

    def statement(self, scope: Scope, loop: str | None) -> None:
        """One statement; `loop` is None outside loops."""
        self.left -= 1
        kinds: list[tuple[Callable, int]] = [
            (self.assign, 5),
            (self.augment, 3),
            (self.swap, 1),
            (self.assign_array, 3),
            (self.write_element, 5),
            (self.write_slice, 3),
            (self.write_view, 1),
            (self.write_table, 2),
            (self.assign_int, 1),
        ]
        if self.left > 0 and self.depth < 5:
            kinds += [(self.branch, 4), (self.for_loop, 4), (self.while_loop, 2)]
        choice = self.rng.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]
        if choice in (self.branch, self.for_loop, self.while_loop):
            choice(scope, loop)
        else:
            choice(scope)

    def body(self, scope: Scope, loop: str | None, most: int = 4) -> None:
        self.depth += 1
        for _ in range(self.rng.randint(1, most)):
            self.statement(scope, loop)
            if self.left <= 0:
                break
        self.depth -= 1

    def target(self, scope: Scope) -> str:
        if self.chance(0.6):
            return self.pick(scope.scalars)
        name = self.fresh("s")
        return name

    def grown(self, scope: Scope, name: str) -> str:
        """A value for `name`: bounded, or a little more than what it was."""
        choices = [
            lambda: self.bounded(scope),
            lambda: f"{self.bounded(scope)} * {self.bounded(scope)}",
            lambda: f"0.5 * {self.pick(scope.scalars)} + {self.bounded(scope)}",
        ]
        if name in scope.scalars:
            choices += [
                lambda: f"{name} + {self.bounded(scope)}",
                lambda: f"{name} * {self.pick([0.5, -0.9, 0.8])}",
            ]
        return self.pick(choices)()

    def assign(self, scope: Scope) -> None:
        name = self.target(scope)
        self.emit(f"{name} = {self.grown(scope, name)}")
        if name not in scope.scalars:
            scope.scalars.append(name)

    def augment(self, scope: Scope) -> None:
        name = self.pick(scope.scalars)
        self.emit(
            self.pick(
                [
                    f"{name} += {self.bounded(scope)}",
                    f"{name} -= {self.bounded(scope)}",
                    f"{name} *= {self.pick([0.5, -0.7])}",
                    f"{name} /= 1.0 + {self.pick(scope.scalars)} ** 2",
                ]
            )
        )

    def swap(self, scope: Scope) -> None:
        p, q = self.pick(scope.scalars), self.pick(scope.scalars)
        self.emit(f"{p}, {q} = {q}, {self.grown(scope, p)}" if p != q else f"{p} = -{p}")

    def assign_int(self, scope: Scope) -> None:
        name = self.fresh("k")
        self.emit(f"{name} = {self.pick(scope.ints)} + {self.rng.randrange(3)}")
        scope.ints.append(name)

    def assign_array(self, scope: Scope) -> None:
        name = self.pick(scope.arrays) if self.chance(0.4) else self.fresh("b")
        self.emit(
            f"{name} = "
            + self.pick(
                [
                    lambda: self.array(scope),
                    lambda: self.array(scope),
                    lambda: f"{self.pick(scope.arrays)}.copy()",
                    lambda: f"np.zeros({LENGTH})",
                    lambda: self.pick(scope.arrays),
                    lambda: (
                        f"np.array([{', '.join(self.scalar(scope, 1) for _ in range(LENGTH))}])"
                    ),
                    lambda: f"np.full({LENGTH}, {self.bounded(scope)})",
                ]
            )()
        )
        if name not in scope.arrays:
            scope.arrays.append(name)

    def write_element(self, scope: Scope) -> None:
        place = f"{self.pick(scope.arrays)}[{self.index(scope, LENGTH)}]"
        self.emit(
            self.pick(
                [
                    f"{place} = {self.bounded(scope)}",
                    f"{place} = {self.bounded(scope)}",
                    f"{place} += {self.bounded(scope)}",
                    f"{place} *= {self.pick([0.5, -0.7])}",
                    f"{place} = 0.5 * {place} + {self.bounded(scope)}",
                ]
            )
        )

    def write_slice(self, scope: Scope) -> None:
        b, c = self.pick(scope.arrays), self.pick(scope.arrays)
        place, other = self.pick(
            [
                ("1:3", "2:4"),
                ("1:", ":-1"),
                ("::2", "2:"),
                ("1:-1", "::2"),
                (":", ":"),
                ("3:", ":2"),
                ("::-1", ":"),
            ]
        )
        self.emit(
            self.pick(
                [
                    f"{b}[{place}] = np.sin({c}[{other}])",
                    f"{b}[{place}] = {self.bounded(scope)}",
                    f"{b}[{place}] += np.tanh({c}[{other}])",
                    f"{b}[{place}] *= 0.5",
                    f"{b}[{place}] = {c}[{other}] * 0.9",
                    f"{b}[:] = {self.array(scope)}",
                    f"{b} *= 0.8",
                    f"{b} += np.sin({c})",
                ]
            )
        )

    def write_view(self, scope: Scope) -> None:
        t, row = self.pick(scope.tables), self.fresh("row")
        self.emit(f"{row} = {t}[{self.index(scope, ROWS)}]")
        self.emit(f"{row}[{self.index(scope, COLUMNS)}] = {self.bounded(scope)}")
        if self.chance(0.5):
            self.emit(f"{self.pick(scope.scalars)} = np.sum(np.tanh({row}))")

    def write_table(self, scope: Scope) -> None:
        t = self.pick(scope.tables)
        i, j = self.index(scope, ROWS), self.index(scope, COLUMNS)
        k = self.index(scope, ROWS)
        self.emit(self.pick([
            f"{t}[{i}, {j}] = {self.bounded(scope)}", f"{t}[{i}, {j}] += {self.bounded(scope)}",
            f"{t}[{i}] = np.sin({t}[{k}])", f"{t}[:, {j}] = {self.pick(scope.arrays)}[1:4] * 0.9",
            f"{t}[{i}, 1:] *= 0.5", f"{t} = np.tanh({t} + {self.pick(scope.scalars)})",
        ]))

    def leave(self, scope: Scope, loop: str | None) -> None:
        """`break`, `continue` or `return`, under a condition."""
        ways = ["return"] + (["break", "break", "continue"] if loop else [])
        self.emit(f"if {self.condition(scope)}:")
        way = self.pick(ways)
        inner = scope.inner()
        self.depth += 1
        if self.chance(0.4):
            self.statement(inner, loop)
        self.emit(f"return {self.result(inner)}" if way == "return" else way)
        self.depth -= 1

    def branch(self, scope: Scope, loop: str | None) -> None:
        if self.chance(0.35 if loop else 0.15):
            return self.leave(scope, loop)
        branches = []
        self.emit(f"if {self.condition(scope)}:")
        branches.append(scope.inner())
        self.body(branches[-1], loop, 3)
        while self.chance(0.25) and len(branches) < 3:
            self.emit(f"elif {self.condition(scope)}:")
            branches.append(scope.inner())
            self.body(branches[-1], loop, 2)
        branches.append(scope.inner())
        if self.chance(0.6):
            self.emit("else:")
            self.body(branches[-1], loop, 3)
        scope.keep_common(*branches)

    def for_loop(self, scope: Scope, loop: str | None) -> None:
        i = self.fresh("i")
        outer = self.pick(scope.ints)
        inner = scope.inner()
        kind = self.rng.random()
        if kind < 0.75 or self.depth > 2:
            bounds = self.pick(
                [
                    "n",
                    "3",
                    "1, 4",
                    "3, -1, -1",
                    "0, 5, 2",
                    f"{outer} % 3",
                    f"n - {outer} % 2",
                    "len(a)",
                ]
            )
            self.emit(f"for {i} in range({bounds}):")
        elif kind < 0.88:
            v = self.fresh("v")
            self.emit(f"for {v} in {self.pick(scope.arrays)}.copy():")
            inner.scalars.append(v)
        else:
            v = self.fresh("v")
            self.emit(f"for {i}, {v} in enumerate(np.sin({self.pick(scope.arrays)})):")
            inner.scalars.append(v)
        if kind < 0.75 or kind >= 0.88 or self.depth > 2:
            inner.ints.append(i)
        self.body(inner, "for")

    def while_loop(self, scope: Scope, loop: str | None) -> None:
        k = self.fresh("k")
        self.emit(f"{k} = 0")
        test = self.pick(
            [
                f"{k} < {self.rng.randint(1, 4)}",
                f"{k} < {self.rng.randint(2, 4)} and {self.pick(scope.scalars)} < {self.pick(CONSTANTS) + 0.6137:.4f}",
            ]
        )
        scope.ints.append(k)
        self.emit(f"while {test}:")
        self.depth += 1
        self.emit(f"{k} += 1")
        self.depth -= 1
        inner = scope.inner()
        self.body(inner, "while")


# ----------------------------------------------------------------------------------------- reducing


BLOCKS = ("body", "orelse", "finalbody")


def smaller(program: str):
    """Programs with one thing less: a statement gone, a block put in place of its `if` or loop, an
    operand in place of its expression.  Some do not run; the caller tries them."""
    tree = ast.parse(program)
    for path in _places(tree):
        copied = copy.deepcopy(tree)
        body, k = copied, 0
        for step in path[:-1]:
            body = getattr(body, step) if isinstance(step, str) else body[step]
        k = path[-1]
        statement = body[k]
        replacements = [[]]
        for inner in BLOCKS:
            if getattr(statement, inner, None) and not isinstance(
                statement, (ast.FunctionDef, ast.ClassDef)
            ):
                replacements.append(getattr(statement, inner))
        replacements += [
            part.body
            for several in ("handlers", "cases")
            for part in getattr(statement, several, [])
        ]
        for new in replacements:
            saved = body[k: k + 1]
            body[k: k + 1] = new
            if body:
                yield ast.unparse(ast.fix_missing_locations(copied)) + "\n"
            body[k: k + len(new)] = saved
    for count, node in enumerate(ast.walk(tree)):
        for name, child in ast.iter_fields(node):
            if (
                not isinstance(child, ast.expr)
                or isinstance(getattr(child, "ctx", None), ast.Store)
                or name in ("func", "slice")
            ):
                continue
            for part in [
                c
                for c in ast.iter_child_nodes(child)
                if isinstance(c, ast.expr) and not _is_callee(c, child)
            ]:
                copied = copy.deepcopy(tree)
                twin = list(ast.walk(copied))[count]
                setattr(twin, name, copy.deepcopy(part))
                yield ast.unparse(ast.fix_missing_locations(copied)) + "\n"


def _is_callee(part: ast.expr, parent: ast.expr) -> bool:
    return (
        isinstance(parent, ast.Call)
        and parent.func is part
        or isinstance(part, (ast.Slice, ast.Tuple))
    )


def _places(tree: ast.AST) -> list[tuple]:
    """Paths to every statement inside the function, big ones first."""
    found = []

    def visit(body: list, path: tuple) -> None:
        for k, statement in enumerate(body):
            found.append((*path, k))
            for inner in BLOCKS:
                visit(getattr(statement, inner, []), (*path, k, inner))
            for several in ("handlers", "cases"):
                for j, part in enumerate(getattr(statement, several, [])):
                    visit(part.body, (*path, k, several, j, "body"))

    for k, definition in enumerate(tree.body):
        visit(getattr(definition, "body", []), ("body", k, "body"))
    return sorted([*found, *(("body", k) for k in range(len(tree.body) - 1))], key=len)


def reduce(program: str, fails: Callable[[str], bool], budget: int = 400) -> str:
    """The smallest program found for which `fails` still holds, after at most `budget` trials."""
    shrinking = True
    while shrinking and budget > 0:
        shrinking = False
        for candidate in smaller(program):
            budget -= 1
            if len(candidate) < len(program) and fails(candidate):
                program, shrinking = candidate, True
                break
            if budget <= 0:
                break
    return program
