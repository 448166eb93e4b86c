"""Entries that are computed, with an infinite slope or value, and then thrown away."""

from __future__ import annotations

from generate import Scope

from .writer import Wide, idiom


def table_of_pairs(out: Wide, scope: Scope, by: str) -> str:
    """Of all pairs of the elements of an array; on the diagonal, of equal ones, the slope or the
    value is infinite.
    """
    b = out.fresh("p")
    # others are not equal
    out.emit(f"{b} = {(each := out.pick(scope.arrays))} + 0.3 * np.arange(len({each}))")
    d = f"({b}[:, None] - {b})"
    return out.pick(
        [
            f"np.sqrt({d} ** 2)",
            f"np.abs({d}) ** 0.5",
            f"np.log({d} ** 2)",
            f"1.0 / {d}",
            f"np.sqrt(np.abs({d}))",
            f"np.hypot({d}, 0.0 * {d})",
            f"np.arccos(np.cos({d}) * 0.0 + 1.0 - 0.01 * {d} ** 2)",
        ]
    )


@idiom("discarding")
def pairs(out: Wide, scope: Scope, loop: str | None) -> None:
    """A table of pairs, of which the diagonal is thrown away."""
    name, r = out.fresh("s"), out.fresh("r")
    out.emit(f"{r} = {table_of_pairs(out, scope, r)}")
    way = out.rng.randrange(9)
    if way == 0:
        out.emit(f"{r} = np.{out.pick(['triu(' + r + ', 1)', 'tril(' + r + ', -1)'])}")
    elif way == 1:
        out.emit(f"{r} = {r}[np.triu_indices(len({r}), 1)]")
    elif way == 2:
        out.emit(f"np.fill_diagonal({r}, 0.25)")
    elif way == 3:
        out.emit(f"{r}[np.arange(len({r})), np.arange(len({r}))] = {out.bounded(scope)}")
    elif way == 4:
        out.emit(f"{r} = {r}[~np.eye(len({r}), dtype=bool)]")
    elif way == 5:
        out.emit(f"{r} = np.where(np.eye(len({r})) == 1.0, 0.5, {r})")
    elif way == 6:
        out.emit(f"for {(i := out.fresh('i'))} in range(len({r})):")
        out.emit(f"    {r}[{i}, {i}] = {out.bounded(scope)}")
    elif way == 7:
        out.emit(f"{r} = {r}[0, 1:] + {r}[1:, 0]")
    else:
        out.emit(f"{r}[np.eye(len({r})) > 0.5] = 0.125")
    out.emit(f"{name} = np.mean(np.tanh({r}))")
    scope.scalars.append(name)


@idiom("discarding")
def pair_by_pair(out: Wide, scope: Scope, loop: str | None) -> None:
    """The same in loops over elements."""
    name, b, i, j = out.fresh("s"), out.pick(scope.arrays), out.fresh("i"), out.fresh("j")
    out.emit(f"{name} = 0.0")
    out.emit(f"for {i} in range(len({b})):")
    out.emit(f"    for {j} in range(len({b})):")
    out.emit(f"        r = np.sqrt(({b}[{i}] - {b}[{j}]) ** 2)")
    out.emit(f"        if {out.pick([f'{i} < {j}', f'{i} != {j}', f'{j} > {i}'])}:")
    out.emit(f"            {name} += np.tanh(r) * 0.1")
    scope.scalars.append(name)


@idiom("discarding")
def some_of_an_array(out: Wide, scope: Scope, loop: str | None) -> None:
    """Elements that are 0, whose root has an infinite slope, dropped by a mask, an index, or a
    write.
    """
    name, r, b = out.fresh("s"), out.fresh("r"), out.pick(scope.arrays)
    out.emit(f"{r} = np.maximum({b}, 0.0)")
    out.emit(
        f"{r} = np.{out.pick(['sqrt', 'cbrt', 'log'])}({r})"
        if out.chance(0.6)
        else f"{r} = {r} ** 0.3"
    )
    out.emit(
        out.pick(
            [
                f"{r} = {r}[{b} > 0.0]",
                f"{r}[{b} <= 0.0] = 0.5",
                f"{r} = np.where({b} > 0.0, {r}, 0.25)",
                f"{r} = np.sum({r}, where={b} > 0.0)",
                f"{r} = np.compress({b} > 0.0, {r})",
                f"{r} = {r}[np.nonzero({b} > 0.0)]",
            ]
        )
    )
    out.emit(f"{name} = np.sum(np.tanh({r})) * 0.2")
    scope.scalars.append(name)


@idiom("discarding")
def quotients(out: Wide, scope: Scope, loop: str | None) -> None:
    """Quotients by numbers of which some are 0, that a branch passes over, a bound takes the place
    of, or a trip writes over.
    """
    name, q, c, k, b = (
        out.fresh("s"),
        out.fresh("q"),
        out.fresh("c"),
        out.fresh("k"),
        out.pick(scope.arrays),
    )
    out.emit(f"{q} = np.maximum({b}, 0.0)")
    way = out.rng.randrange(4)
    if way == 0:
        out.emit(
            f"{name} = np.sum(np.tanh(np.{out.pick(['minimum', 'fmin'])}({out.pick(['1.0', f'np.exp({b})'])} / {q}, 5.0))) * 0.2"
        )
    elif way == 1:
        out.emit(f"{c} = {b} / {q}[0]" if out.chance(0.5) else f"{c} = np.log({q})")
        out.emit(f"{name} = np.sum(np.tanh({c})) if {q}[0] > 0.0 and np.all({q} > 0.0) else np.sum({q}) * 0.3")
    else:
        out.emit(f"{name} = {c} = 0.0")
        out.emit(f"for {k} in range(len({q})):")
        out.emit(f"    {c} = 1.0 / {q}[{k}]")
        if way == 2:
            out.emit(f"    if {c} < 50.0:")
            out.emit(f"        {name} += np.tanh({c}) * 0.1")
        else:
            out.emit(f"    {name} += {q}[{k}]")
            out.emit(f"{name} = np.tanh({c} if {c} < 50.0 else {name})")
    scope.scalars.append(name)


@idiom("discarding")
def missing_data(out: Wide, scope: Scope, loop: str | None) -> None:
    """Residuals of data of which some are missing, or of infinite weight."""
    name, r, w, k, b = (
        out.fresh("s"),
        out.fresh("r"),
        out.fresh("w"),
        out.fresh("k"),
        out.pick(scope.arrays),
    )
    out.emit(f"{w} = np.where(np.arange(len({b})) % 2 == 0, {out.pick(['np.nan', 'np.inf'])}, 0.5)")
    out.emit(f"{r} = {out.pick([f'({b} - {w}) ** 2', f'{b} * {w} * 0.5', f'np.sin({b} * {w})'])}")
    way = out.rng.randrange(4)
    if way == 0:
        out.emit(f"{name} = np.sum(np.tanh({r}[np.isfinite({w})])) * 0.2")
    elif way == 1:
        out.emit(f"{r}[~np.isfinite({r})] = 0.1")
        out.emit(f"{name} = np.mean({r}) * 0.1")
    elif way == 2:
        out.emit(f"{name} = np.tanh(np.sum({r}[{w} < 5.0])) * 0.5")
    else:
        out.emit(f"{name} = 0.0")
        out.emit(f"for {k} in range(len({b})):")
        out.emit(f"    if np.isfinite({r}[{k}]):")
        out.emit(f"        {name} += np.tanh({r}[{k}]) * 0.1")
    scope.scalars.append(name)
