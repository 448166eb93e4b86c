"""Parts of a program in single precision: arrays made, written by rows and mixed with numbers of
Python's.
"""

from __future__ import annotations

from generate import Scope

from .writer import Wide, idiom


@idiom("precision")
def rows_in_single(out: Wide, scope: Scope, loop: str | None) -> None:
    u, r, i, b = out.fresh("u"), out.fresh("r"), out.fresh("i"), out.pick(scope.arrays)
    out.emit(f"{u} = {b}.astype(np.float32)")
    out.emit(f"{r} = np.empty((len({u}), 2), dtype=np.float32)")
    out.emit(f"for {i} in range(len({u})):")
    out.emit(
        "    "
        + out.pick(
            [
                f"{r}[{i}] = {u}[{i}] * np.array([0.5, -0.25], dtype=np.float32)",
                f"{r}[{i}, 0] = np.sin({u}[{i}])\n"
                + "    " * out.depth
                + f"    {r}[{i}, 1] = 0.5 * {u}[{i}]",
                f"{r}[{i}] = np.tanh({u}[:2] * {u}[{i}])",
            ]
        )
    )
    out.new(
        scope,
        out.pick(
            [
                f"float(np.mean(np.tanh({r})))",
                f"float(np.sum({r} ** 2) * 0.1)",
                f"np.mean({r} * {out.bounded(scope)})",
            ]
        ),
    )


@idiom("precision")
def numbers_in_single(out: Wide, scope: Scope, loop: str | None) -> None:
    u = out.fresh("u")
    out.emit(f"{u} = np.float32({out.bounded(scope)})")
    out.new(
        scope,
        out.pick([f"float({u} * {u})", f"float(np.sin({u}) + {u})", f"{u} * {out.bounded(scope)}"]),
    )
