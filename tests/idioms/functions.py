"""Functions of functions, closures, recursion, methods, transformations inside programs."""

from __future__ import annotations

from generate import COLUMNS, CONSTANTS, ROWS, Scope

from .writer import Wide, idiom


@idiom("functions")
def recursion(out: Wide, scope: Scope, loop: str | None) -> None:
    i, s = out.pick(scope.ints), out.pick(scope.scalars)
    out.new(
        scope,
        out.pick(
            [
                lambda: f"{out.need('damped')}({s}, {i} % 4)",
                lambda: f"{out.need('tree_sum')}({out.pick(scope.arrays)})",
                lambda: f"{out.need('even')}({s}, {i} % 5)",
                lambda: f"{out.need('damped')}({s}, 3)",
            ]
        )(),
    )


@idiom("functions")
def functions_as_values(out: Wide, scope: Scope, loop: str | None) -> None:
    s = out.pick(scope.scalars)
    out.new(scope, out.pick([
        f"{out.need('applied')}(np.sin, {s}, {out.bounded(scope)}, scale=0.3)",
        f"{out.need('applied')}(lambda u: np.cos(u) * {s}, *({s}, 0.3), w={out.bounded(scope)})",
        f"functools.partial({out.need('applied')}, np.tanh, scale=0.2)({s}, {s})",
        f"functools.reduce(lambda p, q: 0.5 * p + np.sin(q), [{s}, {out.bounded(scope)}, {s}])",
        f"sum(map(np.sin, ({s}, {out.bounded(scope)})))",
        f"[np.sin, np.cos, np.tanh][{out.rng.randrange(3)}]({s})",
    ]))


@idiom("functions", "mutation")
def writes_into_arguments(out: Wide, scope: Scope, loop: str | None) -> None:
    b, t = out.pick(scope.arrays), out.pick(scope.tables)
    place = out.pick(
        [
            b,
            f"{b}[1:]",
            f"{b}[::2]",
            f"{t}[{out.index(scope, ROWS)}]",
            f"{t}[:, {out.index(scope, COLUMNS)}]",
        ]
    )
    if out.chance(0.6):
        out.emit(f"{out.need('bump')}({place}, {out.bounded(scope)})")
    else:
        other = out.pick([f"{b}[2:]", f"{b}[:3]", out.pick(scope.arrays), place])
        out.new(scope, f"{out.need('mix')}({place}, {other})")


@idiom("functions")
def closures_of_a_loop(out: Wide, scope: Scope, loop: str | None) -> None:
    """Made in a loop: with the variable of that trip as a default, or as it is when they are
    called.
    """
    gs, k, g, s = out.fresh("gs"), out.fresh("i"), out.fresh("g"), out.pick(scope.scalars)
    match out.rng.randrange(4):
        case 0:
            out.emit(f"{gs} = [lambda u, {k}={k}: np.sin({k} * u) for {k} in range(3)]")
        case 1:
            out.emit(f"{gs} = []")
            out.emit(f"for {k} in range(3):")
            out.emit(f"    {gs}.append(lambda u: u * 0.3 * {k} + {s})")
        case 2:
            out.emit(f"{gs} = []")
            out.emit(f"for {k} in (0.3, {s}, {out.bounded(scope)}):")
            out.emit(f"    def {g}(u, k={k}):")
            out.emit("        return np.tanh(u * k)")
            out.emit(f"    {gs}.append({g})")
        case 3:
            out.emit(f"{gs} = {{'a': np.sin, 'b': lambda u: u * {s}}}")
            return out.new(
                scope,
                f"sum(0.5 * {g}({out.bounded(scope)}) for {g} in {gs}.values()) + {gs}['b'](0.3)",
            )
    out.new(
        scope,
        out.pick(
            [f"sum({g}({out.bounded(scope)}) for {g} in {gs})", f"{gs}[1]({s}) + {gs}[-1](0.3)"]
        ),
    )


@idiom("functions")
def made_functions(out: Wide, scope: Scope, loop: str | None) -> None:
    s, g, h = out.pick(scope.scalars), out.fresh("g"), out.fresh("h")
    if out.chance(0.5):
        out.emit(f"{g} = {out.need('scaled_by')}({out.bounded(scope)})")
        return out.new(scope, f"{g}({s}) + {g}({out.bounded(scope)})")
    out.emit(f"def {h}(u):")
    out.emit(f"    def {g}(v):")
    out.emit(
        f"        return v * u + {s}"
        if out.chance(0.5)
        else f"        return np.sin(v) * u if v > {s} else u"
    )
    out.emit(f"    return {g}")
    out.new(scope, f"{h}({out.bounded(scope)})({out.bounded(scope)})")


@idiom("functions")
def called(out: Wide, scope: Scope, loop: str | None) -> None:
    """Decorated, early returns from nested loops, `try` with `return`, keywords by `**`."""
    s, b, t = out.pick(scope.scalars), out.pick(scope.arrays), out.pick(scope.tables)
    out.new(
        scope,
        out.pick(
            [
                lambda: f"{out.need('halved')}({s}, k=2)",
                lambda: f"{out.need('first_above')}({t}, {out.pick(CONSTANTS) + 0.0137:.4f})",
                lambda: f"{out.need('guarded')}({s}, {out.pick(scope.ints)})",
                lambda: (
                    f"{out.need('applied')}(np.cos, {s}, **{{'scale': {out.bounded(scope)}, 'w': {s}}})"
                ),
                lambda: f"{out.need('folded')}(({s}, ({out.bounded(scope)}, 0.3), {s}))",
                lambda: f"{out.need('settled')}({b}, {s})",
                lambda: f"{out.need('first_above')}({t}, {s} + 0.0137)",
                lambda: f"{out.need('horner')}({s}, {out.bounded(scope)}, at=0.3)",
            ]
        )(),
    )


@idiom("functions", "data")
def objects_with_methods(out: Wide, scope: Scope, loop: str | None) -> None:
    p, s, i = out.fresh("p"), out.pick(scope.scalars), out.fresh("i")
    out.emit(
        f"{p} = "
        + out.pick(
            [
                f"{out.need('Wave')}({out.bounded(scope)}, {s})",
                f"{out.need('Wave')}.unit({out.bounded(scope)})",
                f"dataclasses.replace({out.need('Wave')}.unit(0.5), phase={s})",
            ]
        )
    )
    if out.chance(0.4):
        out.emit(f"for {i} in {out.trips(scope)}:")
        out.emit(
            f"    {p} = {out.pick([f'{p}.shifted({s})', f'dataclasses.replace({p}, phase={p}.phase * 0.5 + {s})'])}"
        )
    out.new(
        scope,
        out.pick(
            [
                f"{p}({s}) + {p}.power",
                f"sum(map({p}, ({s}, 0.3)))",
                f"{p}.power * {out.need('Wave')}.bend({s})",
                f"{p}.shifted(0.3)({s})",
                f"np.mean({p}({out.pick(scope.arrays)}))",
            ]
        ),
    )


@idiom("functions")
def transformations(out: Wide, scope: Scope, loop: str | None) -> None:
    """s2s inside a program."""
    s, b, g = out.pick(scope.scalars), out.pick(scope.arrays), out.need("bent")
    out.new(
        scope,
        out.pick(
            [
                f"s2s.grad({g})({s})",
                f"s2s.value_and_grad({g})({s})[1] * {out.bounded(scope)}",
                f"s2s.jvp({g}, ({s},), ({out.bounded(scope)},))[1]",
                f"np.mean(s2s.vmap({g})({b}))",
                f"s2s.jit({g})({s})",
                f"np.mean(s2s.vmap(s2s.grad({g}))({b}))",
                f"s2s.grad({g})({out.bounded(scope)}) + {g}({s})",
            ]
        ),
    )
