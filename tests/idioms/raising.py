"""A `try` around each operation that Python raises in, with numbers for which it does and for which
it does not.
"""

from __future__ import annotations

from generate import CONSTANTS, Scope

from .writer import Wide, idiom

FAR = ("400.0", "800.0", "-1e5", "0.0", "-1.0", "-2.0", "1.0", "0.5")
OF_ONE = (
    "sqrt",
    "log",
    "log2",
    "log10",
    "log1p",
    "asin",
    "acos",
    "acosh",
    "atanh",
    "exp",
    "expm1",
    "sinh",
    "cosh",
    "gamma",
    "lgamma",
    "sin",
    "tan",
)
ABOVE = {
    "ZeroDivisionError": "ArithmeticError",
    "OverflowError": "ArithmeticError",
    "ValueError": "Exception",
    "IndexError": "LookupError",
}


def number(out: Wide, scope: Scope) -> str:
    """A number of Python's, often one at which some function raises; it depends on what is
    differentiated, or only on integers.
    """
    i = out.pick(scope.ints)
    return out.pick(
        [
            f"float({out.scalar(scope, 1)})",
            f"{out.pick(FAR)} * ({i} % 2)",
            f"{out.pick(FAR)} + 0.0 * {i}",
            f"float({out.pick(scope.scalars)}) - {abs(out.pick(CONSTANTS))}",
            f"{i} % 3 - 1.0",
        ]
    )


@idiom("raising")
def function_of_math(out: Wide, scope: Scope, loop: str | None) -> None:
    """A function of Python's math, whose arguments may not suit it."""
    u, i = number(out, scope), out.pick(scope.ints)
    kind, risky = out.pick(
        [
            *[("ValueError", f"math.{name}({u})") for name in OF_ONE],
            ("OverflowError", f"math.exp({u})"),
            ("OverflowError", f"math.cosh({u})"),
            ("ValueError", f"math.pow({u}, 0.5)"),
            ("ValueError", f"math.fmod({u}, {i} % 2 * 1.5)"),
            ("ValueError", f"math.remainder({u}, {i} % 2 * 1.5)"),
            ("OverflowError", f"10.0 ** ({u})"),
            ("ZeroDivisionError", f"({u}) ** -1"),
            ("ZeroDivisionError", f"1.0 / ({u})"),
            ("ZeroDivisionError", f"({u}) % ({i} % 2 * 1.5)"),
            ("ValueError", f"float(int({u} * math.inf ** ({i} % 2)))"),
            ("OverflowError", f"float(int(math.inf ** ({i} % 2)))"),
            ("IndexError", f"{out.pick(scope.arrays)}[{i} + 3]"),
            ("ValueError", f"1.0 * (3 << ({i} % 3 - 1))"),
        ]
    )
    caught = out.pick(
        [
            kind,
            kind,
            ABOVE[kind],
            "Exception",
            f"(KeyError, {kind})",
            "(ArithmeticError, ValueError, LookupError)",
        ]
    )
    name = out.fresh("s")
    bound = out.chance(0.3)
    out.emit(f"{name} = {out.bounded(scope)}")
    out.emit("try:")
    out.emit(f"    {name} = np.tanh({risky})" if out.chance(0.7) else f"    {risky}")
    if out.chance(0.3):
        out.emit(f"    {name} = {name} + {out.bounded(scope)}")
    out.emit(f"except {caught} as error:" if bound else f"except {caught}:")
    out.emit(
        f"    {name} = {out.bounded(scope)}"
        + (f" * (0.5 if isinstance(error, {kind}) else 2.0)" if bound else "")
    )
    if caught not in ("Exception", "(ArithmeticError, ValueError, LookupError)"):
        out.emit("except Exception:")
        out.emit(f"    {name} = {name} + 0.25")
    if out.chance(0.25):
        out.emit("else:")
        out.emit(f"    {name} = {name} * 0.75")
    scope.scalars.append(name)


@idiom("raising")
def helper_that_raises(out: Wide, scope: Scope, loop: str | None) -> None:
    """The operation in a function, the handler around its call."""
    name = out.fresh("s")
    call, kind = out.pick(
        [
            (f"{out.need('rooted')}({number(out, scope)})", "ValueError"),
            (f"{out.need('shared')}({number(out, scope)})", "ZeroDivisionError"),
        ]
    )
    out.emit("try:")
    out.emit(f"    {name} = {call}")
    out.emit(f"except {out.pick([kind, ABOVE[kind]])}:")
    out.emit(f"    {name} = {out.bounded(scope)}")
    scope.scalars.append(name)
