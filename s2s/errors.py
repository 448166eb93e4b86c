"""Errors that point at the user's own line, with a caret and a remedy.

Everything that s2s does not understand ends here, while code is being generated.  The lowest module of
the package: it knows nothing but text.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

ERRORS = ("divide", "over", "under", "invalid")  # of floating-point numbers, as NumPy calls them


@dataclass(frozen=True)
class Source:
    """The text of one user function: where it stands and what it says."""

    filename: str
    first_line: int  # number, in the file, of the first line of `text`
    text: str = field(repr=False)  # dedented
    name: str = "<function>"
    head: int = 0  # number, in the file, of the line with `def`, below the decorators; 0: the first line
    silent: set[str] = field(default_factory=set, repr=False, compare=False)  # the errors of NumPy's that it ignores somewhere

    @property
    def begins(self) -> Line:
        """The place where the function begins."""
        return Line(self, self.head or self.first_line)

    @property
    def place(self) -> str:
        """Where the function stands, for a docstring: " (model.py, line 12)"."""
        if "ipykernel" in self.filename:  # a file that Jupyter made up, named after the hash of a cell
            return f" (line {self.begins.number} of its cell)"
        return f" ({self.filename.rsplit('/', 1)[-1]}, line {self.begins.number})"

    def line(self, number: int) -> str:
        """The text of line `number` of the file, without its indentation."""
        lines = lines_of(self.text)
        index = number - self.first_line
        return lines[index].strip() if 0 <= index < len(lines) else ""


@functools.lru_cache(64)
def lines_of(text: str) -> list[str]:
    """The lines of a function's text, of which each is asked for by itself."""
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

    @property
    def text(self) -> str:
        return self.source.line(self.number)

    def reversed(self, again: bool = False) -> Line:
        """The same place, run backwards; `again`, for what is computed once more because it was not saved."""
        return Line(self.source, self.number, self.column, self.end_column, True, again)

    def show(self) -> str:
        """Two lines: the user's text and a caret under what is meant."""
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
    """A program that s2s refuses: the message says where, what, and what to write instead."""

    def __init__(self, message: str, line: Line | None = None, remedy: str = ""):
        self.message, self.line, self.remedy = message, line, remedy
        super().__init__(message)

    def __str__(self) -> str:
        parts = []
        if self.line is not None:
            parts.append(f'{self.line.source.filename}, line {self.line.number}, in {self.line.source.name}')
            shown = self.line.show()
            if shown:
                parts.append(shown)
        parts.append(self.message)
        if self.remedy:
            parts.append(f"Instead: {self.remedy}")
        return "\n".join(parts)


class SourceError(S2SError):
    """The source text of a function cannot be found."""


class UnsupportedError(S2SError):
    """A construct, function or argument that s2s does not know."""


class UndecidedError(UnsupportedError):
    """What must be known when code is generated, and is `value`, which is not.

    `parameters` are the positions of the function's arguments that it is computed of, where it is computed of nothing else.
    """

    value: object = None
    parameters: tuple[int, ...] = ()


class RankError(UnsupportedError):
    """What only the ranks of arguments decide, before they are known."""


class TypeMismatchError(S2SError, TypeError):
    """Types or shapes that do not go together, or an argument of the wrong kind."""


class ArrayNeededError(TypeMismatchError):
    """A number or an array is needed, and `value` is neither: where it is a list or tuple, NumPy makes an array of it."""

    def __init__(self, value: object, line: Line | None = None, called: str = ""):
        super().__init__(f"{called or value.name or 'this'} is {value.type}, and a number or an array is needed", line,
                         "pass a number or an array")
        self.value = value


class ShapeMismatchError(TypeMismatchError, ValueError):
    """Arguments of a call whose lengths do not go together."""


class DerivativeError(S2SError):
    """A derivative that is asked for and does not exist."""


class VerifyError(S2SError):
    """The IR breaks one of its invariants: a bug in s2s, never in the user's program."""


class MemoryCheckError(S2SError):
    """Native code would have touched memory that is not its own, or has (S2S_CHECK=memory): a bug in s2s, never in the user's program."""
