"""Match the code object of a function with definitions in a text, by comparing bytecode.

Which of the lambdas of a line a function is, Python 3.10 does not record, and no version records it
where columns are left out (`-X no_debug_ranges`).  So a definition is compiled where it stands,
among its classes and the functions around it, and its code is compared with the function's as a
whole: of two definitions that Python makes the same code of, either is the program.

Considered: pairing the functions of a syntax tree with the code objects in the constants of the
compiled module, in their order.  Equal constants are merged, the body of a `finally` is compiled
twice and dead code not at all, each version in its own way.
"""

from __future__ import annotations

import ast
import dis
import os
import re
import time
import types
import warnings
from collections.abc import Container, Iterator

from ...ir.code_objects import fingerprint

FAR = 1 << 20  # line number beyond any text
FUTURE = annotations.compiler_flag  # the one future statement that changes compiled code


def flags_of(code: types.CodeType) -> int:
    """The compiler flags for a text whose function has `code`.

    In a notebook a cell may await, and what one cell imports from the future holds for the next.
    """
    return code.co_flags & FUTURE | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def compiled(tree: str | ast.Module, flags: int) -> types.CodeType | None:
    """The code of a module; None if it does not compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(tree, "<s2s>", "exec", flags=flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None


def inside(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects of the functions nested in `code`."""
    return (k for k in code.co_consts if isinstance(k, types.CodeType))


def codes_of_lambda(text: str, line: int, number: int, flags: int,
                    apart: bool) -> list[types.CodeType]:
    """The code objects compiled from a lambda of `text`, given by its number among those that begin
    in `line`; usually one.

    There are more than one in a `finally`, and none in dead code.  The lambda is moved to a line
    far below all others, which identifies its code; its defaults are not part of that.  The bodies
    of other functions and classes are left out; the rest of the module stays, unless its statements
    are compiled `apart`, as in a notebook, since calls of imported names compile differently.
    """
    module = ast.parse(text)
    node = [
        each for each in ast.walk(module) if isinstance(each, ast.Lambda) and each.lineno == line
    ][number]
    around = next(s for s in module.body if any(part is node for part in ast.walk(s)))
    if apart:
        module.body = [around]
    for statement in module.body:
        if (statement is not around
            and isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))):
            statement.body = [ast.copy_location(ast.Pass(), statement)]
    for part in (node, *ast.walk(node.body)):
        if hasattr(part, "lineno"):
            part.lineno += FAR
            part.end_lineno += FAR
    found, rest = [], [compiled(module, flags)]
    while rest:
        code = rest.pop()
        if code is not None and code.co_firstlineno > FAR:
            found.append(code)
        elif code is not None:
            rest += inside(code)
    return found


def positions(code: types.CodeType) -> list[tuple]:
    """The positions of the instructions relative to the first line of `code`: lines, and columns if
    recorded.
    """
    spans = (code.co_positions() if hasattr(code, "co_positions")
             else ((line, line) for *_, line in code.co_lines()))
    return [
        tuple(line and line - code.co_firstlineno for line in span[:2]) + span[2:] for span in spans
    ]


def distance(code: types.CodeType, other: types.CodeType) -> int | None:
    """The similarity of two code objects: 0 with equal positions, too; 1 with equal behaviour; else
    None.
    """
    if fingerprint(code) != fingerprint(other):
        return None
    return 0 if positions(code) == positions(other) else 1


# -------------------------------------------------------------------------- code that was rewritten


def _beginning() -> float:
    """The start time of this process, in seconds; now, if the system does not tell."""
    try:
        with open("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        began = time.time() - time.clock_gettime(
            time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
        return min(began, time.time())
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time()


BEGINNING = _beginning()  # a file last written before that was imported in its present state


def is_rewritten(code: types.CodeType, written: types.CodeType, node: ast.AST,
                 filename: str) -> bool:
    """Whether `code` is the result of an import hook (pytest's) that adds instructions to
    `written`, the code of `node`.

    The file is older than the process, and the code has everything of `written` besides `assert`,
    in its order.
    """
    try:
        if os.stat(filename).st_mtime > BEGINNING:
            return False
    except OSError:  # no file: a notebook cell
        pass
    names = written.co_varnames[:_parameters(written)]
    asserts = {
        line
        for part in ast.walk(node) if isinstance(part, ast.Assert)
        for line in range(part.lineno, part.end_lineno + 1)
    }
    left = _steps(code)
    return (names == code.co_varnames[:_parameters(code)]
            and all(step in left for step in _steps(written, asserts)))


def _parameters(code: types.CodeType) -> int:
    # CO_VARARGS, CO_VARKEYWORDS
    variadic = sum(bool(code.co_flags & flag) for flag in (0x04, 0x08))
    return code.co_argcount + code.co_kwonlyargcount + variadic


_NAMED = {*dis.haslocal, *dis.hasname, *dis.hasfree}


def _steps(code: types.CodeType, without: Container[int] = ()) -> Iterator[tuple]:
    """The names, constants, operators and calls of `code`, in order, independent of the Python
    version's instruction set; lines in `without` are left out.
    """
    lines = {start: line for start, _, line in code.co_lines()}
    line = None
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        line = lines.get(instruction.offset, line)
        if line in without:
            continue
        if isinstance(value, types.CodeType):
            yield from _steps(value, without)
        elif instruction.opcode in dis.hasconst:
            yield "constant", type(value), repr(value)
        elif instruction.opcode in _NAMED:
            yield from zip(re.findall("LOAD|STORE|DELETE|IMPORT", name),
                           value if isinstance(value, tuple) else (value,))
        elif name.startswith(("BINARY_", "INPLACE_", "COMPARE_", "CONTAINS_", "IS_")):
            yield name, instruction.argrepr.removeprefix("bool(").removesuffix(")")
        elif name.startswith(("UNARY_NEG", "UNARY_INV", "CALL")):
            yield name[:5], None
