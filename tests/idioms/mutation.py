"""Arrays written into: in place, through views, by other names."""

from __future__ import annotations

from generate import COLUMNS, CONSTANTS, LENGTH, ROWS, Scope

from .writer import Wide, idiom


@idiom("mutation")
def stores(out: Wide, scope: Scope, loop: str | None) -> None:
    b, c, t = out.pick(scope.arrays), out.pick(scope.arrays), out.pick(scope.tables)
    i, j = out.index(scope, LENGTH), out.index(scope, LENGTH)
    out.emit(
        out.pick(
            [
                f"np.add.at({b}, [0, 2, 2], np.sin({c}[:3]))",
                f"{b}[[3, 1]] = np.cos({c}[[0, 0]])",
                f"{b}[[0, 2, 2]] += {out.bounded(scope)}",
                f"{b}[{b} > {out.pick(CONSTANTS) + 0.0137:.4f}] = {out.bounded(scope)}",
                f"{b}[{c} < 0.2137] *= 0.5",
                f"np.fill_diagonal({t}, {out.bounded(scope)})",
                f"np.sin({c}, out={b})",
                f"np.multiply({b}, 0.5, out={b})",
                f"{b}.fill({out.bounded(scope)})",
                f"{b}.sort()",
                f"np.copyto({b}, np.tanh({c}))",
                f"{b}[{i}], {b}[{j}] = {b}[{j}], {b}[{i}]",
                f"{t}[[0, 1]] = {t}[[1, 0]]",
                f"{b}[1:] += {b}[:-1] * 0.5",
                f"{b}[:] = {c}[::-1]",
            ]
        )
    )


@idiom("mutation")
def views(out: Wide, scope: Scope, loop: str | None) -> None:
    b, t, v = out.pick(scope.arrays), out.pick(scope.tables), out.fresh("v")
    value = out.bounded(scope)
    for line in out.pick([
        [f"{v} = {b}[1:]", f"{v}[{out.rng.randrange(4)}] = {value}", f"{v} *= 0.9"],
        [f"for {v} in {t}:", f"    {v}[:] = np.sin({v}) + {value}"],
        [f"{v} = {t}.T", f"{v}[{out.index(scope, COLUMNS)}] = {value}"],
        [f"{v} = {t}.reshape(-1)", f"{v}[{out.rng.randrange(12)}] += {value}"],
        [f"{v} = {b}.reshape({LENGTH}, 1)", f"{v}[2, 0] = {value}"],
        [f"{v} = {t}[1:, ::2]", f"{v}[0] = {v}[1] * 0.5 + {value}"],
        [f"{v} = {b} if {out.condition(scope)} else {b}[:]", f"{v}[0] = {value}"],
        [f"{v} = [{b}, {t}[0]]", f"{v}[0][1] = {value}", f"{v}[1][:] = 0.5"],
        [f"for {v} in ({b}, {t}[1]):", f"    {v}[0] = np.tanh({v}[1]) + {value}"],
    ]):
        out.emit(line)


@idiom("mutation")
def two_buffers(out: Wide, scope: Scope, loop: str | None) -> None:
    p, q = out.fresh("b"), out.fresh("b")
    out.emit(f"{p}, {q} = {out.pick(scope.arrays)}.copy(), np.zeros({LENGTH})")
    out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
    out.emit(f"    {q}[1:] = np.sin({p}[:-1]) + {out.bounded(scope)}")
    out.emit(f"    {p}, {q} = {q}, {p}")
    scope.arrays.append(p)
    scope.arrays.append(q)


@idiom("mutation")
def more_stores(out: Wide, scope: Scope, loop: str | None) -> None:
    b, c, t, s = (
        out.pick(scope.arrays),
        out.pick(scope.arrays),
        out.pick(scope.tables),
        out.bounded(scope),
    )
    i, k, limit = out.pick(scope.ints), out.fresh("i"), f"{out.pick(CONSTANTS) + 0.0137:.4f}"
    for line in out.pick(
        [
            [f"np.put({b}, [0, 3], [{s}, 0.5])"],
            [f"np.subtract.at({b}, np.array([1, 1, 4]), {s})"],
            [f"np.putmask({b}, {c} > {limit}, {c})"],
            [f"{b}[1:4] = {b}[0:3]"],
            [f"{b}[1:] = {b}[:-1] + {b}[1:]"],
            [f"{t}[0], {t}[1] = {t}[1].copy(), {t}[0].copy()"],
            [f"{t}[0], {t}[1] = {t}[1], {t}[0]"],
            [f"{t}[:, [0, 2]] += {s}"],
            [f"{t}[{t} > {limit}] = {s}"],
            [f"{t}[{b}[:3] > 0.0137] *= 0.5"],
            [f"np.minimum({b}, {limit}, out={b})"],
            [f"{b}[np.argsort({c})] = np.sin({c})"],
            [f"{t}.T[{i} % 4] = {s}"],
            [f"{t}.ravel()[{i} % 12] = {s}"],
            [f"{t}.flat[{i} % 12] = {s}"],
            [
                f"for {k} in range(1, len({b})):",
                f"    {b}[{k}] = 0.5 * {b}[{k} - 1] + np.sin({b}[{k}])",
            ],
            [f"for {k} in range(len({b}) - 2, -1, -1):", f"    {b}[{k}] += 0.5 * {b}[{k} + 1]"],
            [f"np.add({b}, {c}, out={b})", f"{b} *= 0.5"],
            [f"{b}[{b} < {c}] = {c}[{b} < {c}] * 0.5"],
            [f"{t}[[0, 2], [1, 3]] = {s}"],
            [f"{t}[np.arange(3), {i} % 4] += {s}"],
            [f"{t}[..., -1] = {s}"],
            [f"{b}[{i} % 3:{i} % 3 + 2] = {s}"],
            [f"{b}[{i} % 2::2] *= 0.5"],
            [f"{b}[:, None][1] = {s}"],
            [f"np.tanh({b}, out={b}, where={c} > {limit})"],
            [f"{b}[:] = sorted({c})"],
            [f"np.copyto({b}, {s})"],
            [f"np.copyto({b}, {c} * 0.5, where={c} > {limit})"],
            [f"{t} -= {t}.mean(axis=0)"],
            [f"{t} /= 1.0 + np.sum({t} * {t})"],
            [f"{t}[:, 0], {t}[:, 1] = {t}[:, 1], {s}"],
            [f"{b}[::-1].sort()"],
            [f"{t}.sort(axis=1)"],
            [f"{t}[1:, 1:] += {t}[:-1, :-1]", f"{t} *= 0.5"],
            [f"{b}[0], {b}[1:3] = {b}[1], {b}[3:]"],
            [f"{b}[-1] = {b}[0] = {s}"],
        ]
    ):
        out.emit(line)


@idiom("mutation")
def arrays_by_many_names(out: Wide, scope: Scope, loop: str | None) -> None:
    b, t, v, q = out.pick(scope.arrays), out.pick(scope.tables), out.fresh("v"), out.fresh("v")
    s, i = out.bounded(scope), out.index(scope, LENGTH)
    for line in out.pick(
        [
            [
                f"{v} = [row for row in {t}]",
                f"{v}[1][0] = {s}",
                f"{v}[{out.pick(scope.ints)} % 3][1] += 0.1",
            ],
            [f"for {v}, {q} in zip({t}, {b}):", f"    {v} *= 0.5", f"    {v}[0] = np.sin({q})"],
            [f"{v} = {{'h': {b}}}", f"{v}['h'][{i}] = {s}", f"{b} = {v}['h']"],
            [f"{v} = [{b}, {b}]", f"{v}[0][1] = {s}", f"{v}[1] = {v}[0] * 0.5"],
            [f"{v} = {b}[1:4]", f"{q} = {v}[::-1]", f"{q}[0] = {s}", f"{v} += 0.1"],
            [
                f"for {q}, {v} in enumerate({t}):",
                f"    if {q} % 2:",
                "        continue",
                f"    {v}[{q}] = {s}",
            ],
            [f"{v} = {t}[0]", f"{t} = {t} * 0.5", f"{v}[1] = {s}"],
            [f"{v} = {b}", f"{b} = {b} * 0.5", f"{v}[1] = {s}", f"{b}[2] += {v}[1]"],
            [f"{v} = {t}[:, 1]", f"{v} *= 0.5", f"{v} = {v} + 1.0", f"{v}[0] = 0.3"],
            [f"{v}, {q} = {t}[0], {t}[1]", f"{v}[:], {q}[:] = {q} * 0.5, {v} + 0.1"],
            [f"{v} = np.asarray({b})", f"{v}[0] = {s}"],
            [f"{v} = {b}.view()", f"{v}[0] = {s}"],
            [f"{v} = np.array({b})", f"{v}[0] = {s}", f"{b}[1] = {v}[0]"],
            [f"{v} = {t}.copy().reshape(4, 3)", f"{v}[0] = {s}", f"{t}[1, 1] = {v}[0, 1]"],
            [f"{v} = np.diagonal({t}).copy()", f"{v}[0] = {s}", f"{t}[0, :3] += {v}"],
            [f"{v}, {q} = np.split({b}[:4].copy(), 2)", f"{v}[:] = {q} + {s}", f"{b}[:2] = {v}"],
            [f"for {v} in ({t}[0], {t}[2]):", f"    {v} += {s}"],
            [f"{v} = {b}", f"for {q} in range(2):", f"    {v}[{q}] = {s}", f"    {v} = {v}.copy()"],
        ]
    ):
        out.emit(line)
    if out.chance(0.5):
        out.new(scope, f"np.mean({b}) + np.tanh(np.sum({t}))")


@idiom("mutation")
def writes_in_a_row(out: Wide, scope: Scope, loop: str | None) -> None:
    """Windows and elements of one array, which overlap, with reads of it between."""
    u = out.pick(scope.arrays) if out.chance(0.5) else out.fresh("b")
    if u not in scope.arrays:
        out.emit(f"{u} = {out.pick(scope.arrays)} * 0.5")
        scope.arrays.append(u)
    i, reads = out.pick(scope.ints), []

    def element() -> str:
        return f"{u}[{out.index(scope, LENGTH)}]"

    for _ in range(out.rng.randint(2, 5)):
        where, lines = out.fresh("k"), None
        value = out.pick([f"np.sin({element()})", out.bounded(scope), f"0.5 * {element()}",
                          f"np.cos({element()} + {element()})"])
        lines = out.pick([
            [f"{u}[{out.pick(['1:3', ':', '::2', '2:', ':-1', '1:-1', '::-1'])}] {out.pick(['+=', '-=', '='])} {value}"],
            [f"{u}[{out.pick(['1:3', ':', '2:', ':2'])}] *= np.cos({element()})"],
            [f"{element()} {out.pick(['+=', '-=', '='])} {value}"],
            [f"{u}[{out.pick(['1:', ':-1'])}] {out.pick(['+=', '-='])} 0.5 * {u}[{out.pick(['1:', ':-1'])}]"],
            [f"{u}[1:-1] += 0.25 * ({u}[2:] - 2.0 * {u}[1:-1] + {u}[:-2])"],
            [f"{u}[{i} % 3:{i} % 3 + 2] {out.pick(['+=', '='])} np.sin({u}[{out.pick(['1:3', ':2', '3:'])}])"],
            [f"{u} *= np.sin({element()})"],
            [f"{u} += {value}"],
            [f"np.{out.pick(['add', 'subtract', 'maximum'])}({u}[1:], {u}[:-1] * 0.5, out={u}[{out.pick(['1:', ':-1'])}])"],
            [f"np.multiply({u}, np.sin({element()}), out={u})"],
            [f"{where} = {element()}", f"{element()} = 0.5 * {where} + {value}"],
        ])
        if out.chance(0.15):
            lines = [f"for {where} in {out.trips(scope)}:", *("    " + x for x in lines)]
        elif out.chance(0.15):
            lines = [f"if {out.condition(scope)}:", *("    " + x for x in lines)]
        for line in lines:
            out.emit(line)
        if out.chance(0.25):
            reads.append(name := out.fresh("s"))
            out.emit(f"{name} = {out.pick([element(), f'np.sum({u})', f'np.mean({u}[1:3])'])}")
    if reads or out.chance(0.5):
        out.new(scope, f"np.tanh({' + '.join([*reads, f'np.sum({u} * {u})'])})")


@idiom("mutation")
def rows_and_columns(out: Wide, scope: Scope, loop: str | None) -> None:
    """Rows, columns, windows and elements of one table, with reads of it between."""
    t = out.pick(scope.tables) if out.chance(0.5) else out.fresh("t")
    if t not in scope.tables:
        out.emit(f"{t} = np.sin({out.pick(scope.tables)})")
        scope.tables.append(t)

    def row() -> str:
        return out.index(scope, ROWS)

    def column() -> str:
        return out.index(scope, COLUMNS)

    for _ in range(out.rng.randint(2, 5)):
        value = out.pick([f"np.sin({t}[{row()}, {column()}])", out.bounded(scope),
                          f"0.5 * {t}[{row()}, {column()}]"])
        op, k = out.pick(["+=", "-=", "="]), out.fresh("k")
        lines = out.pick([
            [f"{t}[{row()}] {op} np.sin({t}[{row()}])"],
            [f"{t}[:, {column()}] {op} np.cos({t}[:, {column()}])"],
            [f"{t}[{row()}, {column()}] {op} {value}"],
            [f"{t}[{row()}] *= np.sin({t}[{row()}, {column()}])"],
            [f"{t}[:, {column()}] {op} {value}"],
            [f"{t}[1:, 1:] {op} 0.5 * {t}[:-1, :-1]"],
            [f"{t}[:2] {op} {t}[1:] * 0.5"],
            [f"{t}[:, 1:3] {op} np.sin({t}[:, {out.pick(['0:2', '2:4', '::2'])}])"],
            [f"{t}[{row()}, 1:] {op} np.sin({t}[{row()}, :-1])"],
            [f"{t}[{row()}, 1:3] *= {t}[{row()}, {column()}] * 0.1"],
            [f"{t}[{row()}][{column()}] {op} {value}"],
            [f"np.add({t}[0], {t}[{row()}], out={t}[{row()}])", f"{t} *= 0.5"],
            [f"np.sin({t}[:, {column()}], out={t}[:, {column()}])"],
            [f"{t} *= np.cos({t}[{row()}])"],
            [f"for {k} in range(1, len({t})):", f"    {t}[{k}] += 0.5 * {t}[{k} - 1]"],
            [f"for {k} in range({ROWS}):", f"    {t}[{k}, {k}] {op} {value}",
             f"    {t}[{k}] *= 0.5"],
        ])
        for line in lines:
            out.emit(line)
    if out.chance(0.6):
        out.new(scope, f"np.tanh(np.sum({t} * {t}) * 0.3)")


@idiom("mutation")
def arrays_of_arrays(out: Wide, scope: Scope, loop: str | None) -> None:
    """Stacks of tables, and lists of arrays, whose parts are written by index and by name."""
    w, t, b, v = (out.fresh("w"), out.pick(scope.tables), out.pick(scope.arrays), out.fresh("v"))
    i, k, s = out.pick(scope.ints), out.fresh("k"), out.bounded(scope)
    op = out.pick(["+=", "-=", "="])
    made, lines = out.pick([
        (f"np.zeros((2, {ROWS}, {COLUMNS}))", [
            [f"{w}[0] = {t}", f"{w}[1] = np.sin({w}[0])"],
            [f"{w}[:, 1] {op} {t}[0]", f"{w}[0, 1, 2] += {s}"],
            [f"{v} = {w}[{i} % 2]", f"{v}[1] {op} {s}", f"{v}[:, 2] += {t}[:, 0]"],
            [f"for {v} in {w}:", f"    {v} += np.sin({t})", f"    {v}[0, 1:] *= {s}"],
            [f"for {k} in range(2):", f"    {w}[{k}, {k}] {op} {t}[{k} + 1]",
             f"    {w}[{k}] += {w}[{k} - 1] * 0.5"],
            [f"{w}[..., 1] {op} {s}", f"{w}[1] *= {w}[0]"],
            [f"np.multiply({w}[0], 0.5, out={w}[1])"],
        ]),
        (f"[{b}, {b} * 0.5, np.sin({b})]", [
            [f"{w}[1] {op} {w}[0]", f"{w}[0][1:3] {op} {s}"],
            [f"{w}[0], {w}[1] = {w}[1], {w}[0]", f"{w}[0][0] {op} {s}"],
            [f"for {k} in range(1, len({w})):", f"    {w}[{k}][1:] {op} {w}[{k} - 1][:-1]"],
            [f"for {k} in range(3):", f"    {w}[{k}] {op} {s}", f"    {w}[{k} - 1][{k}] *= 0.5"],
            [f"{w}[2] = {w}[0]", f"{w}[2][1] {op} {s}", f"{w}[0] *= 0.5"],
            [f"for {v} in {w}:", f"    {v}[{i} % {LENGTH}] {op} {s}"],
            [f"{w}[{i} % 3][2:] {op} {s}"],
        ]),
        (f"np.array([{b}, {b}[::-1], np.cos({b})])", [
            [f"{w}[1] {op} {w}[0] * {w}[2]", f"{w}[0, 1:3] {op} {s}"],
            [f"{v} = {w}[:, 1:]", f"{v}[1] {op} {s}", f"{v}[:, 0] *= {w}[0, 0]"],
            [f"{v} = {w}.T", f"{v}[1:3] {op} {s}", f"{w}[1] *= 0.5"],
            [f"{w}[0], {w}[2] = {w}[2] * 0.5, {w}[0].copy()"],
        ]),
    ])
    out.emit(f"{w} = {made}")
    for _ in range(out.rng.randint(1, 3)):
        for line in out.pick(lines):
            out.emit(line)
    total = f"sum([np.sum(v) for v in {w}])" if made.startswith("[") else f"np.sum({w} * {w})"
    out.new(scope, f"np.tanh({total} * 0.3)")
