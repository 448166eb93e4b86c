"""Random functions come out the same from their text as from Numba's passes: numbers, types,
exceptions, and what is freed.
"""

import importlib
import linecache
import math
import random

import numpy as np
import pytest
from numba import njit
from numba.core.compiler import Compiler
from numba.core.runtime import _nrt_python, rtsys

from s2s.runtime.debug.load_source import TEXT
from s2s.runtime.intrinsics.minmax import larger, smaller
from s2s.runtime.intrinsics.noalias_alloc import unshared_zeros
from s2s.runtime.llvm import split_module
from s2s.runtime.numba.compiler import Effort

pytestmark = pytest.mark.compile
# a function of that name stands in the package
extracted = importlib.import_module("s2s.runtime.emit.outline_loops")

HELPERS = """
@njit
def made(a, k):
    b = np.copy(a)
    b[0] += k
    return b, k, b[1:]
@njit
def one_of(a, b, k):
    if k > 1:
        return a
    return b
@njit
def checked(k):
    if k == 3:
        raise ValueError('three', k)
    return k * 2
"""


class Old(Effort):
    """Numba's passes alone."""

    def _compile_core(self):
        self.emitter = None
        return Compiler._compile_core(self)


class Program:
    """A random function of `m`, integers, `n`, numbers, `b`, truth values, and `a`, `c`, arrays."""

    def __init__(self, seed: int):
        self.random, self.lines, self.depth, self.loops = random.Random(seed), [], 1, 0
        for _ in range(7):
            self.statement()
        self.line("return n0 * 1.0, m0, m1, a0, a1, (c, (b0, n1 * 1.0))")
        self.text = (
            HELPERS
            + "@njit\ndef f(m0, m1, n0, n1, b0, a0, a1, c):\n"
            + "\n".join(self.lines)
            + "\n"
        )

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def one(self, *ways: str) -> str:
        return self.random.choice(ways)

    def integer(self, deep: int = 0) -> str:
        if deep > 1:
            return self.one("m0", "m1", "2", "-3", "len(a0)")
        x, y = self.integer(deep + 1), self.integer(deep + 1)
        return self.one(
            f"((m1 - {x}) {self.one('+', '-', '*', '&', '|')} {y})",
            f"({x} % (1 + abs({y})))",
            f"(m1 // {self.one('2', '-2')})",
            f"(m0 << ({y} % 5))",
            f"({x} if {self.truth(deep + 1)} else {y})",
            f"min({x}, {y})",
            f"max({x}, 0)",
            f"(m0 ** {self.one('0', '2', '3')})",
            "c.shape[-1]",
            x,
        )

    def number(self, deep: int = 0) -> str:
        if deep > 2:
            return self.one("n0", "n1", "m0", "b0", "0.5", "np.inf", "-0.0")
        x, y = self.number(deep + 1), self.number(deep + 1)
        return self.one(
            f"(n0 {self.one('+', '-', '*', '/', '//', '%')} {x})",
            f"({x} if {self.truth(deep + 1)} else {y})",
            f"(n1 ** {self.one('2', '-1', '0.5')})",
            f"-(n0 * {x})",
            f"{self.one('np.sin', 'abs', 'np.sqrt', 'np.float32')}({x})",
            f"max({x}, {y})",
            f"checked({self.integer(deep + 1)})",
            f"{self.array(deep + 1)}[0]",
            f"a0[{self.integer(deep + 1)} % len(a0)]",
            f"c[-1 - {self.integer(deep + 1)} % c.shape[0], 1]",
            f"made({self.array(deep + 1)}, 2)[2].sum()",
        )

    def truth(self, deep: int = 0) -> str:
        order = self.one("<", "<=", "==", "!=")
        if deep > 2:
            return self.one("b0", f"(m0 {order} m1)", f"(n0 {order} n1)")
        x, y = self.truth(deep + 1), self.truth(deep + 1)
        return self.one(
            f"({x} and {y})",
            f"({x} or {y})",
            f"(not {x})",
            f"({self.number(deep + 1)} {order} {self.number(deep + 1)})",
            f"({self.integer(deep + 1)} {order} m0 < 4)",
        )

    def array(self, deep: int = 0) -> str:
        if deep > 1:
            return self.one("a0", "a1")
        x, y = self.array(deep + 1), self.array(deep + 1)
        return self.one(
            x,
            f"np.copy({x})",
            f"one_of({x}, {y}, m0)",
            f"({x} if {self.truth(deep + 1)} else {y})",
            f"made({x}, m1)[0]",
            f"({x}, {y}.T)[1]",
            "np.zeros(4)",
            "c[1]",
            "unshared_zeros(4)",
            "unshared_zeros(5)",
        )

    def statement(self) -> None:
        a = self.one("a0", "a1")
        match self.random.randrange(15 if self.depth < 4 else 11):
            case 0 | 1:
                self.line(f"{self.one('n0', 'n1')} = {self.number()}")
            case 2:
                self.line(f"{self.one('m0', 'm1')} = {self.integer()} % 1000")
            case 3 | 4:
                self.line(f"{a} = {self.array()}")
            case 5:
                self.line(
                    self.one(
                        "a0, a1 = a1, a0",
                        f"a0, a0 = a1, {self.array()}",
                        "m0, m1 = m1, m0",
                        f"{a}, m1, t = made({a}, m0 % 9)",
                    )
                )
            case 6:
                self.line(
                    f"{a}[{self.integer()} % len({a})] {self.one('=', '+=', '*=')} {self.number()}"
                )
            case 7:
                self.line(f"t = {self.array()}, 1.0 * {self.number(1)}")
                self.line(f"{a} = t[0]")
            case 8:
                self.line(f"n0 {self.one('+', '*', '-')}= {self.number()}")
            case 9 if self.loops:
                self.line(f"if {self.truth()}:")
                self.line(
                    "    "
                    + self.one("break", "continue", "return 0.5, m0, m0, a1, a0, (c, (b0, 0.5))")
                )
            case 10:
                self.line(f"b0 = {self.truth()}")
            case 11 | 12:
                self.line(f"if {self.truth()}:")
                self.block()
                self.line("else:")
                self.block()
            case 13:
                self.line(
                    "for i in range("
                    + self.one("m0 % 4", "3, m1 % 4, -1", "m0 % 3, 9, 2", "len(a0)") + "):"
                )
                self.inside_a_loop("m1 = m1 * 3 + i")
            case 14:
                self.line(f"k{self.depth} = 0")
                self.line(f"while k{self.depth} < 3 and {self.truth()}:")
                self.inside_a_loop(f"k{self.depth} += 1")

    def inside_a_loop(self, first: str) -> None:
        self.line("    " + first)
        self.loops += 1
        self.block()
        self.loops -= 1

    def block(self) -> None:
        self.depth += 1
        for _ in range(self.random.randint(1, 3)):
            self.statement()
        self.line("pass")
        self.depth -= 1


def compiled(text: str, seed: int, way: type):
    name = f"<random {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    module = {
        "np": np,
        "math": math,
        "unshared_zeros": unshared_zeros,
        "max": larger,
        "min": smaller,
        TEXT: text,
        "__name__": "random_direct",
    }
    module["njit"] = njit(
        error_model="numpy", nogil=True, pipeline_class=way, no_cfunc_wrapper=True
    )
    exec(compile(text, name, "exec"), module)
    return module["f"]


def arguments(seed: int, turn: int) -> list:
    rng = np.random.default_rng([seed, turn])
    m, n = rng.integers(-4, 7, 2).tolist(), rng.standard_normal(2).tolist()
    return [
        *m,
        n[0] if turn else math.nan,
        n[1],
        bool(turn % 2),
        rng.standard_normal(5),
        rng.standard_normal(4),
        rng.standard_normal((3, 4)),
    ]


def outcome(function, args: list) -> tuple:
    """What a call gives or raises, what it makes of its arguments, and how many allocations are
    left of it.
    """
    before = rtsys.get_allocation_stats()
    try:
        found = repr(function(*args))
    except (ValueError, ZeroDivisionError) as error:
        found = type(error), error.args, error.__traceback__.tb_next is None
    after = rtsys.get_allocation_stats()
    left = (
        after.alloc - before.alloc - (after.free - before.free),
        after.mi_alloc - before.mi_alloc - (after.mi_free - before.mi_free),
    )
    return found, repr(args), left


@pytest.mark.parametrize("seed", range(4))
def test_random_functions_come_out_as_from_numbas_passes(seed, request):
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    text = Program(seed).text
    direct, old = compiled(text, seed, Effort), compiled(text, seed, Old)
    for turn in range(5):
        found, wanted = outcome(direct, arguments(seed, turn)), outcome(old, arguments(seed, turn))
        assert found[:2] == wanted[:2]
        assert found[2] == (0, 0)  # Numba's passes leave what a function holds that raises
    assert [o.signature for o in direct.overloads.values()] == [
        o.signature for o in old.overloads.values()
    ]
    assert all(o.library.is_direct for o in direct.overloads.values())


# of programs that are compiled directly
@pytest.mark.parametrize("seed", [100, 101, 102, 104, 106, 107, 108])
def test_and_so_they_do_if_every_loop_is_a_function(seed, request, monkeypatch):
    for name, least in (("LEAST", 0), ("LEFT", -1), ("HEAVY", 0)):
        monkeypatch.setattr(extracted, name, least)
    for name in ("LEAST", "PIECE"):
        monkeypatch.setattr(split_module, name, 0)
    test_random_functions_come_out_as_from_numbas_passes(seed, request)
