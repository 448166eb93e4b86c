"""Dicts, objects, tuples, and numbers of other kinds than float64."""

from __future__ import annotations

from generate import CONSTANTS, LENGTH, Scope

from .writer import Wide, idiom


@idiom("data")
def dictionary(out: Wide, scope: Scope, loop: str | None) -> None:
    d = out.fresh("d")
    out.emit(f"{d} = {{'u': {out.bounded(scope)}, 'h': {out.pick(scope.arrays)}}}")
    store = out.pick(
        [
            f"{d}['u'] = {d}['u'] * 0.5 + {out.bounded(scope)}",
            f"{d}['h'][{out.index(scope, LENGTH)}] = np.sin({d}['u'])",
            f"{d}['h'] = np.tanh({d}['h']) + {d}['u']",
        ]
    )
    if out.chance(0.5):
        out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
        out.emit(f"    {store}")
    else:
        out.emit(store)
    out.new(
        scope,
        out.pick(
            [
                f"{d}['u'] * {d}['h'][0]",
                f"np.sum({d}['h']) * 0.1 + {d}['u']",
                f"sum(np.sum(v) for v in {d}.values()) * 0.1",
            ]
        ),
    )


@idiom("data")
def dataclass(out: Wide, scope: Scope, loop: str | None) -> None:
    p = out.fresh("p")
    shared = out.pick([out.pick(scope.arrays), f"{out.pick(scope.arrays)}.copy()"])
    out.emit(f"{p} = {out.need('Body')}({out.bounded(scope)}, {shared})")
    if out.chance(0.6):
        out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
        out.emit(f"    {p}.step({out.pick(CONSTANTS)})")
    out.emit(
        out.pick(
            [
                f"{p}.x += {out.bounded(scope)}",
                f"{p}.h[{out.index(scope, LENGTH)}] += {p}.x",
                f"{p} = dataclasses.replace({p}, x=0.3)",
            ]
        )
    )
    out.new(scope, f"{p}.energy() + 0.3 * {p}.x")


@idiom("data")
def named_pair(out: Wide, scope: Scope, loop: str | None) -> None:
    p = out.fresh("p")
    out.emit(f"{p} = {out.need('Pair')}({out.bounded(scope)}, second={out.pick(scope.arrays)})")
    if out.chance(0.5):
        out.emit(f"{p} = {p}._replace(first={p}.first * 0.5)")
    out.new(scope, f"{p}.first * {p}[1][0] + np.mean({p}.second)")


@idiom("data")
def unequal_arrays(out: Wide, scope: Scope, loop: str | None) -> None:
    w, b = out.fresh("w"), out.fresh("c")
    name = out.pick(scope.scalars)
    t = out.pick(scope.tables)
    out.emit(f"for {w}, {b} in (({out.pick(scope.arrays)}, {out.bounded(scope)}), ({t}[0], {out.pick(scope.scalars)}), ({t}, 0.3)):")
    out.emit(f"    {name} = np.tanh({name} + np.mean({w}) * {b})")


@idiom("data")
def namespace(out: Wide, scope: Scope, loop: str | None) -> None:
    ns, b, s = out.fresh("ns"), out.pick(scope.arrays), out.pick(scope.scalars)
    out.emit(f"{ns} = types.SimpleNamespace(u={out.bounded(scope)}, h={out.pick([b, f'{b}.copy()'])}, inner=types.SimpleNamespace(k={s}))")
    line = out.pick(
        [
            f"{ns}.u += {ns}.inner.k * 0.5",
            f"{ns}.h[{out.index(scope, LENGTH)}] = np.sin({ns}.u)",
            f"{ns}.inner.k = {out.bounded(scope)}",
            f"{ns}.h = np.tanh({ns}.h + {ns}.u)",
            f"{ns}.u, {ns}.inner.k = {ns}.inner.k, 0.5 * {ns}.u",
            f"{ns}.new = {ns}.u * 0.5",
        ]
    )
    if out.chance(0.5) and ".new" not in line:
        out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
        out.emit(f"    {line}")
    else:
        out.emit(line)
    out.new(
        scope,
        f"np.tanh({ns}.u) * {ns}.inner.k + np.mean({ns}.h)"
        if out.chance(0.7)
        else f"sum(np.mean(v) for v in ({ns}.u, {ns}.h)) * 0.5",
    )


@idiom("data")
def nested_containers(out: Wide, scope: Scope, loop: str | None) -> None:
    d, b, s, t = (
        out.fresh("d"),
        out.pick(scope.arrays),
        out.pick(scope.scalars),
        out.pick(scope.tables),
    )
    out.emit(
        f"{d} = {{'pos': [{s}, {out.bounded(scope)}], 'par': {{'k': 0.3, 'w': {b}}}, 'rows': ({t}[0], {t}[1]), 'p': {out.need('Pair')}({s}, {b})}}"
    )
    lines = [
        f"{d}['pos'][0] = {d}['pos'][1] * 0.5 + {d}['par']['k']",
        f"{d}['par']['w'][{out.index(scope, LENGTH)}] = np.sin({d}['pos'][0])",
        f"{d}['par']['k'] *= {out.bounded(scope)}",
        f"{d}['rows'][0][1] = {out.bounded(scope)}",
        f"{d}['pos'] = [np.sin(v) for v in {d}['pos']]",
        f"{d}['p'] = {d}['p']._replace(first={d}['pos'][0])",
        f"{d}['par'] = {{**{d}['par'], 'k': {out.bounded(scope)}}}",
        f"{d}['pos'][0], {d}['pos'][1] = {d}['pos'][1], {d}['pos'][0]",
        f"{d}.update(pos=[0.3, {s}])",
    ]
    for _ in range(out.rng.randint(1, 2)):
        line = out.pick(lines)
        if out.chance(0.4):
            out.emit(
                out.pick(
                    [f"for {out.fresh('i')} in {out.trips(scope)}:", f"if {out.condition(scope)}:"]
                )
            )
            line = "    " + line
        out.emit(line)
    out.new(scope, f"np.tanh(sum({d}['pos']) + {d}['par']['k'] + np.mean({d}['par']['w']) * {d}['p'].first + {d}['rows'][0][1])")


@idiom("data")
def static_values(out: Wide, scope: Scope, loop: str | None) -> None:
    """Strings, enums and None that decide what is done."""
    out.need("Mode")
    s, mode, name = out.pick(scope.scalars), out.fresh("mode"), out.pick(scope.scalars)
    g = out.need("waved")
    match out.rng.randrange(4):
        case 0:
            out.new(
                scope,
                out.pick(
                    [
                        f"{g}({s})",
                        f"{g}({s}, 'tanh', scale={out.bounded(scope)})",
                        f"{g}({s}, mode=Mode.SINE)",
                        f"{g}({s}, Mode['COSINE'], None)",
                    ]
                ),
            )
        case 1:
            out.emit(f"for {mode} in ('sine', 'tanh', Mode.COSINE):")
            out.emit(f"    {name} = 0.5 * {name} + {g}({s}, {mode})")
        case 2:
            out.emit(f"{mode} = None")
            out.emit(f"if {mode} is None:")
            out.emit(f"    {mode} = 'sine'")
            out.new(scope, f"{g}({s}, {mode}) if {mode} != 'cosine' else 0.3")
        case 3:
            out.emit(f"{mode} = {{'sine': np.sin, Mode.SINE: np.cos, None: np.tanh}}")
            out.new(
                scope,
                out.pick(
                    [f"{mode}['sine']({s})", f"{mode}[None]({s}) + {mode}[Mode('sine')]({s})"]
                ),
            )


@idiom("data")
def integers_and_booleans(out: Wide, scope: Scope, loop: str | None) -> None:
    ks, b, s, i, c = (
        out.fresh("ks"),
        out.pick(scope.arrays),
        out.pick(scope.scalars),
        out.pick(scope.ints),
        out.pick(scope.arrays),
    )
    k, name = out.fresh("i"), out.pick(scope.scalars)
    lines, expression = out.pick(
        [
            ([f"{ks} = np.array([{i} % 5, 2, 0])"], f"np.sum({b}[{ks}]) * 0.5"),
            (
                [
                    f"{ks} = np.zeros(3, dtype=int)",
                    f"for {k} in range(4):",
                    f"    {ks}[({k} + {i}) % 3] += {k}",
                ],
                f"np.sum({ks} * {b}[:3]) * 0.1",
            ),
            ([f"{ks} = {b} > 0.1137"], f"np.sum({ks} * {c}) * 0.5 + np.sum({ks}) * 0.1"),
            ([f"{ks} = np.argsort({b})"], f"np.sin({c}[{ks}[0]]) + {c}[{ks}][1] * 0.5"),
            (
                [f"{ks} = ({b} > 0.1137) & ~({c} > 0.7137)"],
                f"np.sum(np.where({ks}, {b}, 0.3)) * {s}",
            ),
            (
                [f"{k} = int(np.argmax({b}))", f"{name} = {name} * 0.5 + {c}[{k}]"],
                f"{b}[{k} - 1] * 0.5",
            ),
            ([f"{ks} = np.cumsum(np.array([1, {i} % 2, 1]))"], f"{b}[{ks}[-1]] + {ks}[0] * {s}"),
            (
                [f"{ks} = np.arange({LENGTH})[::-1]", f"{ks} = {ks} * 2 % {LENGTH}"],
                f"np.mean({b}[{ks}] * {c})",
            ),
            (
                [
                    f"{ks} = np.zeros({LENGTH}, dtype=bool)",
                    f"{ks}[{i} % {LENGTH}] = True",
                    f"{ks}[1:3] = {b}[1:3] > 0.0137",
                ],
                f"np.sum({b}[{ks}]) * 0.5",
            ),
            (
                [
                    f"{ks} = [{i} % 3, 1]",
                    f"{ks}.append(({i} + 1) % 3)",
                    f"for {k} in {ks}:",
                    f"    {name} = 0.5 * {name} + {b}[{k}]",
                ],
                f"{b}[{ks}[-1]] * {s}",
            ),
            (
                [f"{ks} = np.array([[0, 1], [2, 3]])"],
                f"np.sum({b}[{ks}] * np.array([[0.1, 0.2], [{s}, 0.3]]))",
            ),
            ([f"{k} = {i} // 2 * 3 - (-{i} % 4) | 1"], f"{s} * 0.1 * {k}"),
            (
                [f"{ks} = np.ones({LENGTH}, dtype=np.float32) * np.float32(0.5)"],
                f"np.mean({ks} * {b}) + np.float32(0.25) * {s}",
            ),
            ([f"{ks} = np.searchsorted(np.array([-0.5, 0.0, 0.5]), {s})"], f"np.tanh({b}[{ks}])"),
        ]
    )
    for line in lines:
        out.emit(line)
    out.new(scope, expression)


@idiom("data")
def complex_arrays(out: Wide, scope: Scope, loop: str | None) -> None:
    z, b, c, s = (
        out.fresh("z"),
        out.pick(scope.arrays),
        out.pick(scope.arrays),
        out.pick(scope.scalars),
    )
    out.emit(f"{z} = {out.pick([f'{b} + 1j * {c}', f'np.exp(1j * {b})', f'np.zeros({LENGTH}, dtype=complex)', f'{b}.astype(complex)'])}")
    for line in out.pick(
        [
            [f"{z}[{out.index(scope, LENGTH)}] = {s} - 1j * {out.bounded(scope)}"],
            [f"{z} *= np.exp(1j * {s})"],
            [f"{z}[1:] = {z}[:-1] * (0.5 + 0.5j) + {b}[1:]"],
            [f"for {out.fresh('i')} in {out.trips(scope)}:", f"    {z} = {z} * (0.5 + 0.3j) + {c}"],
            [f"{z}.real[1] = {s}"],
            [f"{z}[::2] += 1j * {b}[::2]"],
        ]
    ):
        out.emit(line)
    out.new(
        scope,
        "np.tanh("
        + out.pick(
            [
                f"np.sum(np.abs({z} + 3.5) ** 2) * 0.05",
                f"np.sum({z}.real * {z}.imag)",
                f"np.sum({z} * np.conj({z})).real",
                f"np.real({z} @ {z})",
                f"np.mean(np.abs({z} + (3.5 + 0.5j)))",
                f"np.vdot({z}, {z}).real",
                f"np.angle({z}[0] + 3.5)",
                f"({z} ** 2).imag.sum()",
            ]
        )
        + ")",
    )


@idiom("data")
def keys_of_the_run(out: Wide, scope: Scope, loop: str | None) -> None:
    """Memos, counters, sets, queues: what is in them depends on the run."""
    d, k, s, i, b = (
        out.fresh("d"),
        out.fresh("k"),
        out.pick(scope.scalars),
        out.pick(scope.ints),
        out.pick(scope.arrays),
    )
    name, v = out.pick(scope.scalars), out.bounded(scope)
    lines, expression = out.pick(
        [
            (
                [
                    f"{d} = {{0: {s}, 1: 0.5}}",
                    f"for {k} in range(2, n + 3):",
                    f"    {d}[{k}] = 0.5 * {d}[{k} - 1] + np.sin({d}[{k} - 2])",
                ],
                f"{d}[n + 2]",
            ),
            (
                [
                    f"{d} = {{}}",
                    f"for {k} in range(n + 2):",
                    f"    if {k} % 3 not in {d}:",
                    f"        {d}[{k} % 3] = {v}",
                    f"    {name} = 0.5 * {name} + {d}[{k} % 3]",
                ],
                f"sum({d}.values()) + 0.1 * len({d})",
            ),
            (
                [
                    f"{d} = set()",
                    f"for {k} in range(n + 2):",
                    f"    if {k} % 3 in {d}:",
                    "        continue",
                    f"    {d}.add({k} % 3)",
                    f"    {name} = 0.5 * {name} + {v}",
                ],
                f"len({d}) * 0.1 + {s}",
            ),
            (
                [f"{d} = {{{i} % 2, 1, 3}}"],
                f"sum({b}[{k}] for {k} in sorted({d})) + 0.1 * (2 in {d})",
            ),
            (
                [
                    f"{d} = collections.defaultdict(float)",
                    f"for {k} in range(4):",
                    f"    {d}[{k} % (n + 1)] += np.sin({b}[{k}]) * {s}",
                ],
                f"sum({d}[{k}] for {k} in sorted({d}))",
            ),
            (
                [
                    f"{d} = collections.deque([{s}, 0.3], maxlen=3)",
                    f"for {k} in range(n):",
                    f"    {d}.append({v} * {d}[0])",
                ],
                f"sum({d}) + {d}[-1]",
            ),
            (
                [
                    f"{d} = None",
                    f"for {k} in {b}.copy():",
                    f"    if {d} is None or {k} > {d}:",
                    f"        {d} = np.sin({k})",
                ],
                f"{d} * 0.5 if {d} is not None else 0.3",
            ),
            (
                [
                    f"{d} = [({s}, 0.3), (0.5, {v})]",
                    f"{k}, {name} = zip(*{d})",
                    f"{name} = {name}[0] * {k}[1]",
                ],
                f"{name} * 0.5",
            ),
            (
                [f"{d} = {{({i} % 2, 0): {s}, (1, 1): {v}}}"],
                f"{d}.get((1, 1), 0.3) + {d}.get((0, 7), 0.5)",
            ),
            (
                [
                    f"{d} = collections.Counter()",
                    f"for {k} in range(4):",
                    f"    {d}[{k} % (n + 1)] += 1",
                ],
                f"{s} * {d}[0] + 0.1 * {d}[9]",
            ),
        ]
    )
    for line in lines:
        out.emit(line)
    out.new(scope, f"np.tanh({expression})")
