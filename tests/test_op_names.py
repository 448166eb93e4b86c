"""Tables of op names outside `s2s/ops` become fewer: what is true of an op stands in its record.

A table is a set, tuple, list, the keys or the values of a dict, or the alternatives of a `case`, in
which two strings or more name ops.  Ops with blocks (`for`, `while`, `if`), constants and tuples
are the language of the IR and are not counted; nor is what tests/op_names.txt calls a word: a
string that means something else in that file, such as a method of lists or the name of a function
of SciPy.

Considered: to count comparisons, `op.name == "sum"`, too.  Most recognise the shape of a program,
which is what a pass is for; and a property spelled as a chain of comparisons would be seen in
review.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import s2s  # noqa: F401  it fills RECORDS
from s2s.ops.core.record import RECORDS

ROOT = Path(__file__).parent.parent
LIST = ROOT / "tests" / "op_names.txt"
OPS = {*RECORDS, "math.cbrt", "math.exp2"}  # which math has from Python 3.11 on
LANGUAGE = {
    name for name, record in RECORDS.items() if record.rebuild is not None or record.structural
}


def strings(node: ast.AST) -> list[list[str]]:
    """The strings of a literal, or of alternatives; of a dict, those of its keys and those of its
    values.
    """
    match node:
        case ast.Set(elements) | ast.Tuple(elements) | ast.List(elements):
            several = [elements]
        case ast.Dict(keys, values):
            several = [keys, values]
        case ast.MatchOr(alternatives):
            several = [[x.value for x in alternatives if isinstance(x, ast.MatchValue)]]
        case _:
            return []
    return [
        [x.value for x in elements if isinstance(x, ast.Constant) and isinstance(x.value, str)]
        for elements in several
    ]


def tables(tree: ast.Module, words: set[str]) -> Iterator[tuple[int, list[str], list[str]]]:
    """The tables of a module: the line, the names of ops, and the names that are neither of ops nor
    `words`.
    """
    for node in ast.walk(tree):
        for several in strings(node):
            names = [
                x
                for x in several
                if x not in words and x not in LANGUAGE and x.replace(".", "").isidentifier()
            ]
            ops = [x for x in names if x in OPS]
            if len(ops) >= 2:
                yield node.lineno, ops, [x for x in names if x not in OPS]


@functools.cache
def recorded() -> tuple[dict[str, int], dict[str, set[str]]]:
    """What tests/op_names.txt says: how many names a file's tables have, and which strings are
    words there.
    """
    counts, words = {}, {}
    for line in LIST.read_text().splitlines():
        match line.partition("#")[0].split():
            case [count, path] if count.isdigit():
                counts[path] = int(count)
            case [path, *several]:
                words[path] = set(several)
    return counts, words


@functools.cache
def found() -> dict[str, list[tuple[int, list[str], list[str]]]]:
    """The tables of each file outside s2s/ops that has some."""
    result = {}
    for path in sorted((ROOT / "s2s").rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("s2s/ops/"):
            several = list(tables(ast.parse(path.read_text()), recorded()[1].get(name, set())))
            if several:
                result[name] = several
    return result


def test_tables_of_op_names_become_fewer():
    counts = {path: sum(len(ops) for _, ops, _ in several) for path, several in found().items()}
    wrong = []
    for path in sorted({*counts, *recorded()[0]}):
        now, then = counts.get(path, 0), recorded()[0].get(path, 0)
        if now > then:
            lines = ", ".join(f"{line}: {' '.join(ops)}" for line, ops, _ in found()[path])
            wrong.append(
                f"{path} has {now} names of ops in tables, {then} are recorded: state what the "
                f"table says in each op's record, as a field of it ({lines})"
            )
        elif now < then:
            wrong.append(
                f"{path} has only {now} names of ops in tables: record it in tests/op_names.txt, "
                f"which says {then}"
            )
    assert not wrong, "\n".join(wrong)


def test_tables_name_only_ops():
    wrong = [
        f"{path}:{line}: no op is called {' or '.join(others)}"
        for path, several in found().items()
        for line, _, others in several
        if others
    ]
    assert not wrong, "\n".join(wrong)


def test_words_are_needed():
    """A word that is no longer in its file would hide an op of that name there."""
    for path, words in recorded()[1].items():
        there = {
            x
            for node in ast.walk(ast.parse((ROOT / path).read_text()))
            for several in strings(node)
            for x in several
        }
        assert words <= there, f"tests/op_names.txt: {path} has no {' or '.join(words - there)}"


def test_ratchet_sees_tables():
    tree = ast.parse('a = {"sin", "cos"}\nb = frozenset(["sum", "prod"])\n'
                     'c = ("sin", "float64")\nd = {"sin": 1, "csc": 2, "cos": "+"}\n'
                     'match x:\n    case "exp" | "log": pass\ne = ("for", "while", "sin")\n')
    assert [*tables(tree, set())] == [
        (1, ["sin", "cos"], []),
        (4, ["sin", "cos"], ["csc"]),
        (2, ["sum", "prod"], []),
        (6, ["exp", "log"], []),
    ]
    assert [*tables(tree, {"sin", "csc"})] == [(2, ["sum", "prod"], []), (6, ["exp", "log"], [])]
