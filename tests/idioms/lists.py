"""Lists, comprehensions and what is iterated over."""

from __future__ import annotations

from generate import Scope

from .writer import Wide, idiom


@idiom("lists")
def appended(out: Wide, scope: Scope, loop: str | None) -> None:
    xs, i = out.fresh("xs"), out.fresh("i")
    out.emit(f"{xs} = {out.pick(['[]', f'[{out.bounded(scope)}]'])}")
    inner = scope.inner()
    out.emit(f"for {i} in {out.trips(scope)}:")
    inner.ints.append(i)
    out.depth += 1
    if out.chance(0.3):
        out.emit(f"if {out.condition(inner)}:")
        out.emit(f"    {xs}.append({out.bounded(inner)})")
    else:
        out.emit(f"{xs}.append({out.bounded(inner)})")
    out.depth -= 1
    out.new(
        scope,
        out.pick(
            [
                f"sum({xs})",
                f"np.sum(np.array({xs}))",
                f"sum(np.sin(v) * k for k, v in enumerate({xs}))",
                f"len({xs}) * 0.1",
                f"sum([p * q for p, q in zip({xs}, {xs}[1:])])",
                f"np.tanh({xs}[-1]) if len({xs}) > 0 else 0.5",
                f"max({xs}, default=0.3)",
            ]
        ),
    )


@idiom("lists")
def appended_arrays(out: Wide, scope: Scope, loop: str | None) -> None:
    xs, i = out.fresh("xs"), out.fresh("i")
    out.emit(f"{xs} = [{out.pick(scope.arrays)} * 0.5]")
    out.emit(f"for {i} in {out.trips(scope)}:")
    out.emit(f"    {xs}.append(np.sin({xs}[-1]) + {out.bounded(scope)})")
    out.new(
        scope,
        out.pick(
            [
                f"np.mean(np.stack({xs}))",
                f"np.sum(np.concatenate({xs})) * 0.1",
                f"np.mean({xs}[-1] * {xs}[0])",
                f"np.mean(np.array({xs})[:, 1])",
                f"sum(v[0] for v in {xs})",
            ]
        ),
    )


@idiom("lists")
def comprehension(out: Wide, scope: Scope, loop: str | None) -> None:
    i, b, s = out.fresh("i"), out.pick(scope.arrays), out.bounded(scope)
    out.new(
        scope,
        out.pick(
            [
                f"sum([{s} * {i} for {i} in {out.trips(scope)}])",
                f"sum(np.sin(v) * {out.pick(scope.scalars)} for v in {b})",
                f"np.sum(np.array([np.cos(v) * {s} for v in {b}]))",
                f"max(np.sin(v) for v in {b})",
                f"sum(v * v for v in {b} if v > 0.1137)",
                f"np.mean(np.array([[p * q for p in {b}] for q in {out.pick(scope.arrays)}[:3]]))",
                f"sum(sorted([v * {s} for v in {b}])[1:3])",
                f"sum(p * q for p, q in zip({b}, {out.pick(scope.arrays)}[1:]))",
                f"sum({{k: np.sin({s} + k) for k in range(3)}}.values())",
                f"sum(v for row in {out.pick(scope.tables)} for v in row) * 0.1",
                f"sum(itertools.accumulate([{s}, {out.pick(scope.scalars)}, 0.3]))",
                f"0.5 * any(v > 0.3137 for v in {b}) + {s}",
            ]
        ),
    )


@idiom("lists")
def list_methods(out: Wide, scope: Scope, loop: str | None) -> None:
    xs, s, i = out.fresh("xs"), out.pick(scope.scalars), out.pick(scope.ints)
    out.emit(
        f"{xs} = "
        + out.pick(
            [
                f"[{s}, {out.bounded(scope)}, 0.3, {out.bounded(scope)}]",
                f"list({out.pick(scope.arrays)})",
                f"[{s}] * 3",
                f"[v * 0.5 for v in {out.pick(scope.arrays)}]",
            ]
        )
    )
    lines = [
        f"{xs}.insert({i} % 2, {out.bounded(scope)})",
        f"{xs}.pop()",
        f"{xs}.pop(0)",
        f"{xs}.reverse()",
        f"{xs}[1:2] = [0.3, {out.bounded(scope)}]",
        f"{xs} = {xs} + [{s}]",
        f"{xs}[{i} % 2] = {out.bounded(scope)}",
        f"{xs}[0], {xs}[-1] = {xs}[-1], {xs}[0]",
        f"{xs}.sort()",
        f"{xs}.extend([{s}, 0.2])",
        f"{xs} += [{s}]",
        f"{xs}[-1] *= 0.5",
        f"{xs} = {xs}[::-1]",
        f"{xs} = [np.sin(v) for v in {xs}]",
        f"{xs} = sorted({xs}, key=lambda v: -v)",
        f"{xs}.append({xs}[0] * {s})",
    ]
    for _ in range(out.rng.randint(1, 3)):
        line = out.pick(lines)
        match out.rng.randrange(4):
            case 0 if "pop" not in line:
                out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
                out.emit(f"    {line}")
            case 1:
                out.emit(f"if {out.condition(scope)} and len({xs}) > 1:")
                out.emit(f"    {line}")
            case _:
                out.emit(f"if len({xs}) > 1:")
                out.emit(f"    {line}")
    out.new(
        scope,
        "np.tanh("
        + out.pick(
            [
                f"sum({xs})",
                f"{xs}[0] * {xs}[-1]",
                f"sum(p * q for p, q in zip({xs}, {xs}[1:]))",
                f"np.mean(np.array({xs}))",
                f"max({xs}) - min({xs})",
                f"sum(v * k for k, v in enumerate({xs}))",
            ]
        )
        + ")",
    )


@idiom("lists")
def lists_of_lists(out: Wide, scope: Scope, loop: str | None) -> None:
    rows, s, i, k = out.fresh("rows"), out.pick(scope.scalars), out.pick(scope.ints), out.fresh("i")
    match out.rng.randrange(5):
        case 0:
            out.emit(f"{rows} = [[{s}, 0.3], [{out.bounded(scope)}, {s}]]")
            out.emit(f"for {k} in {out.trips(scope)}:")
            out.emit(f"    {rows}[{k} % 2][{i} % 2] += {out.bounded(scope)}")
            expression = f"sum(sum(r) for r in {rows})"
        case 1:
            out.emit(f"{rows} = []")
            out.emit(f"for {k} in {out.trips(scope)}:")
            out.emit(f"    {rows}.append([{s}, np.sin({s} + {k})])")
            expression = f"sum(p * q for p, q in {rows})"
        case 2:
            out.emit(f"{rows} = [({s}, {out.bounded(scope)})]")
            out.emit(f"for {k} in {out.trips(scope)}:")
            out.emit(f"    {rows}.append(({rows}[-1][1] * 0.5, {out.bounded(scope)}))")
            expression = out.pick(
                [f"sum(p * q for p, q in {rows})", f"{rows}[-1][0] + {rows}[0][1]"]
            )
        case 3:  # rows that are alike to begin with
            alike = f"[{s}, 0.0]"
            out.emit(
                f"{rows} = "
                + out.pick(
                    [
                        f"[{alike}, {alike}]",
                        f"[{alike} for _ in range(2)]",
                        f"[r[:] for r in [{alike}] for _ in range(2)]",
                    ]
                )
            )
            out.emit(f"for {k} in {out.trips(scope)}:")
            out.emit(
                f"    {rows}[{out.pick([k, i])} % 2][{out.pick([k, i])} % 2] {out.pick(['+=', '*=', '='])} {out.bounded(scope)}"
            )
            if out.rng.random() < 0.5:
                out.emit(f"    {rows}.append({alike})")
                out.emit(f"    {rows}[-1][{i} % 2] = {rows}[{k} % 2][1]")
            expression = f"sum((2 * p + q) * (k + 1) for k, (p, q) in enumerate({rows}))"
        case _:
            out.emit(f"{rows} = [[] for _ in range(2)]")
            out.emit(f"for {k} in {out.trips(scope)}:")
            out.emit(f"    {rows}[{k} % 2].append({out.bounded(scope)} * {s})")
            expression = f"sum(v for r in {rows} for v in r)"
    out.new(scope, f"np.tanh({expression})")


@idiom("lists")
def stacks(out: Wide, scope: Scope, loop: str | None) -> None:
    """A list that is filled and emptied."""
    xs, v, name = out.fresh("xs"), out.fresh("v"), out.pick(scope.scalars)
    out.emit(f"{xs} = [{out.bounded(scope)}, {out.bounded(scope)}]")
    out.emit(f"while {xs}:")
    out.emit(f"    {v} = {xs}.pop()")
    out.emit(f"    {name} = 0.5 * {name} + np.sin({v})")
    out.emit(f"    if {v} > 0.1137 and len({xs}) < 4:")
    out.emit(f"        {xs}.append({v} * 0.5 - 0.0571)")
    if out.chance(0.5):
        out.emit(f"    if {out.condition(scope)}:")
        out.emit("        " + out.pick(["break", "continue"]))


@idiom("lists", "data")
def records_in_a_list(out: Wide, scope: Scope, loop: str | None) -> None:
    rs, k, s = out.fresh("rs"), out.fresh("i"), out.pick(scope.scalars)
    kind = out.rng.randrange(3)
    made = [
        f"{{'u': {s}, 'w': {out.bounded(scope)}}}",
        f"{out.need('Wave')}({s}, {out.bounded(scope)})",
        f"{out.need('Pair')}({s}, {out.bounded(scope)})",
    ][kind]
    read = ["r['u'] * r['w']", "r(0.3)", "r.first * r.second"][kind]
    if out.chance(0.5):
        out.emit(f"{rs} = []")
        out.emit(f"for {k} in {out.trips(scope)}:")
        if out.chance(0.3):
            out.emit(f"    if {out.condition(scope)}:")
            out.emit("        continue")
        out.emit(f"    {rs}.append({made})")
    else:
        out.emit(f"{rs} = [{made} for {k} in {out.trips(scope)}]")
    out.new(scope, f"np.tanh(sum({read} for r in {rs}))")
