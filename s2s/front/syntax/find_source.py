"""Find the syntax tree of a function object's definition, with positions.

The whole file is parsed (once per text), and the definition is the node at the code object's first
line that compiles to the same code (code_match.py): there may be several lambdas on a line, and a
file may have changed since it was imported.  Results are cached per code object.
"""

from __future__ import annotations

import ast
import functools
import types
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import gast

from ...errors import Source, SourceError
from ...ir.code_objects import NAMELESS
from .code_match import codes_of_lambda, distance, flags_of, is_rewritten
from .dependencies import Code, Defaults, Imported, is_current, note_dependency
from .desugar import desugar
from .imports import Imports
from .outer_variables import outer_as_attributes
from .private_names import mangled
from .source_lines import all_codes_of, lines_of

REMEDY = ("define it with `def` or `lambda` in a file or a notebook cell, or make it of its text: "
          "s2s.from_source(text, globals)")

CHANGED = ("import the module again (importlib.reload), for its file has changed since; "
           "or make the function of its text: s2s.from_source(text, globals)")
CARRIED = ("pickle s2s.grad(f) rather than f, for it brings the text along; "
           "or make it of its text: s2s.from_source(text, globals)")
APART = "write each lambda in a line of its own, or use `def`"


@dataclass(frozen=True, eq=False)
class Definition:
    """The syntax tree of one function; positions count from the top of its file."""

    node: gast.FunctionDef | gast.Lambda
    source: Source
    imports: dict[Imported, types.ModuleType]  # the modules that it imports

    @property
    def body(self) -> list:
        """The statements; a lambda's is one `return`."""
        if isinstance(self.node, gast.Lambda):
            return lambda_body(self.node)
        return self.node.body


# by file and by the package to which relative imports refer; gone with the code
_found: WeakKeyDictionary[types.CodeType, dict[tuple[str, str | None], Definition]]
_found = WeakKeyDictionary()
_lambda_bodies: WeakKeyDictionary[gast.Lambda, list] = WeakKeyDictionary()


def lambda_body(node: gast.Lambda) -> list:
    """A lambda's body as statements; cached."""
    if node not in _lambda_bodies:
        _lambda_bodies[node] = [gast.copy_location(gast.Return(node.body), node.body)]
    return _lambda_bodies[node]


def definition_of(function: types.FunctionType) -> Definition:
    """The definition of a plain Python function; SourceError if its text cannot be found."""
    code = function.__code__
    note_dependency(Code(function), code)
    if function.__defaults__:
        note_dependency(Defaults(function), function.__defaults__)
    key = (code.co_filename, function.__globals__.get("__package__"))
    kept = _found.setdefault(code, {})
    if key not in kept or not is_current(kept[key].imports):
        kept[key] = _find(function.__qualname__, code, function)
    for getter, module in kept[key].imports.items():
        note_dependency(getter, module)
    return kept[key]


def _find(name: str, code: types.CodeType, function: types.FunctionType) -> Definition:
    filename, lines = lines_of(code, function.__globals__)
    nowhere = SourceError(f"the source of {name} cannot be found (it says it is from {filename})",
                          None, CARRIED if filename == NAMELESS else REMEDY)
    if not lines:
        raise nowhere
    text = "".join(lines)
    try:
        _parse(text)
    except SyntaxError as error:
        raise SourceError(f"the source of {name} does not parse: {error}", None,
                          "reload the module that defines it") from None
    here = _named(text, code.co_name, code.co_firstlineno)
    found = (_same(text, here, code, apart=False) or _same(text, here, code, apart=True)
             or _moved(text, code, apart=False) or _moved(text, code, apart=True)
             or _rewritten(text, here, code, filename))
    # the name belongs to another text: `python -c` of 3.13 gives its own that name
    if not found and not here and filename == "<string>":
        raise nowhere
    if not found:
        does = f"defines another {name} than this one" if here else f"does not define {name}"
        raise SourceError(f"line {code.co_firstlineno} of {filename} {does}", None, CHANGED)
    if len({ast.dump(candidate.node) for candidate in found}) > 1:
        raise SourceError(
            f"line {code.co_firstlineno} of {filename} defines {len(found)} functions that {name} "
            "may be, for a tool has rewritten its code", None, APART)
    node = found[0].node
    first, last = _starts_at(node), node.end_lineno
    source = Source(filename, first, "".join(lines[first - 1:last]),
                    name.rpartition(".")[2], node.lineno)
    if isinstance(node, ast.AsyncFunctionDef):
        raise SourceError(f"{name} is a coroutine", source.begins, "use a plain `def`")
    imports = Imports(function.__globals__.get("__package__"))
    tree = mangled(gast.ast_to_gast(node), code)
    made = outer_as_attributes(desugar(imports.visit(tree)))
    return Definition(made, source, imports.found)


@functools.lru_cache(maxsize=32)
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@functools.lru_cache(maxsize=32)
def _definitions_in(text: str) -> dict[int, list[ast.AST]]:
    """The functions defined in `text`, by their first line: a file of tests has hundreds."""
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


@dataclass(frozen=True)
class _Candidate:
    """A candidate definition of a function, given by its number among the `count` of its name and
    line.
    """

    node: ast.AST
    name: str
    line: int
    number: int
    count: int

    def codes(self, text: str, flags: int, apart: bool) -> list[types.CodeType]:
        """Its code objects, with `text` compiled as a whole or statement by statement."""
        if self.count > 1:  # a line has several lambdas, but never two `def`s
            return codes_of_lambda(text, self.line, self.number, flags, apart)
        return all_codes_of(text, flags, apart).get((self.name, self.line), [])


def _named(text: str, name: str, line: int) -> list[_Candidate]:
    """The definitions in `text` that start in `line` and have this name; or whose `def` stands
    there, for a tool may have taken the decorators away.
    """
    nodes = [
        node for node in _definitions_in(text).get(line, ())
        if getattr(node, "name", "<lambda>") == name
    ]
    if not nodes:
        nodes = [node for several in _definitions_in(text).values() for node in several
                 if node.lineno == line and getattr(node, "name", None) == name]
    return [_Candidate(node, name, _starts_at(node), number, len(nodes))
            for number, node in enumerate(nodes)]


def _same(text: str, candidates: list[_Candidate], code: types.CodeType,
          apart: bool) -> list[_Candidate]:
    """The candidate with exactly this code: with equal positions, or else any."""
    found = [(d, candidate) for candidate in candidates
             for c in candidate.codes(text, flags_of(code), apart)
             if (d := distance(c, code)) is not None]
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])][:1]


def _moved(text: str, code: types.CodeType, apart: bool) -> list[_Candidate]:
    """The nearest definition with exactly this code elsewhere in the text, whose lines may have
    shifted.
    """
    lines = {
        line
        for (name, line), codes in all_codes_of(text, flags_of(code), apart).items()
        if name == code.co_name and any(distance(c, code) is not None for c in codes)
    }
    nearest = sorted(lines, key=lambda line: abs(line - code.co_firstlineno))
    return _same(text, [each for line in nearest for each in _named(text, code.co_name, line)],
                 code, apart)


def _rewritten(text: str, candidates: list[_Candidate], code: types.CodeType,
               filename: str) -> list[_Candidate]:
    """The candidates from which an import hook that rewrites modules may have made `code`."""
    return [
        each for each in candidates if any(
            is_rewritten(code, c, each.node, filename)
            for c in each.codes(text, flags_of(code), apart=False))
    ]
