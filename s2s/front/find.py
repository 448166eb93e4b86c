"""From a function object to the syntax tree of its definition, with positions.

The whole file is parsed (once per text), and the definition is the node at the code object's first line;
several lambdas on that line are told apart by the columns of their instructions, or, before Python 3.11,
by compiling each of them.  The text is compiled, too, to see that it still is the function's: a file may have
changed since it was imported.  What is found is kept per code object, so asking again is free.
"""

from __future__ import annotations

import ast
import functools
import os
import time
import types
from dataclasses import dataclass

import gast

from ..errors import Source, SourceError
from ..ir.codes import NAMELESS, fingerprint
from .consulted import Code, Defaults, consulted
from .imports import Imports
from .lines import all_codes_of, codes_of, inside, lines_of
from .plain import plain

REMEDY = "define it with `def` or `lambda` in a file or a notebook cell, or make it of its text: s2s.from_source(text, globals)"

CHANGED = ("import the module again (importlib.reload), for its file has changed since; or make the function of its text: "
           "s2s.from_source(text, globals)")
CARRIED = "pickle s2s.grad(f) rather than f, for it brings the text along; or make it of its text: s2s.from_source(text, globals)"
BEGINNING = time.time()  # a file last written before has been imported as it is


@dataclass(frozen=True, eq=False)
class Definition:
    """The syntax tree of one function; positions count from the top of its file."""

    node: gast.FunctionDef | gast.Lambda
    source: Source

    @property
    def body(self) -> list:
        """The statements; a lambda's is one `return`."""
        if isinstance(self.node, gast.Lambda):
            return lambda_body(self.node)
        return self.node.body


_found: dict[tuple[str, types.CodeType], Definition] = {}
_lambda_bodies: dict[int, tuple[gast.Lambda, list]] = {}


def lambda_body(node: gast.Lambda) -> list:
    """A lambda's body as statements, the same list each time."""
    kept = _lambda_bodies.get(id(node))
    if kept is None:
        kept = _lambda_bodies[id(node)] = (node, [gast.copy_location(gast.Return(node.body), node.body)])
    return kept[1]


def definition_of(function: types.FunctionType) -> Definition:
    """The definition of a plain Python function; SourceError where its text cannot be found."""
    code = function.__code__
    consulted(Code(function), code)
    if function.__defaults__:
        consulted(Defaults(function), function.__defaults__)
    key = (code.co_filename, code)
    if key not in _found:
        _found[key] = _find(function.__qualname__, code, function)
    return _found[key]


def _find(name: str, code: types.CodeType, function: types.FunctionType) -> Definition:
    filename, lines = lines_of(code, function.__globals__)
    nowhere = SourceError(f"the source of {name} cannot be found (it says it is from {filename})", None,
                          CARRIED if filename == NAMELESS else REMEDY)
    if not lines:
        raise nowhere
    text = "".join(lines)
    try:
        _parse(text)
    except SyntaxError as error:
        raise SourceError(f"the source of {name} does not parse: {error}", None,
                          "reload the module that defines it") from None
    candidates = [node for node in _definitions_in(text).get(code.co_firstlineno, ()) if _looks_like(node, code)]
    if len(candidates) > 1:
        candidates = _by_columns(candidates, code) or _by_bytecode(candidates, code) or candidates
    if not candidates or not _says_what_runs(text, code, filename):
        candidates = _moved(text, code) or candidates
    if not candidates and filename == "<string>":  # another text's: `python -c` of 3.13 gives its own that name
        raise nowhere
    if not candidates:
        raise SourceError(f"line {code.co_firstlineno} of {filename} does not define {name}", None, CHANGED)
    node = candidates[0]
    first, last = _starts_at(node), node.end_lineno
    if first == code.co_firstlineno and not _says_what_runs(text, code, filename):
        raise SourceError(f"line {code.co_firstlineno} of {filename} defines another {name} than this one", None,
                          CHANGED)
    source = Source(filename, first, "".join(lines[first - 1:last]), name.rpartition(".")[2], node.lineno)
    if isinstance(node, ast.AsyncFunctionDef):
        raise SourceError(f"{name} is a coroutine", source.begins, "use a plain `def`")
    tree = Imports(function.__globals__.get("__package__")).visit(gast.ast_to_gast(node))
    return Definition(plain(tree), source)


@functools.lru_cache(maxsize=32)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@functools.lru_cache(maxsize=32)
def _definitions_in(text: str) -> dict[int, list[ast.AST]]:
    """The functions that `text` defines, by the line in which they start: a file of tests has hundreds."""
    found: dict[int, list[ast.AST]] = {}
    for node in ast.walk(_parse(text)):
        line = _starts_at(node)
        if line is not None:
            found.setdefault(line, []).append(node)
    return found


def _starts_at(node: ast.AST) -> int | None:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return min([node.lineno, *(d.lineno for d in node.decorator_list)])
        case ast.Lambda():
            return node.lineno
    return None


def _argument_names(node) -> tuple[str, ...]:
    a = node.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return (*names, *(x.arg for x in (a.vararg, a.kwarg) if x is not None))


def _looks_like(node: ast.AST, code: types.CodeType) -> bool:
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    arguments = _argument_names(node)
    return name == code.co_name and arguments == code.co_varnames[:len(arguments)]


def _by_columns(candidates: list, code: types.CodeType) -> list:
    """The candidates whose body spans what the instructions span (Python 3.11 and later)."""
    if not hasattr(code, "co_positions"):
        return []
    spans = {span for span in code.co_positions() if None not in span and (span[0], span[2]) != (span[1], span[3])}
    return [node for node in candidates if isinstance(node, ast.Lambda)
            and (node.body.lineno, node.body.end_lineno, node.body.col_offset, node.body.end_col_offset) in spans
            and all(_within(node, span) for span in spans)]


def _within(node: ast.AST, span: tuple) -> bool:
    line, end_line, column, end_column = span
    return ((node.lineno, node.col_offset) <= (line, column)
            and (end_line, end_column) <= (node.end_lineno, node.end_col_offset))


def _by_bytecode(candidates: list, code: types.CodeType) -> list:
    """The candidates that compile to the same instructions, constants and names."""

    def compiled(node) -> types.CodeType | None:
        outer = ast.parse(f"def outer({', '.join(code.co_freevars)}): return 0")
        outer.body[0].body[0].value = node
        (inner,) = [c for c in compile(outer, "<s2s>", "exec").co_consts if isinstance(c, types.CodeType)]
        return next((c for c in inner.co_consts if isinstance(c, types.CodeType)), None)

    return [node for node in candidates if isinstance(node, ast.Lambda)
            and fingerprint(compiled(node)) == fingerprint(code)]


# ---------------------------------------------------------------------------------- is it still the same text?


def _says_what_runs(text: str, code: types.CodeType, filename: str) -> bool:
    """Whether `text` compiles to `code`, or to what tools that rewrite modules while they import them make of it."""
    candidates = codes_of(text, code)
    if not candidates or any(fingerprint(c) == fingerprint(code) for c in candidates):
        return True
    try:
        changed = os.stat(filename).st_mtime > BEGINNING
    except OSError:  # no file: a cell of a notebook
        changed = False
    return not changed and any(_words(c) <= _words(code) for c in candidates)


def _moved(text: str, code: types.CodeType) -> list:
    """The definition of this very code elsewhere in the text, for what stands above it may have changed; the nearest."""
    lines = {line for (name, line), codes in all_codes_of(text).items() if name == code.co_name != "<lambda>"
             and any(fingerprint(c) == fingerprint(code) for c in codes)}
    nodes = [node for line in lines for node in _definitions_in(text).get(line, ()) if _looks_like(node, code)]
    return sorted(nodes, key=lambda node: abs(_starts_at(node) - code.co_firstlineno))


def _words(code: types.CodeType) -> set:
    """The names and constants of `code`: whoever adds checks to a function leaves these in."""
    own = {repr(k) for k in code.co_consts if not isinstance(k, types.CodeType)}
    return own.union(code.co_names, code.co_varnames, *map(_words, inside(code)))
