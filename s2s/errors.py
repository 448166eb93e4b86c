"""Errors with the user's own line, a caret and a remedy.

Everything that s2s does not understand ends here, while code is being generated.  The lowest module
of the package: it knows nothing but text.
"""

from __future__ import annotations

import functools
import os
import re
import sysconfig
from dataclasses import dataclass, field, replace

ERRORS = ("divide", "over", "under", "invalid")  # of floating-point numbers, in NumPy's words


@dataclass(frozen=True)
class Source:
    """The text of one user function, and its location."""

    filename: str
    first_line: int  # number, in the file, of the first line of `text`
    text: str = field(repr=False)  # dedented
    name: str = "<function>"
    # number, in the file, of the line with `def`, below the decorators; 0: the first line
    head: int = 0
    # the NumPy floating-point errors that it ignores somewhere
    silent: set[str] = field(default_factory=set, repr=False, compare=False)

    @property
    def begins(self) -> Line:
        """The place where the function begins."""
        return Line(self, self.head or self.first_line)

    @property
    def place(self) -> str:
        """The location of the function, for a docstring: " (model.py, line 12)"."""
        # a synthetic file of Jupyter's, named after the hash of a cell
        if "ipykernel" in self.filename:
            return f" (line {self.begins.number} of its cell)"
        return f" ({self.filename.rsplit('/', 1)[-1]}, line {self.begins.number})"

    def line(self, number: int) -> str:
        """The text of line `number` of the file, without its indentation."""
        lines = lines_of(self.text)
        index = number - self.first_line
        return lines[index].strip() if 0 <= index < len(lines) else ""


@functools.lru_cache(64)
def lines_of(text: str) -> list[str]:
    """Split a function's text into lines, cached because they are read one by one."""
    return text.splitlines()


@dataclass(frozen=True)
class Line:
    """A place in the user's program, and the direction in which generated code runs through it."""

    source: Source = field(repr=False)
    number: int  # in the file, from 1
    column: int = 0  # in the dedented text, from 0
    end_column: int | None = None
    backwards: bool = False  # an adjoint statement of this line
    again: bool = False  # which only repeats what the forward sweep has done
    tangent: bool = field(default=False, compare=False)  # the tangent of what this line computes
    # a slope that may be infinite where what this line computes is finite
    steep: bool = field(default=False, compare=False)
    # whether the program ignores warnings about complex numbers that become real here
    casts_quietly: bool = field(default=False, compare=False)
    # a slope that is finite there, but NumPy may warn about what it is computed from
    overflows: bool = field(default=False, compare=False)

    @property
    def text(self) -> str:
        return self.source.line(self.number)

    def reversed(self, again: bool = False) -> Line:
        """The same place in the reverse sweep; `again`, for what is recomputed because it was not
        saved.
        """
        return replace(self, backwards=True, again=again)

    def of_tangent(self) -> Line:
        """The same place for a tangent."""
        return replace(self, tangent=True)

    def of_slope(self, steep: bool = True, overflows: bool = False) -> Line:
        """The same place for a slope that may be infinite, or about which NumPy may warn."""
        return replace(self, steep=self.steep or steep, overflows=self.overflows or overflows)

    def show(self) -> str:
        """Return two lines: the user's text and a caret under the expression."""
        lines = lines_of(self.source.text)
        index = self.number - self.source.first_line
        if not 0 <= index < len(lines):
            return ""
        raw = lines[index]
        shift = len(raw) - len(raw.lstrip())
        start = max(self.column - shift, 0)
        text = raw.strip()
        end = len(text) if self.end_column is None else max(self.end_column - shift, start + 1)
        return f"    {text}\n    {' ' * start}{'^' * max(min(end, len(text)) - start, 1)}"


class S2SError(Exception):
    """A program that s2s refuses: the message says where, what, and what to write instead.

    `parameters` are the positions of the arguments that decide whether it is refused, and `flags`
    the places of such captured values: those that the conditions around the line are computed
    from, or the value that must be known.  `lengths` are the positions of the arguments of which
    lengths must be known, `extent` the length that asks for it.  `unrolled` are the functions whose
    calls of themselves may be understood if each is inlined.  `carriers` stand for the names
    carried by loops, and for the lines that read items of lists, which could be read in a way that
    knows what shares memory (front/control/one_of.py, front/domain/item_places.py).
    """

    conditions: tuple = ()
    parameters: tuple[int, ...] = ()
    flags: tuple = ()
    carriers: frozenset = frozenset()
    extent: object = None
    lengths: tuple[int, ...] = ()
    unrolled: frozenset = frozenset()

    def __init__(self, message: str, line: Line | None = None, remedy: str = ""):
        self.message, self.line, self.remedy = (without_addresses(message), line,
                                                without_addresses(remedy))
        super().__init__(self.message)

    def __str__(self) -> str:
        parts = []
        if self.line is not None:
            parts.append(f'{self.line.source.filename}, line {self.line.number}, in '
                         f'{self.line.source.name}')
            shown = self.line.show()
            if shown:
                parts.append(shown)
        parts.append(self.message)
        if self.remedy:
            parts.append(f"Instead: {self.remedy}")
        return "\n".join(parts)


# ------------------------------------------------------------------------------ objects in messages

def _short(match: re.Match) -> str:
    name = match[1].rpartition("<locals>.")[2]
    return "a lambda" if name == "<lambda>" else name


_SHOWN = (  # how Python shows objects, and what a message says
    (re.compile(r"<(?:cyfunction|(?:async |built-in )?function|(?:built-in|bound) method) "
                r"((?:[^\s<>]|<locals>|<lambda>)+)"
                r"(?: of (?:[^<>]|<[^<>]*>)*)?(?: at 0x[0-9a-fA-F]+)?>"), _short),
    (re.compile(r"<class '([^']+)'>"), r"\1"),
    (re.compile(r"<gast\.(?:gast\.)?(\w+) object at 0x[0-9a-fA-F]+>"),
     lambda match: f"a {match[1].lower()} of the program"),
    (re.compile(r"<(?:[\w.]*\.)?(\w+) object at 0x[0-9a-fA-F]+>"),
     lambda match: f"an object of {match[1]}"),
    (re.compile(r" at 0x[0-9a-fA-F]+"), ""),
)


def without_addresses(text: str) -> str:
    """Replace in `text` the reprs of functions, classes, objects and syntax trees by names, without
    addresses.

    >>> without_addresses("no rule for <function cube at 0x7f21a3>")
    'no rule for cube'
    """
    if "<" not in text and " at 0x" not in text:
        return text
    for pattern, name in _SHOWN:
        text = pattern.sub(name, text)
    return text


# begins the message of a NotImplementedError by which a function said in Python refuses its
# arguments
REFUSED = "s2s: "


def library_refusal(error: BaseException, line: Line | None) -> CaseError | None:
    """Return the refusal in `error`, raised by a NumPy or SciPy function of s2s.library: "s2s:
    what: what instead".
    """
    if not isinstance(error, NotImplementedError) or not str(error).startswith(REFUSED):
        return None
    what, _, remedy = str(error).removeprefix(REFUSED).partition(": ")
    return CaseError(what, line, remedy)


# ------------------------------------------------------------------------- internal errors of s2s


class InternalError(S2SError):
    """An error in s2s itself during code generation.  It is also an instance of the class that was
    raised there.
    """


def note_line(error: BaseException | None, line: Line | None) -> None:
    """Record the place in the program at which code generation was when `error` was raised: the
    innermost known.
    """
    if (error is not None and line is not None and not isinstance(error, S2SError)
            and not hasattr(error, "line_of_program")):
        error.line_of_program = line


def fault(error: BaseException | None) -> InternalError | None:
    """Convert `error`, raised during code generation, to an InternalError: with the program's line,
    and what to do.

    None where it is none: a refusal, what a part of s2s tells another, or what code of the
    program's has raised, such as a property.  Its class is a subclass of the one that was raised,
    since what the program itself evaluates then, such as an operation on a constant, may raise as
    in Python, and whoever calls it may handle that.
    """
    if (not isinstance(error, Exception) or isinstance(error, S2SError)
            or type(error).__module__.partition(".")[0] in ("s2s", "numba")):
        return None
    if any(map(_is_of_program, _files(error))):
        return None
    cls = _fault_class(type(error))
    name = type(error).__name__
    return cls(f"s2s has failed here with {name}: {error}" if str(error)
               else f"s2s has failed here with {name}", getattr(error, "line_of_program", None),
               "write this line in another way, and please report the function: unless Python "
               "raises that, too, it is a fault of s2s")


@functools.cache
def _fault_class(raised: type) -> type:
    try:
        cls = type("InternalError", (InternalError, raised),
                   {"__module__": __name__, "__doc__": InternalError.__doc__})
        cls("", None, "")
    except TypeError:  # its constructor takes something else than a message
        return InternalError
    return cls


def _files(error: BaseException):
    place = error.__traceback__
    while place is not None:
        yield place.tb_frame.f_code.co_filename
        place = place.tb_next


_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_INSTALLED = tuple({os.path.abspath(path) + os.sep
                    for path in map(sysconfig.get_paths().get,
                                    ("stdlib", "platstdlib", "purelib", "platlib")) if path})


def _is_of_program(filename: str) -> bool:
    """Test whether a frame of this file runs user code: not s2s, Python or an installed package."""
    if filename.startswith(("<frozen", "<string", "<__array_function__", "<s2s", "<printed")):
        return False
    return not os.path.abspath(filename).startswith((_OWN, *_INSTALLED))


class SourceError(S2SError):
    """The source text of a function cannot be found."""


class UnsupportedError(S2SError):
    """A construct, function or argument that s2s does not support."""


class CaseError(UnsupportedError, NotImplementedError):
    """An unsupported case of a supported NumPy or SciPy function."""


class UndecidedError(UnsupportedError):
    """A value, `value`, that must be known when code is generated, and is not."""

    value: object = None


class RankError(UnsupportedError):
    """A decision that depends on the ranks of arguments, before they are known."""


class TypeMismatchError(S2SError, TypeError):
    """Types or shapes that do not go together, or an argument of the wrong kind."""


class ArrayNeededError(TypeMismatchError):
    """A number or an array is needed, and `value` is neither: where it is a list or tuple, NumPy
    would convert it.
    """

    def __init__(self, value: object, line: Line | None = None, called: str = ""):
        super().__init__(f"{called or value.name or 'this'} is {value.type}, and a number or an "
                         "array is needed", line, "pass a number or an array")
        self.value = value


class UnboundAxisError(S2SError, NameError):
    """A collective over a named axis that has no lanes."""


class ShapeMismatchError(TypeMismatchError, ValueError):
    """Arguments of a call whose lengths do not fit together."""


class DerivativeError(S2SError):
    """A requested derivative that does not exist."""


class VerifyError(S2SError):
    """The IR breaks one of its invariants: a bug in s2s, never in the user's program."""


class MemoryCheckError(S2SError):
    """Native code would have touched memory that is not its own, or has (S2S_CHECK=memory): a bug
    in s2s, never in the user's program.
    """
