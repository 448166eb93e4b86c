"""Arrays written into: in place, through views, by other names."""

from __future__ import annotations

from generate import COLUMNS, CONSTANTS, LENGTH, Scope

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
