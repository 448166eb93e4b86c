"""Names that refer to one of several arrays or views, chosen in loops and branches, and written
through."""

from __future__ import annotations

from dataclasses import dataclass, field

from generate import LENGTH, Scope

from .writer import Wide, idiom


@dataclass
class Names:
    """The arrays of LENGTH that were made here, square matrices of them, and the names that refer
    to one of them.
    """

    made: list[str]
    pointers: list[str]
    squares: list[str] = field(default_factory=list)

    @property
    def all(self) -> list[str]:
        return self.made + self.pointers


@idiom("pointers")
def chosen_arrays(out: Wide, scope: Scope, loop: str | None) -> None:
    names = Names([], [])
    for _ in range(out.rng.randint(2, 4)):
        b = out.pick(scope.arrays)
        names.made.append(p := out.fresh("p"))
        out.emit(f"{p} = " + out.pick([f"{b}.copy()", f"np.sin({b})", f"{b} * 0.5",
                                       f"np.zeros({LENGTH})", b]))
    if out.chance(0.4):
        names.squares.append(g := out.fresh("g"))
        out.emit(f"{g} = np.outer(np.sin({out.pick(names.made)}), {out.pick(names.made)}) * 0.5")
    for _ in range(out.rng.randint(1, 2)):
        names.pointers.append(c := out.fresh("c"))
        out.emit(f"{c} = {_referent(out, names, None)}")
    inner = scope.inner()
    inner.arrays += names.all
    i = out.fresh("i")
    if out.chance(0.75):
        out.emit(f"for {i} in {out.trips(scope)}:")
        inner.ints.append(i)
    else:
        scope.ints.append(i)
        inner.ints.append(i)
        out.emit(f"{i} = 0")
        out.emit(f"while {i} < {out.pick(['n', 'n + 1', '3'])}:")
        out.emit(f"    {i} += 1")
    out.depth += 1
    for _ in range(out.rng.randint(2, 5)):
        _step(out, inner, names, i, "for")
    out.depth -= 1
    if out.chance(0.6):
        _write(out, scope, names, out.pick(scope.ints))
    scope.arrays += names.all
    out.new(scope, "np.tanh(" + " + ".join(f"{0.3 + 0.2 * k:.1f} * np.sum({name})" for k, name
                                           in enumerate(names.all + names.squares)) + ")")


@idiom("pointers")
def chosen_in_branches(out: Wide, scope: Scope, loop: str | None) -> None:
    """Without a loop of its own: what an `if` leaves in a name, or what the loop around does."""
    names = Names(out.rng.sample(scope.arrays, min(len(scope.arrays), 3)), [out.fresh("c")])
    i = out.pick(scope.ints)
    out.emit(f"{names.pointers[0]} = {out.pick(names.made)}")
    for _ in range(out.rng.randint(1, 3)):
        _step(out, scope.inner(), names, i, None)
    _write(out, scope, names, i)
    scope.arrays += names.pointers


@idiom("pointers")
def rows_of_tables(out: Wide, scope: Scope, loop: str | None) -> None:
    """Rows, columns and windows of a table, each trip another, written through a name."""
    t, u = out.pick(scope.tables), out.pick(scope.tables)
    r, i, s = out.fresh("r"), out.fresh("i"), out.bounded(scope)
    first = out.pick([f"{t}[0]", f"{t}[-1]", f"{u}[1]"])
    other = out.pick([f"{t}[{i} % 3]", f"{u}[{i} % 3]", f"{t}[{i} % 3 - 1][:]", f"{r}[::-1]",
                      f"np.sin({r})", f"{t}[({i} + 1) % 3] if {i} % 2 == 0 else {u}[0]"])
    write = out.pick([f"{r}[{i} % 4] += {s}", f"{r}[1:3] = {s}", f"{r}[:] *= 0.5",
                      f"{r}[0] = {r}[1] * 0.5 + {s}", f"{t}[{i} % 3, 1] = {r}[0] * 0.5",
                      f"{r} *= 0.5"])
    out.emit(f"{r} = {first}")
    out.emit(f"for {i} in {out.trips(scope)}:")
    lines = [f"{r} = {other}", write]
    if out.chance(0.4):
        lines = [f"if {out.condition(scope)}:", "    " + lines[0], lines[1]]
    if out.chance(0.5):
        lines = [write, *lines[:-1]]
    for line in lines:
        out.emit("    " + line)
    if out.chance(0.7):
        out.emit(f"{r}[{out.rng.randrange(4)}] {out.pick(['=', '+=', '*='])} {out.bounded(scope)}")
    out.new(scope, f"np.tanh(np.sum({r}) + np.sum({t}) * 0.5)")


@idiom("pointers")
def held_in_containers(out: Wide, scope: Scope, loop: str | None) -> None:
    """A pair, a list or a dict of arrays, of which one is chosen and written into."""
    p, q, h, i = out.pick(scope.arrays), out.pick(scope.arrays), out.fresh("h"), out.fresh("i")
    s, op = out.bounded(scope), out.pick(["=", "+=", "*="])
    c = out.fresh("c")
    held, one = out.pick([
        (f"[{p}, {q}.copy()]", f"{h}[{i} % 2]"),
        (f"({p}, {q} * 0.5)", f"{h}[{i} % 2]"),
        (f"{{'u': {p}, 'w': np.sin({q})}}", f"{h}['u' if {i} % 2 == 0 else 'w']"),
        (f"types.SimpleNamespace(u={p}, w={q} + 0.1)", f"({h}.u if {i} % 2 == 0 else {h}.w)"),
    ])
    out.emit(f"{h} = {held}")
    out.emit(f"{c} = {p}")
    out.emit(f"for {i} in {out.trips(scope)}:")
    for line in out.pick([
        [f"{c} = {one}", f"{c}[{i} % {LENGTH}] {op} {s}"],
        [f"{c}[{i} % {LENGTH}] {op} {s}", f"{c} = {one}"],
        [f"if {out.condition(scope)}:", f"    {c} = {one}", f"{c}[1:3] {op} {s}"],
        [f"{one}[1:] {op} {s}"],
        [f"for {c} in ({p}, {one}):", f"    {c}[0] {op} {s}"],
    ]):
        out.emit("    " + line)
    if out.chance(0.5):
        out.emit(f"{c}[2] = {out.bounded(scope)}")
    out.new(scope, f"np.tanh(np.sum({c}) + np.sum({p}) * 0.3 + np.sum({q}) * 0.7)")


def _referent(out: Wide, names: Names, i: str | None) -> str:
    """What a pointer may be bound to: an array, a row or a column, or another pointer's array."""
    if names.squares and out.chance(0.4):
        g, k = out.pick(names.squares), out.pick(["0", "1", "-1", f"{i} % {LENGTH}" if i else "2"])
        return out.pick([f"{g}[{k}]", f"{g}[:, {k}]", f"{g}[{k}][:]"])
    name = out.pick(names.all if i else names.made)
    return f"{name}[::-1]" if out.chance(0.1) else name


def _test(out: Wide, scope: Scope, names: Names, i: str) -> str:
    return out.pick([f"{i} % 2 == 0", f"{i} % 3 == 1", f"{i} > 1", out.condition(scope),
                     f"{out.pick(names.all)}[1] > 0.2137"])


def _write(out: Wide, scope: Scope, names: Names, i: str) -> None:
    place = out.pick(["0", "1:3", f"{i} % {LENGTH}", "-1", ":", "::2"])
    value = out.pick([out.bounded(scope), "0.5", f"0.5 * {out.pick(names.all)}[2]",
                      f"np.sin({out.pick(names.all)}[{i} % {LENGTH}])"])
    op = out.pick(["=", "+=", "*="] if "sin" in value or "0.5" == value else ["=", "+="])
    out.emit(f"{out.pick(names.all)}[{place}] {op} {value}")


def _step(out: Wide, scope: Scope, names: Names, i: str, loop: str | None) -> None:
    """One statement that writes through a name or binds one anew."""
    c = out.pick(names.pointers)
    choice = out.rng.random()
    if choice < 0.28:
        _write(out, scope, names, i)
    elif choice < 0.44:
        out.emit(f"{c} = {_referent(out, names, i)}")
    elif choice < 0.56:
        out.emit(f"{c} = {_referent(out, names, i)} if {_test(out, scope, names, i)} "
                 f"else {_referent(out, names, i)}")
    elif choice < 0.7 and out.depth < 5:
        out.emit(f"if {_test(out, scope, names, i)}:")
        out.depth += 1
        _step(out, scope, names, i, loop)
        if loop and out.chance(0.15):
            out.emit(out.pick(["continue", "break"]))
        out.depth -= 1
        if out.chance(0.4):
            out.emit("else:")
            out.depth += 1
            _step(out, scope, names, i, loop)
            out.depth -= 1
    elif choice < 0.76 and len(names.pointers) == 2:
        d, e = names.pointers
        out.emit(f"{d}, {e} = {e}, {d}")
    elif choice < 0.81:
        out.emit(f"{c} = {out.pick(names.all)} * {out.pick(['0.5', out.bounded(scope)])}")
    elif choice < 0.85 and loop:
        out.emit(f"{out.pick(names.made)} = {out.pick(names.all)} * 0.5")
    elif choice < 0.91 and loop and out.depth < 4:
        j, inner = out.fresh("j"), scope.inner()
        out.emit(f"for {j} in range({out.pick(['2', 'n - 1', '3'])}):")
        inner.ints.append(j)
        out.depth += 1
        for _ in range(out.rng.randint(1, 3)):
            _step(out, inner, names, j, loop)
        out.depth -= 1
    elif out.left > 0:
        out.statement(scope.inner(), loop)
    else:
        s = out.pick(scope.scalars)
        out.emit(f"{s} = 0.5 * {s} + np.sin({out.pick(names.all)}[0])")
