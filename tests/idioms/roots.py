"""Squares, even powers and products of what is a root, away from zero: a rewriting of them must not
change anything.
"""

from __future__ import annotations

from generate import Scope

from .writer import Wide, idiom


def size(out: Wide, scope: Scope) -> str:
    b = out.pick(scope.arrays)
    return out.pick(
        [
            f"np.linalg.norm({b})",
            f"np.sqrt(np.sum({b} ** 2))",
            f"abs({out.scalar(scope, 1)})",
            f"np.hypot({out.scalar(scope, 1)}, {out.scalar(scope, 1)})",
            f"np.std({b})",
            f"np.sqrt(0.5 + {b} @ {b})",
            f"np.abs({out.scalar(scope, 1)} + 0.5j * {out.bounded(scope)})",
        ]
    )


@idiom("roots")
def power_of_a_size(out: Wide, scope: Scope, loop: str | None) -> None:
    r = out.fresh("r")
    out.emit(f"{r} = {size(out, scope)}")
    scope.scalars.append(r)
    out.new(
        scope,
        out.pick(
            [
                f"np.tanh({r} ** 2)",
                f"np.tanh({r} * {r})",
                f"np.exp(-{r} ** 2)",
                f"np.tanh(np.square({r}))",
                f"np.cos({r} ** 4)",
                f"np.sin(0.5 * {r} * {r})",
                f"np.cos({r})",
                f"1.0 / (1.0 + {r} ** 2)",
                f"np.tanh({r} * {out.bounded(scope)} * {r})",
                f"np.tanh(np.power({r}, 2.0) + {r})",
            ]
        ),
    )
    if out.chance(0.3):
        out.new(scope, f"np.tanh({r} / (1.0 + {r} ** 2))")


@idiom("roots")
def matrix_through_its_eigenvalues(out: Wide, scope: Scope, loop: str | None) -> None:
    """A function of a symmetric matrix of two or three rows."""
    b, g, w, q = out.pick(scope.arrays), out.fresh("g"), out.fresh("w"), out.fresh("q")
    k = out.pick([2, 3])
    out.emit(f"{g} = np.outer({b}[:{k}], {b}[:{k}]) + np.diag(np.array([1.0, 2.5, 4.0])[:{k}])")
    out.emit(f"{w}, {q} = np.linalg.eigh({g})")
    f = out.pick(
        [f"np.sqrt({w} + 3.0)", f"np.log({w} + 3.0)", f"np.exp(-0.1 * {w})", f"1.0 / ({w} + 4.0)"]
    )
    out.new(
        scope,
        out.pick(
            [
                f"np.tanh(np.sum(({q} * {f}) @ {q}.T))",
                f"np.tanh(np.sum({q} @ np.diag({f}) @ {q}.T))",
                f"np.tanh(np.sum({f}))",
            ]
        ),
    )
