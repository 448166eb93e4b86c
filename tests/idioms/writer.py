"""Writes the programs: generate.py's statements, and idioms between them."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable

from generate import Scope, Writer

from .definitions import PREAMBLE

FAMILIES: dict[str, list[Callable]] = {}


def idiom(*families: str) -> Callable:
    """Says that a function (writer, scope, loop) writes an idiom of these families."""

    def register(function: Callable) -> Callable:
        for family in families:
            FAMILIES.setdefault(family, []).append(function)
        return function

    return register


class Wide(Writer):
    """Writes statements of generate.py, and idioms of `families` (all of them, if none is named)
    between them.
    """

    def __init__(self, rng: random.Random, size: int, families: tuple[str, ...]):
        super().__init__(rng, size)
        self.needs: dict[str, None] = {}
        self.idioms = [
            idiom
            for family, idioms in FAMILIES.items()
            if not families or family in families
            for idiom in idioms
        ]

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
        return self.pick(
            ["range(n)", "range(3)", "range(1, n + 1)", f"range({self.pick(scope.ints)} % 3 + 1)"]
        )
