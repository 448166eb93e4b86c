"""Ways through a program: raised and caught, matched, left early."""

from __future__ import annotations

from generate import CONSTANTS, Scope

from .writer import Wide, idiom


@idiom("control")
def raise_and_catch(out: Wide, scope: Scope, loop: str | None) -> None:
    """An explicit raise, caught; what came before it stays done."""
    name = out.pick(scope.scalars)
    out.emit("try:")
    out.depth += 1
    out.emit(f"{name} = {out.bounded(scope)}")
    inner = scope.inner()
    if out.chance(0.4):
        out.left = max(out.left, 1)
        out.statement(inner, loop)
    out.emit(f"if {out.condition(inner)}:")
    out.emit("    raise ValueError('left')")
    out.emit(f"{name} = {name} + {out.bounded(inner)}")
    out.depth -= 1
    out.emit(
        out.pick(
            ["except ValueError:", "except (KeyError, ValueError) as error:", "except Exception:"]
        )
    )
    out.block(scope, loop)
    if out.chance(0.3):
        out.emit("else:")
        out.block(scope, loop, 1)
    if out.chance(0.3):
        out.emit("finally:")
        out.depth += 1
        out.emit(f"{name} *= 0.9")
        out.depth -= 1


@idiom("control")
def error_of_an_operation(out: Wide, scope: Scope, loop: str | None) -> None:
    i = out.pick(scope.ints)
    kind, risky = out.pick(
        [
            ("ZeroDivisionError", f"1.0 / ({i} % 2)"),
            ("IndexError", f"{out.pick(scope.arrays)}[{i} + 3]"),
            ("ValueError", f"{out.need('safe_log')}({out.scalar(scope, 1)})"),
            ("ZeroDivisionError", f"{i} // ({i} % 3) * 0.1"),
        ]
    )
    name = out.fresh("s")
    out.emit("try:")
    out.emit(f"    {name} = np.tanh({risky})")
    out.emit(f"except {kind}:")
    out.emit(f"    {name} = {out.bounded(scope)}")
    scope.scalars.append(name)


@idiom("control")
def loop_else(out: Wide, scope: Scope, loop: str | None) -> None:
    name = out.pick(scope.scalars)
    if out.chance(0.6):
        out.emit(f"for {out.fresh('i')} in {out.trips(scope)}:")
    else:
        k = out.fresh("k")
        out.emit(f"{k} = 0")
        out.emit(f"while {k} < {out.rng.randint(1, 4)}:")
        out.emit(f"    {k} += 1")
    out.emit(f"    {name} = {name} * 0.8 + {out.bounded(scope)}")
    out.emit(f"    if {out.condition(scope)}:")
    out.emit(f"        {name} += 0.1")
    out.emit("        break")
    out.emit("else:")
    out.emit(f"    {name} = {out.bounded(scope)}")


@idiom("control")
def match(out: Wide, scope: Scope, loop: str | None) -> None:
    name, i = out.pick(scope.scalars), out.pick(scope.ints)
    subject, patterns = out.pick(
        [
            (f"{i} % 4", ["0", "1 | 2", "_"]),
            (f"({i} % 2, {out.pick(scope.scalars)})", ["(0, u)", "(1, u) if u > 0.2137", "(_, u)"]),
            (f"{out.pick(scope.scalars)}", ["u if u < 0.1237", "u if u < 0.9137", "u"]),
        ]
    )
    out.emit(f"match {subject}:")
    for pattern in patterns:
        out.emit(f"    case {pattern}:")
        extra = " + 0.1 * np.sin(u)" if "u" in pattern else ""
        out.emit(f"        {name} = {out.bounded(scope)}{extra}")


@idiom("control")
def walrus(out: Wide, scope: Scope, loop: str | None) -> None:
    w = out.fresh("w")
    out.emit(f"if ({w} := {out.bounded(scope)}) > {out.pick(CONSTANTS) + 0.0137:.4f}:")
    scope.scalars.append(w)
    out.block(scope, loop)


@idiom("control")
def unpack(out: Wide, scope: Scope, loop: str | None) -> None:
    p, q, r = out.fresh("s"), out.fresh("s"), out.fresh("r")
    source = out.pick([
        f"({out.bounded(scope)}, {out.bounded(scope)}, {out.bounded(scope)}, {out.bounded(scope)})",
        f"[{out.bounded(scope)}, {out.bounded(scope)}, {out.bounded(scope)}]", out.pick(scope.arrays),
    ])
    out.emit(
        out.pick(
            [
                f"{p}, *{r}, {q} = {source}",
                f"{p}, {q}, *{r} = {source}",
                f"*{r}, {p}, {q} = {source}",
            ]
        )
    )
    out.emit(f"{p} = {p} + 0.5 * sum({r})")
    scope.scalars += [p, q]


@idiom("control")
def chained(out: Wide, scope: Scope, loop: str | None) -> None:
    p, q = out.fresh("s"), out.pick(scope.scalars)
    out.emit(f"{p} = {q} = {out.bounded(scope)}")
    scope.scalars.append(p)


@idiom("control")
def with_statement(out: Wide, scope: Scope, loop: str | None) -> None:
    out.emit(out.pick(["with np.errstate(all='ignore'):", "with contextlib.nullcontext():"]))
    out.body(scope, loop, 2)


@idiom("control")
def checks(out: Wide, scope: Scope, loop: str | None) -> None:
    u = out.pick(scope.scalars)
    out.emit(
        out.pick(
            [
                f"assert abs({u}) < 1e9, f'{{{u}}} is large'",
                f"if not {u} < 1e9:\n{'    ' * out.depth}    raise ValueError('large')",
            ]
        )
    )


@idiom("control")
def nested_function(out: Wide, scope: Scope, loop: str | None) -> None:
    g, u = out.fresh("g"), out.fresh("u")
    free = out.pick(scope.scalars)
    out.emit(f"def {g}({u}, k=2):")
    out.emit(f"    if {u} > {free}:")
    out.emit(f"        return np.sin({u}) * k")
    out.emit(f"    return {u} * np.cos({free})")
    if out.chance(0.3):
        out.emit(f"{free} = {free} * 0.7")
    out.new(scope, f"{g}({out.bounded(scope)}) + {g}({out.pick(scope.scalars)}, k=1)")


@idiom("control")
def printed(out: Wide, scope: Scope, loop: str | None) -> None:
    u, i = out.pick(scope.scalars), out.pick(scope.ints)
    out.emit(
        out.pick(
            [
                f"print(f'{{{u}:.4f}} of {{{i}}}')",
                f"print('at', {i}, sep='=')",
                f"print({u} > {out.pick(CONSTANTS) + 0.0137:.4f}, {i} % 2 == 0)",
                f"print(f'{{{i}:>4d}}|{{{u}:8.3f}}|', end=' ')\n{'    ' * out.depth}print()",
                f"print('%d: %s' % ({i}, 'odd'))",
                f"print('{{}} {{:.2f}}'.format({i}, {u}))",
                f"print(len({out.pick(scope.arrays)}), {out.pick(scope.tables)}.shape)",
            ]
        )
    )


@idiom("control")
def try_in_a_loop(out: Wide, scope: Scope, loop: str | None) -> None:
    """Every way out of a `try` inside a loop: to the handler, on, out, back."""
    name, i = out.pick(scope.scalars), out.fresh("i")
    out.emit(f"for {i} in {out.trips(scope)}:")
    inner = scope.inner()
    inner.ints.append(i)
    out.depth += 1
    out.emit("try:")
    out.depth += 1
    out.emit(f"if {out.condition(inner)}:")
    out.emit(
        f"    {out.pick(['raise ValueError', 'raise KeyError({0!r})', 'continue', 'break']).format(name)}"
    )
    out.depth -= 1
    out.block(inner, "for")
    out.depth += 1
    out.emit(f"if {out.condition(inner)}:")
    out.emit("    raise KeyError('no')")
    out.emit(f"{name} = 0.5 * {name} + {out.bounded(inner)}")
    out.depth -= 1
    out.emit(out.pick(["except (ValueError, KeyError):", "except Exception as error:"]))
    if out.chance(0.5):
        out.block(inner, "for")
    else:
        out.emit("    " + out.pick(["pass", "continue", "break", f"{name} = {out.bounded(inner)}"]))
    if out.chance(0.5):
        out.emit("finally:")
        out.emit(f"    {out.pick(scope.scalars)} *= 0.9")
    out.depth -= 1


@idiom("control")
def match_on_sequences(out: Wide, scope: Scope, loop: str | None) -> None:
    name, b, c = out.pick(scope.scalars), out.bounded(scope), out.bounded(scope)
    s, i = out.pick(scope.scalars), out.pick(scope.ints)
    subject, patterns = out.pick([
        (f"[{s}, {b}, {c}]", ["[u]", "[u, *r] if u > 0.4137", "[*r, u]"]),
        (f"({i} % 3, ({s}, {b}))", ["(0, (u, _))", "(1 | 2 as k, (_, u))"]),
        (f"'{out.pick(['sin', 'cos', 'none'])}'", ["'sin'", "'cos' | 'tan'", "_"]),
        (f"{out.pick(['None', s])}", ["None", "u"]),
        (f"{{'kind': {i} % 2, 'u': {s}}}", ["{'kind': 0, 'u': u}", "{'u': u}"]),
    ])
    out.emit(f"match {subject}:")
    for pattern in patterns:
        out.emit(f"    case {pattern}:")
        out.emit(
            f"        {name} = {out.bounded(scope)}"
            + (" * np.cos(u)" if "u" in pattern.replace("'u'", "") else "")
        )


@idiom("control")
def endless_loop(out: Wide, scope: Scope, loop: str | None) -> None:
    k, name = out.fresh("k"), out.pick(scope.scalars)
    out.emit(f"{k} = 0")
    out.emit("while True:")
    inner = scope.inner()
    inner.ints.append(k)
    out.depth += 1
    out.emit(
        f"if {k} > {out.rng.randint(1, 3)}"
        + (f" or {out.condition(scope)}:" if out.chance(0.5) else ":")
    )
    out.emit("    break")
    out.emit(f"{k} += 1")
    out.emit(f"if {out.condition(inner)}:")
    out.emit(f"    {name} += {out.bounded(inner)}")
    out.emit("    continue")
    out.depth -= 1
    out.block(inner, "while")


@idiom("control")
def iterated(out: Wide, scope: Scope, loop: str | None) -> None:
    """A loop over something other than range(...)."""
    v, p, i = out.fresh("v"), out.fresh("v"), out.fresh("i")
    b, c, t, s, q = (
        out.pick(scope.arrays),
        out.pick(scope.arrays),
        out.pick(scope.tables),
        out.pick(scope.scalars),
        out.pick(scope.scalars),
    )
    head, scalars, ints = out.pick(
        [
            (f"{v}, {p} in zip({b}.copy(), {c}[::-1].copy())", [v, p], []),
            (f"{i}, ({v}, {p}) in enumerate(zip(np.sin({b}), np.cos({t}[0])))", [v, p], [i]),
            (f"{v} in reversed([{s}, {q}, 0.3])", [v], []),
            (f"{i} in reversed(range(n))", [], [i]),
            (f"{v} in sorted([{s}, {q} + 0.0371, 0.2137])", [v], []),
            (f"{i}, {p} in itertools.product(range(2), ({s}, {q}))", [p], [i]),
            (f"{p}, {v} in {{'a': {s}, 'b': {q}}}.items()", [v], []),
            (f"{v} in map(np.sin, {b}.copy())", [v], []),
            (f"{v} in filter(lambda u: u > 0.1137, {b}.copy())", [v], []),
            (f"{v} in itertools.chain(({s}, {q}), np.cos({b}))", [v], []),
            (f"{v} in ({s}, {q}, *({s}, 0.3))", [v], []),
            (f"{i}, {v} in enumerate([{s}, {q}], start=1)", [v], [i]),
            (f"{v} in np.tanh({t}).T[1]", [v], []),
            (f"{v} in np.sin({b})[1::2]", [v], []),
            (f"{v} in np.tanh({t}).flat", [v], []),
            (f"{v} in itertools.accumulate([{s}, {q}, 0.3])", [v], []),
            (f"{i} in (2, 0, 1)", [], [i]),
        ]
    )
    out.emit(f"for {head}:")
    inner = scope.inner()
    inner.scalars += scalars
    inner.ints += ints
    if scalars and out.chance(0.6):
        name = out.pick(scope.scalars)
        out.emit(f"    {name} = 0.7 * {name} + np.sin({scalars[0]}) * {out.bounded(inner)}")
    out.block(inner, "for")


@idiom("control")
def builtins(out: Wide, scope: Scope, loop: str | None) -> None:
    s, q, i, b = (
        out.pick(scope.scalars),
        out.pick(scope.scalars),
        out.pick(scope.ints),
        out.pick(scope.arrays),
    )
    out.new(
        scope,
        out.pick(
            [
                f"math.sin({s}) * math.exp(-abs({q}))",
                f"math.hypot({s}, {q} + 2.5)",
                f"math.atan2({s}, 2.0 + {q} * {q})",
                f"math.sqrt(1.0 + {s} ** 2)",
                f"divmod({i} + 3, 2)[0] * 0.1 + {s}",
                f"pow(np.sin({s}), 2)",
                f"min([{s}, {q} + 0.0371], key=abs)",
                f"max({s}, {q} + 0.0371, key=lambda u: -u)",
                f"round({i} / 3, 2) + {s} * 0.5",
                f"{s} % 1.7 * 0.5",
                f"abs({s}) * math.copysign(0.5, {q})",
                f"math.fsum([{s}, {q}, 0.1])",
                f"math.tanh({s}) + math.pi * 0.1",
                f"{s} * all(v < 5.0 for v in {b}) + 0.1 * any({b} > 0.5137)",
                f"{s} * isinstance({i}, int) + float({i}) * 0.1",
                f"sum([{s}, {q}], 0.5)",
                f"{s} * bool({i} % 2)",
                f"math.prod([np.sin({s}), np.cos({q}), 0.9])",
                f"math.log1p({s} * {s}) if 0.1137 < {s} <= 0.9137 else math.expm1(-abs({s}))",
                f"np.sin({s}) if {s} > 0.1237 else np.cos({q}) if {q} > 0.1237 else {s} * 0.5",
                f"int(math.floor({s} * 2.0 + 0.0137)) * 0.1 + {q}",
                f"np.clip({s}, -0.7137, 0.8137)",
            ]
        ),
    )


@idiom("control")
def small_things(out: Wide, scope: Scope, loop: str | None) -> None:
    s, p = out.pick(scope.scalars), out.fresh("s")
    for line in out.pick(
        [
            [f"{p} = {out.bounded(scope)}", f"{s} = {s} * 0.5 + {p}", f"del {p}"],
            ["pass"],
            ["'a remark'"],
            ["..."],
            [f"{s}: float = {out.bounded(scope)}"],
            [f"{s} = {p} = {out.bounded(scope)}", f"{p} += 0.1", f"{s} -= {p} * 0.5"],
            [f"({p}, {s}), _ = ({s}, {out.bounded(scope)}), 0.3", f"{s} += {p} * 0.5"],
        ]
    ):
        out.emit(line)
