"""Declare which functions of Python, NumPy and SciPy the functions of this folder implement.

    @implements(np.roots, arrays="p")
    def roots(p):
        ...

Where a program calls the one, the front end inlines the other, which has its signature
(front/eval/composites.py).  Variants of arguments are told apart in its Python text, by rank, dtype
or `is None`: a branch that is never taken for the arguments of a call is not read.  Inside of it, a
call of the function that it implements is the op of that function, so that it can do without the
op for some arguments and leave it the rest.  What the text cannot say is declared beside it:

    arrays="p x"     NumPy takes a list or a tuple that is given there for an array
    ranks="x"        the text asks for its number of axes, so that this must be known, too
    static="axis"    it must be known when code is generated
    as_ufunc=True    results have the dtypes that the ufunc gives them

Local names become names in generated code, but for those that begin with an underscore.

A function of a module that may not be there, or not yet be imported, is written "module:name".
Arguments that s2s does not support are refused by NotImplementedError("s2s: what: what instead").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Declaration:
    """What `function` implements, and what is asked of its arguments."""

    function: Callable
    implemented: tuple  # functions, or "module:name"
    method: str = ""  # the method of all ufuncs that it implements, given the ufunc first
    arrays: frozenset[str] = frozenset()
    ranks: frozenset[str] = frozenset()
    static: frozenset[str] = frozenset()
    as_ufunc: bool = False


DECLARED: list[Declaration] = []


def implements(*functions, method: str = "", arrays: str = "", ranks: str = "", static: str = "",
               as_ufunc: bool = False) -> Callable:
    """Declare that the decorated function implements these functions, or this method of every ufunc
    of two operands; `arrays`, `ranks` and `static` are names of parameters.
    """
    def declare(function: Callable) -> Callable:
        DECLARED.append(Declaration(
            function, functions, method, *(frozenset(names.split())
                                           for names in (arrays, ranks, static)), as_ufunc))
        return function

    return declare
