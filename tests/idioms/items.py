"""Lists of a run-time number of objects, dicts, tuples, lists or arrays, whose items are written
into: by index, through names, in loops over them."""

from __future__ import annotations

from dataclasses import dataclass

from generate import LENGTH, Scope

from .writer import Wide, idiom

OPERATORS = ["=", "+=", "*="]


@dataclass
class Items:
    """A run-time list `xs` of what `kind` says, and the scope around it."""

    out: Wide
    scope: Scope
    kind: str
    xs: str

    def new(self, i: str) -> str:
        """An item, of an index."""
        b = self.out.pick(self.scope.arrays)
        number, array = f"{b}[{i} % {LENGTH}]", f"np.sin({b} + {i})"
        match self.kind:
            case "object":
                return f"types.SimpleNamespace(v={number}, p={array}, t=[{number}])"
            case "dict":
                return f"{{'v': {number}, 'p': {array}, 't': [{number}]}}"
            case "nested":
                inner = f"types.SimpleNamespace(v={number}, t=[{number}])"
                return f"types.SimpleNamespace(v={number}, p={array}, inner={inner})"
            case "mixed":
                return (f"types.SimpleNamespace(v={number}, p=[{array}, {b} * 0.5], "
                        f"t=({number}, [{number}, 0.3]))")
            case "lists":
                return f"[[{number}, 0.3], [{number} * {i}]]"
            case "array":
                return array
            case "list":
                return f"[{number} * {i}, 0.3]"
            case "tuple":
                return f"({number}, {array})"
        raise KeyError(self.kind)

    def member(self, o: str, name: str) -> str:
        if self.kind == "nested" and name == "t":
            return f"{o}.inner.t"
        return f"{o}['{name}']" if self.kind == "dict" else f"{o}.{name}"

    def read(self, o: str, i: str) -> str:
        match self.kind:
            case "array":
                choices = [f"{o}[{i} % {LENGTH}]", f"np.mean({o} ** 2)"]
            case "list":
                choices = [f"{o}[0]", f"{o}[-1]"]
            case "lists":
                choices = [f"{o}[0][0]", f"{o}[1][-1]", f"sum({o}[0])"]
            case "mixed":
                choices = [f"{o}.v", f"{o}.p[0][{i} % {LENGTH}]", f"np.mean({o}.p[-1])",
                           f"{o}.t[0]", f"{o}.t[1][-1]"]
            case "tuple":
                choices = [f"{o}[0]", f"{o}[1][{i} % {LENGTH}]"]
            case _:
                p = self.member(o, "p")
                choices = [self.member(o, "v"), f"{p}[{i} % {LENGTH}]", f"np.mean({p})",
                           self.member(o, "t") + "[-1]"]
                if self.kind == "nested":
                    choices.append(f"{o}.inner.v")
        return self.out.pick(choices)

    def value(self, o: str, i: str) -> str:
        other = self.read(f"{self.xs}[{i} % len({self.xs})]", i)
        return self.out.pick([self.out.bounded(self.scope), "0.5", f"np.sin({self.read(o, i)})",
                              f"np.tanh({other})", f"np.cos({self.read(o, i)} * {other})"])

    def write(self, o: str, i: str) -> str:
        """A statement that writes into the item `o`."""
        op, value = self.out.pick(OPERATORS), self.value(o, i)
        part = self.out.pick(["0", f"{i} % {LENGTH}", "1:3", ":", "-1"])
        match self.kind:
            case "array":
                return self.out.pick([f"{o}[{part}] {op} {value}", f"{o}[1:] += {o}[:-1] * 0.5",
                                      f"{o}[{part}] {op} {value}"])
            case "list":
                return self.out.pick([f"{o}[{self.out.pick(['0', '-1'])}] {op} {value}",
                                      f"{o}.append({value})"])
            case "lists":
                k = self.out.pick(["0", "1", "-1"])
                return self.out.pick([f"{o}[{k}][0] {op} {value}", f"{o}[{k}].append({value})",
                                      f"{o}[{k}][-1] {op} {value}", f"{o}.append([{value}])",
                                      f"{o}[1] = [{value}, 0.3]"])
            case "mixed":
                k = self.out.pick(["0", "1", "-1"])
                return self.out.pick([f"{o}.v {op} {value}", f"{o}.p[{k}][{part}] {op} {value}",
                                      f"{o}.p[{k}] = {o}.p[0] * {value}",
                                      f"{o}.p.append({o}.p[-1] * {value})",
                                      f"{o}.t[1][0] {op} {value}", f"{o}.t[1].append({value})",
                                      f"{o}.t = ({value}, [{value}, 0.3])"])
            case "tuple":
                return f"{o}[1][{part}] {op} {value}"
        v, p, t = (self.member(o, name) for name in "vpt")
        choices = [f"{v} {op} {value}", f"{p}[{part}] {op} {value}", f"{p}[{part}] {op} {value}",
                   f"{p} = {p} * {value}", f"{t}.append({value})", f"{t}[0] = {value}"]
        if self.kind == "nested":
            choices += [f"{o}.inner.v {op} {value}"] * 2
        return self.out.pick(choices)

    def total(self, o: str) -> str:
        match self.kind:
            case "array":
                return f"np.mean({o} ** 2)"
            case "list":
                return f"sum([v ** 2 for v in {o}])"
            case "lists":
                return f"sum([sum([v ** 2 for v in w]) for w in {o}])"
            case "mixed":
                return (f"{o}.v * sum([np.mean(w * w) for w in {o}.p]) "
                        f"+ {o}.t[0] * sum({o}.t[1])")
            case "tuple":
                return f"{o}[0] * np.mean({o}[1])"
        v, p, t = (self.member(o, name) for name in "vpt")
        more = f" + {o}.inner.v ** 2" if self.kind == "nested" else ""
        return f"{v} * np.mean({p}) + sum([v ** 2 for v in {t}]){more}"


@idiom("items")
def items_written_into(out: Wide, scope: Scope, loop: str | None) -> None:
    kind = out.pick(["object", "object", "dict", "nested", "array", "list", "tuple", "lists",
                     "mixed"])
    items = Items(out, scope, kind, out.fresh("xs"))
    _make(items)
    for _ in range(out.rng.randint(1, 3)):
        _pass_over(items)
    name, o = out.fresh("s"), out.fresh("o")
    out.emit(f"{name} = 0.0")
    out.emit(f"for {o} in {items.xs}:")
    out.emit(f"    {name} = np.tanh({name} * 0.5 + {items.total(o)})")
    scope.scalars.append(name)


@idiom("items")
def item_kept(out: Wide, scope: Scope, loop: str | None) -> None:
    """A name that holds the best, the last or some item after the loop that has chosen it."""
    items = Items(out, scope, out.pick(["object", "dict", "array", "list"]), out.fresh("xs"))
    _make(items)
    best, o, i = out.fresh("o"), out.fresh("o"), out.fresh("i")
    out.emit(f"{best} = {items.xs}[0]")
    out.emit(f"for {i}, {o} in enumerate({items.xs}):")
    out.emit(f"    if {out.pick([f'{i} % 2 == 1', f'{items.read(o, i)} > {items.read(best, i)}'])}:")
    out.emit(f"        {best} = {o}")
    if out.chance(0.15):  # refused: which item it is depends on run-time data
        out.emit("    " + items.write(out.pick([best, o]), i))
    elif out.chance(0.15):
        out.emit(items.write(out.pick([best, f"{items.xs}[0]"]), out.pick(scope.ints)))
    out.new(scope, f"np.tanh({items.total(best)} + {items.total(items.xs + '[0]')})")


@idiom("items")
def items_exchanged(out: Wide, scope: Scope, loop: str | None) -> None:
    """Items that change places, are replaced, copied, taken out and put back."""
    items = Items(out, scope, out.pick(["object", "dict", "array", "list", "tuple", "lists",
                                        "mixed"]), out.fresh("xs"))
    _make(items)
    xs, i, o = items.xs, out.fresh("i"), out.fresh("o")
    for line in out.pick([
        [f"for {i} in range(len({xs}) - 1):", f"    {xs}[{i}], {xs}[{i} + 1] = {xs}[{i} + 1], {xs}[{i}]",
         "    " + items.write(f"{xs}[{i}]", i)],
        [f"for {i} in range(len({xs})):", f"    {xs}[{i}] = {items.new(i)}",
         "    " + items.write(f"{xs}[{i}]", i)],
        [f"{xs}.reverse()", items.write(f"{xs}[0]", "0")],
        [f"{o} = {xs}.pop()", items.write(o, "1"), f"{xs}.insert(0, {o})"],
        [f"{o} = {xs}[-1]", f"{xs}.append({items.new('n')})", items.write(o, "1")],
        [f"for {i} in range(2):", f"    {o} = {xs}.pop(0)", "    " + items.write(o, i),
         f"    {xs}.append({o})"],
        [f"for {o} in reversed({xs}):", "    " + items.write(o, "1")],
        [f"{xs} = {xs} + [{items.new('2')}]", items.write(f"{xs}[-1]", "1"),
         items.write(f"{xs}[0]", "1")],
        [f"for {i}, ({o}, {o}b) in enumerate(zip({xs}, {xs}[1:])):", "    " + items.write(o, i),
         "    " + items.write(o + "b", i)],
    ]):
        out.emit(line)
    o = out.fresh("o")
    out.new(scope, f"np.tanh(sum([{items.total(o)} for {o} in {xs}]))")


def _make(items: Items) -> None:
    out, xs, i = items.out, items.xs, items.out.fresh("i")
    trips = out.pick(["range(n)", "range(n + 1)", "range(1, n + 2)"])
    if out.chance(0.5):
        out.emit(f"{xs} = [{items.new(i)} for {i} in {trips}]")
        return
    out.emit(f"{xs} = []")
    out.emit(f"for {i} in {trips}:")
    out.emit(f"    {xs}.append({items.new(i)})")


def _pass_over(items: Items) -> None:
    """A loop over the items, one of them that has a name, or one that is taken out."""
    out, xs = items.out, items.xs
    i, o = out.fresh("i"), out.fresh("o")
    match out.rng.randrange(6):
        case 0 | 1:
            out.emit(f"for {i}, {o} in enumerate({xs}):")
            _uses(items, o, i, True)
        case 2:
            out.emit(f"for {i} in range(len({xs})):")
            out.emit(f"    {o} = {xs}[{out.pick([i, f'({i} + 1) % len({xs})', '0'])}]")
            _uses(items, o, i, True)
        case 3:
            out.emit(f"for {i} in range(len({xs})):")
            _uses(items, f"{xs}[{out.pick([i, '-1', f'{i} - 1'])}]", i, True)
        case 4:
            out.emit(f"{o} = {xs}[{out.pick(['0', '-1'])}]")
            out.emit("if True:" if out.chance(0.2) else f"if {out.condition(items.scope)}:")
            _uses(items, o, out.pick(items.scope.ints), False)
        case 5:
            out.emit(f"if len({xs}) > 1:")
            out.emit(f"    {o} = {xs}.pop()")
            _uses(items, o, out.pick(items.scope.ints), False)
            if out.chance(0.5):
                out.emit(f"    {xs}.append({o})")


def _uses(items: Items, o: str, i: str, looping: bool) -> None:
    """What is done with one item: writes, mostly."""
    out = items.out
    out.depth += 1
    for _ in range(out.rng.randint(1, 3)):
        choice = out.rng.random()
        if choice < 0.55:
            out.emit(items.write(o, i))
        elif choice < 0.7:
            out.emit(f"if {out.pick([f'{i} % 2 == 0', f'{items.read(o, i)} > 0.2137'])}:")
            out.emit("    " + items.write(o, i))
        elif choice < 0.85:
            s = out.pick(items.scope.scalars)
            out.emit(f"{s} = np.tanh({s} + {items.read(o, i)})")
        elif choice < 0.93 and looping and out.depth < 4:
            j, q = out.fresh("j"), out.fresh("o")
            out.emit(f"for {j} in range(len({items.xs})):")
            out.emit(f"    {q} = {items.xs}[{j}]")
            _uses(items, q, j, looping)
        elif not looping:
            out.emit(f"if len({items.xs}) < 6:")
            out.emit(f"    {items.xs}.append({items.new(i)})")
        else:
            out.emit(items.write(f"{items.xs}[0]", i))
    out.depth -= 1
