"""Parse printed IR: types in annotations, and whole functions from text.

The text is registered with `linecache`, so errors and tracebacks show it.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import types
from collections.abc import Callable

import numpy as np

from ...errors import SourceError, UnsupportedError
from ...ir.graph import Function
from ...ir.types import (
    BOOL,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    RANDOM_STATE,
    UNDEFINED,
    Array,
    Extent,
    HashSet,
    HashTable,
    List,
    Scalar,
    Static,
    Tape,
    Tuple,
    Type,
    Unknown,
)
from .build import build

_PYTHON = {"float": FLOAT, "int": INT, "bool": BOOL, "complex": Scalar("complex128", weak=True),
           "None": NONE, "undefined": UNDEFINED, "generator": GENERATOR,
           "legacy_generator": RANDOM_STATE}
_LISTS = {"tape of": Tape, "list of": List, "hash table of": HashTable,
          "set of": HashSet}
_TOKEN = re.compile(rf"\s*({'|'.join(_LISTS)}|static|"
                    r"\?\[\*[\w.|]+\]|[\w.]+(?:[+-]\d+)?|[\[\](),?])")


def build_from_text(text: str, globals: dict | None = None, filename: str = "<s2s>") -> Function:
    """The IR of the last function defined in `text`, for the types of its annotations."""
    function = load_text(text, globals, filename)
    return build(function, annotated_types(function))


def load_text(text: str, globals: dict | None = None, filename: str = "<s2s>") -> Callable:
    """The last plain function defined in `text`, with `globals` as its globals."""
    function = from_text(text, {"np": np, **(globals or {}), "__name__": "s2s_text"}, filename)
    if not isinstance(function, types.FunctionType):
        raise SourceError(f"{function!r} is not a plain function", None, "leave decorators out")
    return function


def from_text(text: str, globals: dict, filename: str) -> Callable:
    """The last function at the top level of `text`: by `def`, decorated, or assigned.

    The text is run with `globals` as its module, as `exec` does, and what it defines is in there.
    """
    try:
        tree = ast.parse(text, filename)
    except SyntaxError as error:
        raise SourceError(f"this text is not Python: {error}", None,
                          "pass the text of a module") from None
    filename = _unused(filename, text)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec", dont_inherit=True), globals)
    for name in reversed([name for node in tree.body for name in _names_bound(node)]):
        content = globals.get(name)
        if callable(content) and not isinstance(content, type):
            return content
    raise SourceError("this text defines no function", None,
                      "define one with `def` at its top level")


def _names_bound(node: ast.stmt) -> list[str]:
    """The names that a statement of a module binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [
                name.id for target in targets for name in ast.walk(target)
                if isinstance(name, ast.Name)
            ]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


def _unused(filename: str, text: str) -> str:
    """`filename`, numbered if another text already has that name."""
    stem, k = filename, 0
    while filename in linecache.cache and "".join(linecache.cache[filename][2]) != text:
        k += 1
        filename = f"{stem[:-1]} {k}>" if stem.endswith(">") else f"{stem} {k}"
    return filename


def annotated_types(function: Callable) -> list[Type]:
    """The types in the annotations of a function's parameters: `"float64[n, 3]"`, `float`; Unknown
    without an annotation.
    """
    signature = getattr(function, "signature", None) or inspect.signature(function)
    return [_annotated(p) for p in signature.parameters.values()]


def _annotated(p: inspect.Parameter) -> Type:
    if p.annotation is p.empty:
        return Unknown(p.name)
    if isinstance(p.annotation, str):
        return parse_type(p.annotation, p.name)
    if isinstance(p.annotation, type) and p.annotation.__name__ in _PYTHON:
        return _PYTHON[p.annotation.__name__]
    if isinstance(p.annotation, type) and issubclass(p.annotation, np.generic):
        return Scalar(np.dtype(p.annotation).name)
    return Unknown(p.name)


def parse_type(text: str, name: str = "x") -> Type:
    """The inverse of `str` of a type; an extent in it counts as a length other than 1."""
    tokens = [match.group(1) for match in _TOKEN.finditer(text)]
    if "".join(tokens).replace(" ", "") != text.replace(" ", ""):
        raise UnsupportedError(f"the type {text!r}", None, 'write "float64[n, 3]", for example')
    type = _parse(tokens, name, text)
    if tokens:
        raise UnsupportedError(f"the type {text!r}", None, 'write "float64[n, 3]", for example')
    return type


def _parse(tokens: list[str], name: str, text: str) -> Type:
    if not tokens:
        raise UnsupportedError(f"the type {text!r}", None, 'write "float64[n, 3]", for example')
    head = tokens.pop(0)
    if head == "?":
        return Unknown(name)
    if head.startswith("?["):
        return Unknown(head[3:-1])
    if head in _LISTS:
        return _LISTS[head](_parse(tokens, name, text))
    if head == "static":
        return NONE if tokens and tokens.pop(0) == "None" else Static(text.removeprefix("static "))
    if head == "(":
        items = []
        while tokens and tokens[0] != ")":
            items.append(_parse(tokens, f"{name}.{len(items)}", text))
            if tokens and tokens[0] == ",":
                tokens.pop(0)
        _expect(tokens, ")", text)
        return Tuple(tuple(items))
    if head in _PYTHON and head != "bool":  # NumPy's own name for it
        return _PYTHON[head]
    try:
        dtype = np.dtype(head).name
    except TypeError:
        raise UnsupportedError(f"the type {text!r}", None,
                               'write "float64[n, 3]", for example') from None
    if not tokens or tokens[0] != "[":
        return Scalar(dtype)
    tokens.pop(0)
    dims = []
    while tokens and tokens[0] != "]":
        dims.append(_extent(tokens.pop(0), text))
        if tokens and tokens[0] == ",":
            tokens.pop(0)
    _expect(tokens, "]", text)
    return Array(dtype, tuple(dims))


def _extent(token: str, text: str):
    if token.isdecimal():
        return int(token)
    match = re.fullmatch(r"([\w.]+?)([+-]\d+)?", token)
    if match is None:
        raise UnsupportedError(f"the extent {token!r} in the type {text!r}", None,
                               "write a name or a number")
    return Extent(match.group(1), int(match.group(2) or 0), False)


def _expect(tokens: list[str], token: str, text: str) -> None:
    if not tokens or tokens.pop(0) != token:
        raise UnsupportedError(f"the type {text!r}", None, f"close it with {token}")
