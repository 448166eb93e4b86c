"""Fingerprints of objects outside a program, equal in another process if and only if generated code
is the same.

Of functions that is their code, where it stands and the text it stands in; of what libraries
define, its name; of data, what code is specialised on.  An object of any other kind, such as one of
a class of the user's, has no such words: NoFingerprint.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import numpy as np

from ..front.syntax.captures import is_data, type_of_data
from ..front.syntax.dependencies import LIBRARIES
from ..front.syntax.source_lines import lines_of
from ..ir.code_objects import NAMELESS
from ..ir.treedef import Form
from ..ir.types import Array, Extent, Generator, Scalar, Static, Tuple, Type
from .addresses import is_transformed

PLAIN = (type(None), bool, int, float, complex, str, bytes)
CONTAINERS = (tuple, list, dict, frozenset)
OWN = __name__.partition(".")[0]
MOST = 2_000  # the most members to fingerprint one by one


class NoFingerprint(Exception):
    """Raised for an object that has no fingerprint."""


def fingerprint_of(x) -> object:
    """Return the fingerprint of `x`, an object known when code is generated: tuples, strings and
    numbers.
    """
    kind = type(x)
    if kind in PLAIN:
        return kind.__name__, repr(x)
    if kind in CONTAINERS:
        if len(x) > MOST:
            raise NoFingerprint(kind.__name__)
        members = ((z for item in x.items() for z in item) if kind is dict else sorted(x, key=repr)
                   if kind is frozenset else x)
        return kind.__name__, *map(fingerprint_of, members)
    if kind is CodeType:
        return "code", code_fingerprint(x, {})
    if kind is FunctionType:
        if x.__dict__.keys() - {"__wrapped__"} and not (x.__module__ or "").startswith(OWN):
            raise NoFingerprint("a function with attributes")
        return ("function", x.__module__, x.__qualname__,
                code_fingerprint(x.__code__, x.__globals__), fingerprint_of(x.__defaults__),
                fingerprint_of(x.__kwdefaults__))
    if kind is ModuleType and sys.modules.get(x.__name__) is x:
        return "module", x.__name__
    if is_transformed(x):
        return ("transformed", x.kind,
                fingerprint_of({name: option for name, option in x.options.items()}),
                fingerprint_of(x.inner))
    if isinstance(x, np.dtype) and x.isbuiltin == 1:
        return "dtype", str(x)
    if isinstance(x, int) and kind.__module__.partition(".")[0] == OWN:
        return kind.__qualname__, int(x)
    return "library", *name_fingerprint(x)


def name_fingerprint(x) -> tuple[str, str]:
    """Return the module and the name of what a library, or Python, defines."""
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    module = getattr(x, "__module__", None) or ("numpy" if isinstance(x, np.ufunc) else None)
    if (isinstance(name, str) and isinstance(module, str)
            and module.partition(".")[0] in (*LIBRARIES, "builtins", OWN)):
        if isinstance(x, (type, np.ufunc, BuiltinFunctionType)) or callable(x):
            for place in (module, "numpy", "scipy.special"):
                if getattr(sys.modules.get(place), name, None) is x:
                    return place, name
    raise NoFingerprint(type(x).__name__)


def container_fingerprint(x, left: list[int] | None = None) -> object:
    """Return the fingerprint of a list or dict outside, of whose data only the kind matters: values
    that decide anything are consulted by themselves.
    """
    left = [MOST] if left is None else left
    left[0] -= 1
    if left[0] < 0:
        raise NoFingerprint("many members")
    if is_data(x):
        return "data", type_fingerprint(type_of_data(x, ""))
    if type(x) in (list, tuple):
        return type(x).__name__, *(container_fingerprint(member, left) for member in x)
    if type(x) is dict:
        return "dict", *((fingerprint_of(key), container_fingerprint(member, left))
                         for key, member in x.items())
    return fingerprint_of(x)


def type_fingerprint(type: Type) -> object:
    """Return the fingerprint of the type of an argument, or of captured data."""
    match type:
        case Array(dtype, dims):
            return "array", dtype, *((d.symbol, d.offset, d.symbol_may_be_one, d.symbol_is_long)
                                     if isinstance(d, Extent) else d for d in dims)
        case Scalar(dtype, weak):
            return "scalar", dtype, weak
        case Tuple(items, form):
            return "tuple", form and form_fingerprint(form), *map(type_fingerprint, items)
        case Static(value):
            return "static", fingerprint_of(value)
        case Generator(legacy):
            return "generator", legacy
    raise NoFingerprint(str(type))


def kind_fingerprint(content) -> object:
    """Return the fingerprint of what `consulted.Kind` reads."""
    if content is None or type(content) in (bool, str):
        return content
    if type(content) is tuple:
        return tuple(map(kind_fingerprint, content))
    if isinstance(content, Form):
        return form_fingerprint(content)
    return type_fingerprint(content)


def form_fingerprint(form: Form) -> tuple:
    if form.cls not in CONTAINERS:
        raise NoFingerprint(form.cls.__name__)
    return form.kind, fingerprint_of(form.keys), form.cls.__name__


def code_fingerprint(code: CodeType, globals: dict) -> str:
    """Return the fingerprint of a function with these globals: its code, location and text, which
    says more than the code where Python leaves things out.
    """
    name, lines = lines_of(code, globals)
    if not lines and name == NAMELESS:
        raise NoFingerprint("code without its text")
    return _code_fingerprint(name, "".join(lines[code.co_firstlineno - 1:last_line(code)]), code)


@functools.lru_cache(maxsize=4096)
def _code_fingerprint(filename: str, text: str, code: CodeType) -> str:
    try:
        # later versions of the format record shared references
        content = marshal.dumps(code, 2)
    except ValueError:
        raise NoFingerprint("code") from None
    return hashlib.sha256(content + text.encode()).hexdigest()


def last_line(code: CodeType) -> int:
    """Return the last line that has instructions."""
    inner = [last_line(each) for each in code.co_consts if isinstance(each, CodeType)]
    return max([code.co_firstlineno, *(line for *_, line in code.co_lines() if line is not None),
                *inner])
