"""The printer: IR to a Python module that reads as if a person had written it.

`render(function)` inserts copies for writes (insert_copies.py), decides which values are printed
inside expressions (inlining.py), names the others (out_of_ssa.py), writes the statements
(statement_writer.py), and assembles the module: imports, helpers that its ops need, the functions
it calls, the function.
"""

from __future__ import annotations

import ast
import dis
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ...analysis.alias import results_of
from ...check_flags import is_checking
from ...compile_lock import cached_in_turn
from ...errors import ERRORS, Line
from ...ir.graph import Function, Op, walk
from ...ir.treedef import stores_its_arguments, with_attributes
from ...ir.types import Tape
from ...ops.program.opaque_call import functions_in, printed_op
from ...ops.program.recursive_callee import Recursive, recursive_callees
from ...transform.cleanup.strong_products import lower_strong_products
from ..parallel.cost import Work
from ..parallel.outline_parallel import PARTS, Split, rename_marks
from ..syntax.ast_names import nodes_in
from ..syntax.literals import is_literal, modules_said
from ..syntax.unparse import Unparser
from .branch_fillers import drop_fillers
from .chain_constants import chain_constants
from .comments import with_comments
from .errstate import is_wholly_derived, silence
from .external_objects import Classes
from .forward_tapes import forward_tapes
from .inlining import Layout
from .insert_copies import insert_copies
from .out_of_ssa import BUILTINS, RESERVED, Names, Own, clashing
from .pack_saved import Packs, find_packs, pack, pack_returned, unpack
from .pack_tapes import pack_tapes
from .prepare import (
    drop_dead,
    drop_in_place_results,
    drop_shaped_like,
    name_results,
    read_tables,
    unpack_tuples,
)
from .raises import named_classes, names_acted_with
from .restore_returns import restore_returns
from .restore_unpacking import restore_unpacking
from .stack_tapes import stack_tapes
from .statement_writer import Writer

NO_PACKS = Packs()
# without it, ast.dump tests the truth of arrays in the tree
WHOLE = {"show_empty": True} if sys.version_info >= (3, 13) else {}

@dataclass(frozen=True)
class Module:
    """A module: its text, the function to call, and the user's line of each of its lines."""

    text: str
    entry: str
    lines: dict[int, Line] = field(default_factory=dict, repr=False)
    # objects that the text refers to but cannot import
    given: dict[str, object] = field(default_factory=dict, repr=False)
    # compiled code: the op that raises on a line
    raises: dict[int, Op] = field(default_factory=dict, repr=False)


def render(function: Function, annotate: bool = False, native: bool = False,
           parts: Container[int] | None = None) -> Module:
    """Print `function`, and all that it calls, as a module that needs only NumPy.

    With `annotate` the text is the IR itself: one op a line, with its type. With `native` it keeps
    to what Numba supports: no `reversed`, and no variable that is first a number and then an array.
    The independent loops numbered in `parts` are printed for threads to share.
    """
    return Draft(function, annotate, native).module(parts)


class Draft:
    """A function and its callees as syntax trees of a module, whose text is usually written once.

    So the loops to parallelise can be chosen by their `sizes` (back/parallel/outline_parallel.py)
    before there is any text.
    """

    def __init__(self, function: Function, annotate: bool = False, native: bool = False,
                 taken: frozenset[str] = frozenset()):
        self.given = function, annotate, native, taken
        callees = _callees(function)
        for each in (function, *callees):
            each.given, each.handed_on = frozenset(), {}
        for callee in recursive_callees(function):
            callee.function.given = callee.given
            callee.function.handed_on = {} if annotate else callee.handed_on
        self.helpers = _helpers_of([*callees, function])
        if native:
            taken |= {*PARTS, "njit"}
        shadowing = self.define(function, callees, taken)
        if shadowing:
            self.define(function, callees, taken | shadowing)

    def define(self, function: Function, callees: Sequence[Function],
               taken: frozenset[str]) -> frozenset[str]:
        """Build the trees, in which no variable or function has a name in `taken`.

        Returns names of functions that also refer to builtins in the trees.
        """
        _, annotate, native, _ = self.given
        spelled = _spellings([function, *callees], self.helpers, taken)
        whole = None if annotate else only_call(function)
        if whole is not None:
            callees = [callee for callee in callees if callee is not whole]
            spelled = _spellings([function, *callees], self.helpers, taken)
            spelled[whole] = spelled[function]
            function = function.remade(whole.block)
            spelled[function] = spelled[whole]
        self.entry = str(spelled[function])
        self.classes = Classes([function, *callees],
                               {} if native else named_classes([function, *callees]),
                               RESERVED.union(spelled.values(), taken))
        reserved = (frozenset({*spelled.values(), *self.classes.names.values()})
                    | names_acted_with([function, *callees]))
        self.reserved = reserved | {h.__name__ for h in self.helpers} | taken
        packs = (Packs() if annotate or native or not callees
                 else find_packs([prepared(called, entry=called is function)
                                  for called in (*callees, function)]))
        self.definitions: list[ast.FunctionDef] | None = [
            definition(called, annotate, native, self.reserved, entry=called is function,
                       spelled=spelled, packs=packs)
            for called in (*callees, function)]
        return _builtins_called(self.definitions, self.helpers).intersection(
            [*spelled.values(), *self.classes.names.values()])

    @cached_in_turn
    def split(self) -> Split:
        """The loops of the function that can be split into parts or sections."""
        return Split(self.definitions[-1], self.reserved)

    @property
    def sizes(self) -> list[tuple[Work, ...]]:
        """The cost of the loops of the function that can be split into parts or sections."""
        return self.split.sizes

    def module(self, parts: Container[int] | None = None) -> Module:
        """The text, with the loops of these numbers split."""
        if self.definitions is None:  # the trees have been changed by another call
            return Draft(*self.given).module(parts)
        if parts is not None:
            self.definitions[-1:] = self.split.in_parts(parts)
        definitions, self.definitions = self.definitions, None
        return self.print_module(definitions if self.given[1] or len(definitions) == 1
                            else _deduplicated(definitions))

    def print_module(self, definitions: list[ast.FunctionDef]) -> Module:
        """Print these definitions as a module."""
        classes = self.classes
        nodes = [node for tree in definitions for node in nodes_in(tree)]
        words = [node for node in nodes if isinstance(node, ast.Name)]
        used = _names_in(nodes)
        used.update(*(modules_said(node.value) for node in nodes if isinstance(node, ast.Constant)))
        helpers = [helper for helper in self.helpers
                   if helper is not with_attributes or helper.__name__ in used]
        sources = [textwrap.dedent(inspect.getsource(helper)).rstrip() for helper in helpers]
        sources = [classes.renamed(source, helper) for helper, source in zip(helpers, sources)]
        numbered = _numbered(helpers, used)
        sources = [re.sub(rf"\b{helper.__name__}\b", numbered.get(helper.__name__, helper.__name__),
                          source) for helper, source in zip(helpers, sources)]
        for word in words:
            word.id = numbered.get(word.id, word.id)
        used |= {name for source in sources for name in _names_in(nodes_in(ast.parse(source)))}
        classes.rename(words)
        unparser = Unparser()
        for module, spelling in _IMPORTS:
            if module in used:
                unparser.fill(spelling)
        for spelling in classes.imports(
                {*classes.names.values()} if self.given[1] else _names_in(words) | used):
            unparser.fill(spelling)
        for source in sources:
            unparser.out += ["", "", *source.split("\n")]
        for tree in definitions:
            unparser.out += ["", ""]
            unparser.statement(tree)
        return _module(unparser, self.entry, classes.unreachable())


def _tree_key(tree: ast.AST) -> tuple:
    """A key that is equal for equal trees, including the elements of arrays in them."""
    arrays = (node.value for node in nodes_in(tree) if isinstance(node, ast.Constant)
              and isinstance(node.value, np.ndarray))
    return ast.dump(tree, **WHOLE), *((array.dtype, array.shape, array.tobytes())
                                      for array in arrays)


def _deduplicated(definitions: list[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The definitions without duplicates, callees first."""
    kept: dict[tuple, ast.FunctionDef] = {}
    named: dict[str, str] = {}
    for tree in definitions:
        for node in nodes_in(tree) if named else ():
            if isinstance(node, ast.Name):
                node.id = named.get(node.id, node.id)
        name, tree.name = tree.name, ""
        first = kept.setdefault(_tree_key(tree), tree)
        tree.name = name
        if first is not tree and tree is not definitions[-1]:
            named[name] = first.name
    return [tree for tree in definitions if tree.name not in named]


def _numbered(helpers: Iterable[Callable], used: set[str]) -> dict[str, str]:
    """The names in this module of helpers for single ops: print_out, print_out_1."""
    found: dict[str, str] = {}
    for helper in helpers:
        if hasattr(helper, "stem"):
            name, k = helper.stem, 0
            while name in used or name in found.values():
                k += 1
                name = f"{helper.stem}_{k}"
            found[helper.__name__] = name
    return found


def _with_own_helpers(helper: Callable) -> dict[Callable, None]:
    """`helper` after the functions of its module that it calls."""
    found: dict[Callable, None] = {}
    names = [
        i.argval for i in dis.get_instructions(helper) if i.opname == "LOAD_GLOBAL"
    ]  # not those of attributes
    for name in dict.fromkeys(names):
        other = helper.__globals__.get(name)
        if (
            inspect.isfunction(other)
            and other.__module__ == helper.__module__
            and other is not helper
        ):
            found.update(_with_own_helpers(other))
    return {**found, helper: None}


def _names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The names in a text, and the SciPy submodules it uses."""
    found = set()
    for node in nodes:
        match node:
            case ast.Name(name):
                found.add(name)
            case ast.Attribute(ast.Name("scipy"), part):
                found.add(f"scipy.{part}")
    return found


_IMPORTS = [("cmath", "import cmath"), ("logging", "import logging"),
            ("math", "import math"), ("warnings", "import warnings"),
            ("np", "import numpy as np"), ("scipy.fft", "import scipy.fft"),
            ("scipy.linalg", "import scipy.linalg"), ("scipy.special", "import scipy.special"),
            ("in_parts", f"from s2s.runtime.parts import {', '.join(PARTS)}"),
            ("objmode", "from numba import objmode"),
            ("generator_type",
             "from numba import typeof\n\ngenerator_type = typeof(np.random.default_rng(0))"),
            ("random_state_type",
             "from s2s.runtime.numba.random_states import random_state_type"),]


def _module(unparser: Unparser, entry: str, given: dict[str, object]) -> Module:
    """The module, without leading empty lines and with its lines counted from 1."""
    lines = [line.rstrip() for line in unparser.out]
    skipped = 0
    while lines and not lines[0]:
        lines.pop(0)
        skipped += 1
    places, raises = ({number - skipped + 1: x for number, x in found.items()}
                      for found in (unparser.lines, unparser.raises))
    return Module("\n".join(lines) + "\n", entry, places, given, raises)


def prepared(function: Function, annotate: bool = False, native: bool = False,
             entry: bool = True) -> Function:
    """A copy of `function` with copies for writes, before names are chosen."""
    function = lower_strong_products(function)
    if not annotate and not native:
        function = stack_tapes(forward_tapes(function))
    function = insert_copies(function, results=entry and not annotate,
                             augmented=not annotate)
    if not annotate:
        drop_shaped_like(function)
        if not native:
            read_tables(function)
            drop_fillers(function)
    name_results(function)
    unpack_tuples(function)
    drop_dead(function)
    drop_in_place_results(function)
    return function


def definition(
    function: Function,
    annotate: bool = False,
    native: bool = False,
    reserved: frozenset[str] = frozenset(),
    entry: bool = True,
    spelled: Mapping[Function, str] = MappingProxyType({}),
    packs: Packs = NO_PACKS,
) -> ast.FunctionDef:
    """`function` as a `def`; `spelled` has the names of it and its callees in the module."""
    name, given = spelled.get(function, function.name), function
    function = prepared(function, annotate, native, entry)
    pack(function, packs)
    layout = Layout(function, one_per_line=annotate, spelled=spelled, native=native)
    names = Names(layout, reserved, native)
    while not annotate and layout.inline_moved(names):
        names = Names(layout, reserved, native)
    if is_checking():
        layout.verify()
    writer = Writer(layout, names, native)
    # callers expect no tuple of one
    alone = not entry and not annotate and len(function.results) == 1
    body = writer.function_body(function.block, function.tupled and not alone)
    if not annotate:
        body = restore_returns(body)
    if not annotate and not native:
        pack_tapes(body, {*reserved, *(names[p] for p in function.params)})
        restore_unpacking(body, names.arrays())
        chain_constants(body)
    nodes = [node for statement in body for node in _in_order(statement)]
    uses = [node for node in nodes if isinstance(node, ast.Name)]
    if clashes := clashing(uses, *(names[p] for p in function.params)) - reserved:
        return definition(given, annotate, native, reserved | clashes, entry, spelled, packs)
    renamed = names.renumber([*(names[p] for p in function.params), *(node.id for node in uses)])
    for node in {id(node): node for node in uses}.values():
        if node.id in renamed:
            node.id = Own(renamed[node.id])
    for node in (arg for arg in nodes if isinstance(arg, ast.arg)):  # parameters of lambdas
        node.arg = renamed.get(node.arg, node.arg)
    if not annotate:
        body = with_comments(body, function)
        if (layout.hushed is not None and layout.hushed.quiet
                and (entry or not is_wholly_derived(function))):
            body = silence(body)
    if function.doc:
        doc = ast.Expr(ast.Constant(function.doc))
        doc.docstring = True
        body.insert(0, doc)
    arguments = _arguments(function, names, annotate)
    for arg in arguments.args:
        arg.arg = renamed.get(arg.arg, arg.arg)
    rename_marks(nodes, renamed)
    if given in packs.returned:
        pack_returned(nodes, packs.returned[given])
    if given in packs.given:
        read = {node.id for node in uses}
        taken = {*read, *reserved, *(arg.arg for arg in arguments.args)}
        names = ("saved", *(f"saved_{k}" for k in range(1, len(taken) + 2)))
        saved = next(each for each in names if each not in taken)
        start = 1 if function.doc else 0
        body[start:start] = unpack(arguments.args, *packs.given[given], read, saved)
    tree = ast.FunctionDef(name, arguments, body or [ast.Pass()],
                           [] if annotate or native else _silences(function))
    tree.function = function
    return tree


def _silences(function: Function) -> list[ast.expr]:
    """The decorator for the NumPy errors the program ignores: front/values/context_managers.py."""
    sources = {function.source,
               *(op.line.source for op in walk(function.block) if op.line is not None)} - {None}
    kinds = [kind for kind in ERRORS if any(kind in source.silent for source in sources)]
    if not kinds:
        return []
    named = ", ".join(f"{kind}='ignore'"
                      for kind in (["all"] if len(kinds) == len(ERRORS) else kinds))
    return [ast.parse(f"np.errstate({named})", mode="eval").body]


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a tree in the order of the text."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending += [*ast.iter_child_nodes(node)][::-1]


def _arguments(function: Function, names: Names, annotate: bool) -> ast.arguments:
    args = [
        ast.arg(names[p], ast.Constant(str(p.type)) if annotate else None) for p in function.params
    ]
    defaults = []
    for param, arg in zip(function.params, args):
        if param.name in function.defaults and is_literal(function.defaults[param.name]):
            defaults.append(ast.Constant(function.defaults[param.name]))
        elif defaults:
            defaults = []  # a default may not come before an argument without one
    return ast.arguments(
        posonlyargs=[],
        args=args,
        vararg=None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=defaults,
    )


def only_call(function: Function) -> Function | None:
    """The recursive function that `function` does nothing but call, if it may replace it."""
    ops = function.block.ops
    if len(ops) != 1 or ops[0].name != "call" or not isinstance(ops[0].attrs["callee"], Recursive):
        return None
    callee = ops[0].attrs["callee"]
    same = ops[0].inputs == function.params and ops[0].outputs == function.results
    alone = not callee.given and all(not shared and not borrowed
                                     for shared, borrowed in results_of(callee))
    if not same or not alone or function.tupled != callee.function.tupled:
        return None
    return None if any(isinstance(p.type, Tape) for p in function.params) else callee.function


def _callees(function: Function) -> list[Function]:
    """The direct and indirect callees of `function`, each after those it calls."""
    found: dict[Function, None] = {}
    active: set[Function] = {function}

    def visit(caller: Function) -> None:
        for op in walk(caller.block):
            for callee in functions_in(op):
                if callee not in active:
                    active.add(callee)
                    visit(callee)
                    found[callee] = None
            if op.name == "call":
                callee = op.attrs["callee"].function_for(op.inputs)
                if callee not in active and printed_op(op) is None:
                    active.add(callee)
                    visit(callee)
                    found[callee] = None

    visit(function)
    return list(found)


def _helpers_of(functions: Sequence[Function]) -> dict[Callable, None]:
    """The functions of s2s that the text of these functions needs."""
    helpers: dict[Callable, None] = {}
    for op in (op for each in functions for op in walk(each.block)):
        if op.record.helper is not None:
            helpers.update(_with_own_helpers(op.record.helper))
        form = op.attrs.get("form")
        if form is not None and form.kind == "attributes" and not stores_its_arguments(form):
            helpers[with_attributes] = None
    return helpers


def _builtins_called(definitions: Iterable[ast.FunctionDef],
                     helpers: Iterable[Callable]) -> frozenset[str]:
    """The builtins that the functions and helpers call, by name."""
    found = {str(node.id) for tree in definitions for node in nodes_in(tree)
             if isinstance(node, ast.Name) and not isinstance(node.id, Own)}
    found.update(*(helper.__code__.co_names for helper in helpers))
    return BUILTINS & found


def _spellings(functions: Sequence[Function], helpers: Iterable[Callable],
               more: frozenset[str]) -> dict[Function, str]:
    """A name for each function: g and g_1 for two of one name, or for two kinds of arguments.

    A function is also renamed if generated code uses its name otherwise: for a helper, a module, a
    builtin, or one of `more`.
    """
    spelled: dict[Function, str] = {}
    taken = RESERVED | more | {helper.__name__ for helper in helpers}
    for each in functions:
        name, k = each.name, 0
        while name in spelled.values() or name in taken:
            k += 1
            name = f"{each.name}_{k}"
        spelled[each] = Own(name)
    return spelled


__all__ = ["Module", "Draft", "render", "definition"]
