"""Shapes that depend on data."""

from __future__ import annotations

from generate import CONSTANTS, LENGTH, Scope

from .writer import Wide, idiom


@idiom("sizes")
def masked(out: Wide, scope: Scope, loop: str | None) -> None:
    b, c, w = out.pick(scope.arrays), out.pick(scope.arrays), out.fresh("z")
    out.emit(f"{w} = {b}[{c} > {out.pick(CONSTANTS) - 0.6137:.4f}]")
    out.new(
        scope,
        out.pick(
            [
                f"np.sum(np.sin({w}))",
                f"len({w}) * 0.1 + np.sum({w} * {w})",
                f"np.tanh(np.sum({w}[:2]))",
                f"sum(u * u for u in {w})",
                f"np.sum({b}[np.nonzero({c} > 0.1137)[0]])",
                f"np.tanh({w}.sum()) * {w}.size",
            ]
        ),
    )


@idiom("sizes")
def grown_array(out: Wide, scope: Scope, loop: str | None) -> None:
    g, i = out.fresh("z"), out.fresh("i")
    out.emit(f"{g} = {out.pick(['np.zeros(0)', f'{out.pick(scope.arrays)}[:2]'])}")
    out.emit(f"for {i} in {out.trips(scope)}:")
    out.emit(
        "    "
        + out.pick(
            [
                f"{g} = np.append({g}, {out.bounded(scope)})",
                f"{g} = np.concatenate([{g}, np.sin({out.pick(scope.arrays)}[:{i} % 3 + 1])])",
                f"{g} = np.concatenate(({g} * 0.9, np.full({i} % 2 + 1, {out.pick(scope.scalars)})))",
            ]
        )
    )
    out.new(
        scope,
        out.pick([f"np.sum(np.sin({g}))", f"np.sum({g}) / (1 + len({g}))", f"np.sum({g} * {g})"]),
    )


@idiom("sizes")
def sized_by_data(out: Wide, scope: Scope, loop: str | None) -> None:
    k, z = out.fresh("k"), out.fresh("z")
    out.emit(f"{k} = int(np.sum({out.pick(scope.arrays)} > 0.0137))")
    scope.ints.append(k)
    out.emit(
        out.pick(
            [
                f"{z} = np.zeros({k} + 1)",
                f"{z} = np.arange({k} + 2.0)",
                f"{z} = np.linspace(0.0, {out.pick(scope.scalars)}, {k} + 2)",
            ]
        )
    )
    out.emit(f"{z}[:1] = {out.bounded(scope)}")
    out.new(scope, f"np.sum({z}) * 0.3 + np.sum({out.pick(scope.arrays)}[:{k}])")


@idiom("sizes")
def complex_numbers(out: Wide, scope: Scope, loop: str | None) -> None:
    s, z = out.pick(scope.scalars), out.fresh("z")
    out.emit(f"{z} = {s} + 1j * {out.bounded(scope)}")
    if out.chance(0.4):
        out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
        out.emit(f"    {z} = {z} * np.exp(1j * {out.pick(scope.scalars)}) * 0.9 + 0.1")
    out.new(
        scope,
        out.pick(
            [
                f"{z}.real * 0.5 + {z}.imag",
                f"abs({z} + 2.0)",
                f"np.real(np.conj({z}) * {z})",
                f"np.abs({z} + 1.5j) ** 2 * 0.1",
            ]
        ),
    )


@idiom("sizes")
def while_that_allocates(out: Wide, scope: Scope, loop: str | None) -> None:
    v, b, s = out.fresh("z"), out.pick(scope.arrays), out.pick(scope.scalars)
    out.emit(f"{v} = {out.pick([f'{b}.copy()', f'np.sin({b})', f'np.concatenate([{b}, {b}])', b])}")
    out.emit(f"while len({v}) > {out.rng.randint(1, 2)}:")
    out.emit(
        "    "
        + out.pick(
            [
                f"{v} = 0.5 * {v}[:-1] + np.sin({v}[1:]) * {s}",
                f"{v} = 0.5 * ({v}[:len({v}) // 2] + {v}[-(len({v}) // 2):])",
                f"{v} = {v}[{v} > np.min({v})] * 0.9",
                f"{v} = np.diff({v}) + 0.1",
                f"{v} = {v}[1:].copy() + {v}[0] * 0.5",
            ]
        )
    )
    if out.chance(0.4):
        out.emit(f"    if len({v}) > 0 and {v}[0] > {out.pick(CONSTANTS) + 0.3137:.4f}:")
        out.emit("        " + out.pick(["break", f"{v} = {v}[:1]", f"{v}[0] *= 0.5"]))
    out.new(scope, f"np.tanh(np.sum({v}))")


@idiom("sizes")
def found_by_data(out: Wide, scope: Scope, loop: str | None) -> None:
    b, c, t, s, k, z = (
        out.pick(scope.arrays),
        out.pick(scope.arrays),
        out.pick(scope.tables),
        out.pick(scope.scalars),
        out.fresh("k"),
        out.fresh("z"),
    )
    limit, name = f"{out.pick(CONSTANTS) - 0.6137:.4f}", out.pick(scope.scalars)
    lines, expression = out.pick(
        [
            (
                [
                    f"for {k} in np.nonzero({b} > {limit})[0]:",
                    f"    {name} = 0.5 * {name} + {c}[{k}]",
                ],
                f"{name} * 0.5",
            ),
            ([f"{z} = np.where({b} > {c})[0]"], f"np.sum({b}[{z}] * 0.5) + len({z}) * 0.1"),
            ([f"{z} = np.unique(np.array([n, 1, 2, n]))"], f"np.sum({b}[{z}]) + 0.1 * len({z})"),
            ([f"{z} = np.unique({b})"], f"np.tanh(np.sum({z} * np.arange(len({z}))))"),
            (
                [f"{k} = int({s} > 0.1137) + 1"],
                f"np.sum({b}[{k}:-{k}]) + np.sum(np.sin({b}[:{k}]))",
            ),
            ([f"{z} = np.delete({b}, {out.index(scope, LENGTH)})"], f"np.sum({z} * {z})"),
            ([f"{z} = np.insert({b}, {out.index(scope, LENGTH)}, {s})"], f"np.sum(np.sin({z}))"),
            ([f"{z} = {t}[{t} > {limit}]"], f"np.tanh(np.sum({z}))"),
            ([f"{z} = {t}[{b}[:3] > {limit}]"], f"np.tanh(np.sum({z} * {z}))"),
            ([f"{z} = {b}[{b} > {limit}]", f"{z}[:1] = {s}"], f"np.sum({z}) * 0.5"),
            (
                [
                    f"{z} = np.flatnonzero({b} < {limit})",
                    f"if {z}.size:",
                    f"    {name} = {b}[{z}[0]]",
                ],
                f"{z}.size * 0.1 + {s}",
            ),
            ([f"{z} = np.vstack([{t}, {t}[:1] * {s}])"], f"np.mean({z}[-1] * {z}[0])"),
            ([f"{z} = np.tile({b}, n)"], f"np.mean({z}) + np.tanh({z}[-1])"),
            ([f"{z} = np.repeat({b}, n % 3 + 1)"], f"np.mean({z} * {z})"),
            (
                [f"{z}, {k} = np.unique(np.array([0, 1, 1, n]), return_counts=True)"],
                f"np.sum({b}[{z}] * {k}) * 0.3",
            ),
            (
                [f"{z} = np.empty((n, 2))", f"{z}[:] = {s}", f"{z}[0] = {b}[:2]"],
                f"np.mean({z} * {z})",
            ),
            ([f"{z} = np.array([v for v in {b} if v > {limit}])"], f"np.sum({z}) * 0.5"),
            ([f"{z} = np.sort({b}[{b} > {limit}])[::-1]"], f"np.sum({z}[:2]) * 0.5"),
            ([f"{z} = np.stack([{b} * {k} for {k} in range(n)])"], f"np.mean({z} ** 2)"),
            ([f"{z} = np.outer({b}[:n], {c})", f"{z}[-1, :n] = {s}"], f"np.mean({z})"),
            ([f"{z} = {b}[:n] @ {c}[:n]"], f"np.tanh({z})"),
            (
                [f"{z} = np.zeros((n, n))", f"np.fill_diagonal({z}, {b}[:n])", f"{z}[0, -1] = {s}"],
                f"np.sum({z} @ {z})* 0.1",
            ),
        ]
    )
    for line in lines:
        out.emit(line)
    out.new(scope, expression)
