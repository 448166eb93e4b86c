"""Evaluate a call: emit an op, call or inline a function of the user's own, or compute it at
compile time.

A function of the user's becomes a `call` op, unless an op cannot express its effects: one that
takes a function defined inside the caller, writes into its argument, or returns memory that it
shares with one, is inlined instead, on the caller's own cells.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum

import gast
import numpy as np

from ...errors import (
    ArrayNeededError,
    Line,
    S2SError,
    ShapeMismatchError,
    TypeMismatchError,
    UndecidedError,
    UnsupportedError,
)
from ...ir.builder import current, record_effect
from ...ir.graph import MISSING, Value, identifier
from ...ir.reemit import emit_block
from ...ir.types import Extent, Generator, List, Static, is_listed
from ...library.containers import Set, in_any_order, view
from ...library.declarations import __name__ as DECLARATIONS  # noqa: N812
from ...library.sequences import column
from ...ops.core.control import call as call_record
from ...ops.core.control import never_returns
from ...ops.core.record import (
    FUNCTIONS,
    MACROS,
    MEMBERS,
    METHODS,
    RECORDS,
    Macro,
    dims_of,
    dtype_of,
    emit,
    rank,
    value,
)
from ...ops.program.checkpoint import Checkpointed
from ...ops.program.custom_rules import RULES
from ...ops.program.effects import acts
from ...ops.program.list_arrays import list_stack
from ...ops.program.numpy_of_lists import OF_LISTS
from ...ops.program.random import METHODS_OF_GENERATORS, METHODS_OF_RANDOM_STATES, shuffled
from ..control.generators import (
    is_generator,
    is_generator_function,
    names_around,
    run_generator,
)
from ..control.introspection import ABOUT_CLASSES
from ..control.iterables import Iterable, members_of
from ..control.join import branch, with_either
from ..control.recursion import (
    Definition,
    call_recursive,
    calls_itself,
    is_open,
    is_unrolled,
)
from ..domain.checkpoint_calls import mark
from ..domain.frame import ExceptionObject, Frame, Object, PathEnded, Text
from ..domain.functions import (
    CheckpointedFunction,
    ConditionalFunction,
    ConditionalObject,
    FunctionValue,
    Intrinsic,
    Local,
    Method,
    NeedsInlining,
    Partial,
    Spread,
)
from ..domain.heap import Cell, Container, cells_in
from ..domain.nested_functions import EnclosingValue, NestedFunction
from ..domain.optional import Maybe, has_maybe, optional_error
from ..domain.repeated_calls import note
from ..domain.result_aliases import rebind
from ..domain.structured_arrays import create_records
from ..domain.warning_filters import warns_of
from ..syntax.captures import Fixed, Global, Item, Member, is_data
from ..syntax.dependencies import collect_dependencies, note_dependency
from ..syntax.find_source import definition_of, lambda_body
from ..syntax.liveness import parameter_names
from ..values.activation import run
from ..values.captured_dicts import note_asked
from ..values.captured_writes import written_by_callee
from ..values.context_managers import GeneratorManager, generator_of
from ..values.dict_views import KeyedView
from ..values.dicts import dict_method, is_keyed
from ..values.exceptions import guard
from ..values.iterator_invalidation import was_written
from ..values.lists import apply_list_method, is_list, new_list, put_in_order
from ..values.messages import is_exception, log, logger, make_exception
from ..values.nonlocals import borrow
from ..values.numpy_views import shared_result
from ..values.numpy_writes import METHOD_WRITERS, out_of, write_out, writer
from ..values.objects import class_of, instantiate, is_users, method_of, new_dict_at, read
from ..values.overloads import NOTHING, matches
from ..values.raise_guards import guarding, require_quiet
from ..values.strings import method as text_method
from ..values.unwrap import demand
from ..values.words import UNKNOWN, by_word, count_word
from .call_graph import local_may_call_itself, may_call_itself, plain_function, reachable_functions
from .python_builtins import BUILTINS
from .unwrap_callable import names_of, python_of_numba, signature_of, target_of, unwrap_jit

LIBRARY = DECLARATIONS.rpartition(".")[0]
OF_ROWS = {np.array, np.asarray}  # of a list of tuples: one row each
_signature = functools.cache(inspect.signature)
KNOWN_NOW = {
    np.finfo, np.iinfo, np.dtype, np.issubdtype, np.result_type, np.promote_types, np.can_cast, str,
    repr, id, ord, chr, issubclass, bool, int, float, complex, sum, min, max, abs, round, divmod,
    pow, any, all, sorted, frozenset, set, dict
}
ABOUT_OBJECTS = (len, iter, next, id, setattr)  # these need no members

CONTAINERS = (tuple, list, dict, set, frozenset, float, int, complex, str)
OF_WORDS = (len, ord, int, float)
SPECIAL = {
    abs: "__abs__",
    float: "__float__",
    int: "__int__",
    complex: "__complex__",
    round: "__round__",
    math.floor: "__floor__",
    math.ceil: "__ceil__",
    math.trunc: "__trunc__"
}


def apply(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """The binding of `function(*args, **keywords)`."""
    if len(args) == 1 and frame.heap.items(args[0]) == () and function in (np.array, np.asarray):
        function, args = np.zeros, [0]
    if (inner := unwrap_jit(function)) is not function and may_call_itself(inner):
        return _apply_decorated(frame, inner, args, keywords, node)
    if _takes_arrays(function):
        args = [_without_ranges(frame, a, node) for a in args]
        keywords = {k: _without_ranges(frame, a, node) for k, a in keywords.items()}
    found = _apply_wrapper(frame, function, args, keywords, node)
    if found is not NOTHING:
        return found
    args = _without_optional(frame, function, args, keywords, node)
    if not is_plain(function):
        for k, x in (*enumerate(args), *keywords.items()):
            if isinstance(x, ConditionalObject):
                return with_either(frame, x, lambda y: apply(
                    frame, function, [y if n == k else a for n, a in enumerate(args)],
                    {name: y if name == k else a for name, a in keywords.items()}, node))
    found = _apply_special(frame, function, args, keywords, node)
    if found is not NOTHING:
        return found
    if isinstance(function, Object):
        note_dependency(function.getter, function.content)
        function = function.content
    # a function with derivative rules: front/rules/custom_derivatives.py
    ruled = function if hasattr(type(function), "apply_in") else _entry(RULES, function)
    if ruled is not None:
        return ruled.apply_in(frame, args, keywords, node)
    args, keywords = _with_contents(frame, function, args, keywords, node)
    for rule in (_apply_creator, _apply_macro, _apply_builtin, _apply_library, _apply_transformed,
                 _apply_now):
        found = rule(frame, function, args, keywords, node)
        if found is not NOTHING:
            return _with_members(frame, function, found)
    if (isinstance(function, type) or isinstance(function, types.BuiltinFunctionType)
            or not callable(function) or isinstance(function, np.ufunc) or _is_of_numpy(function)):
        raise _unknown(frame, function, node)
    return _apply_python(frame, function, args, keywords, node)


def _with_members(frame: Frame, function, found):
    """The result of a call, with the names that NumPy gives its members."""
    named = _entry(MEMBERS, function)
    members = None if named is None else frame.members(found)
    return found if members is None or len(members) != len(named.names) else named(members)


def _apply_wrapper(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call of what stands for a call of another function; NOTHING for other functions."""
    match python_of_numba(function):
        case "class", inner:
            return apply(frame, inner, args, keywords, node)
        case "elements", inner:
            return _apply_vectorized(frame, [inner], {}, args, keywords, node)
    if (generator := generator_of(function)) is not None:
        return GeneratorManager(generator, args, keywords)
    if (drawn := _drawn_from(function)) is not None:
        rng, name = drawn
        return apply_generator_method(frame, frame.outside(rng(), rng, "np_random"), name, args,
                                      keywords, node)
    match function:
        case Local():
            return _apply_local(frame, function, args, keywords, node)
        case Partial():
            return apply(frame, function.function, [*function.args, *args],
                         {**function.keywords, **keywords}, node)
        case Method():
            return apply(frame, function.function, [function.receiver, *args], keywords, node)
        case Intrinsic():
            return function.run(frame, node, *args, **keywords)
        case Checkpointed(function=inner) | CheckpointedFunction(inner):
            return mark(frame.session, _called_name(inner), frame.source,
                        lambda: apply(frame, inner, args, keywords, node))
        case ConditionalFunction(condition, functions):
            return branch(frame, condition,
                          *(lambda f=f: apply(frame, f, args, keywords, node) for f in functions),
                          frame.live | frame.pending)
        case ConditionalObject():
            return with_either(frame, function, lambda f: apply(frame, f, args, keywords, node))
        case np.vectorize():
            options = {name: getattr(function, name)
                       for name in ("otypes", "excluded", "signature")}
            return _apply_vectorized(frame, [function.pyfunc], options, args, keywords, node)
        case functools.partial():
            given, named = _parts(frame, function)
            return apply(frame, function.func, [*given, *args], {**named, **keywords}, node)
        # np.ndarray.sum(x)
        case (types.MethodDescriptorType() | types.WrapperDescriptorType()
              ) if args and function not in BUILTINS:
            return apply_method(frame, args[0], function.__name__, args[1:], keywords, node)
        case types.FunctionType() | types.MethodType() if (said := logger(function)) is not None:
            return log(frame, node, said, function, args, keywords)
        case types.MethodType() if hasattr(function.__func__, "function_for"):
            owner = frame.outside(function.__self__, Fixed(function.__self__), "self")
            return apply(frame, function.__func__, [owner, *args], keywords, node)
        case type() if is_users(function):
            return instantiate(frame, function, args, keywords, node)
    return NOTHING


def _apply_vectorized(frame: Frame, given: list, options: dict, args: list, keywords: dict,
                      node: gast.AST):
    """A call of np.vectorize(*given, **options)."""
    return apply(frame, apply(frame, np.vectorize, given, options, node), args, keywords, node)


def _without_optional(frame: Frame, function, args: list, keywords: dict, node: gast.AST) -> list:
    """The arguments for a function that is not the user's: it takes no value that may be None."""
    if not any(map(has_maybe, (*args, *keywords.values()))) or is_plain(function):
        return args
    if function in (print, str, repr, isinstance, type, id, format, bool) or keywords:
        raise optional_error(f"{_name_of(function)}()", frame.line(node))
    written = getattr(node, "args", ())
    written = written if len(written) == len(args) else [None] * len(args)
    return [demand(frame, a, part) for a, part in zip(args, written)]


def _apply_special(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call that Python makes of a special method of an object's class, or of a builtin that tells
    something of each word; NOTHING for others.
    """
    if function in OF_WORDS and len(args) == 1 and isinstance(args[0], Text):
        found = by_word(frame, function, *args)
        return NOTHING if found is UNKNOWN else found
    if (hasattr(type(getattr(function, "__self__", None)), "apply_in")
        and not hasattr(function, "apply_in")):
        return function(*args, **keywords)  # a rule given to a function defined inside the program
    special = _entry(SPECIAL, function)
    if args and special is not None and (own := method_of(args[0], special)) is not None:
        return apply(frame, Method(own, args[0]), args[1:], keywords, node)
    if class_of(function) is not None:
        return apply(frame, read(frame, function, "__call__", node), args, keywords, node)
    return NOTHING


def _with_contents(frame: Frame, function, args: list, keywords: dict,
                   node: gast.AST) -> tuple[list, dict]:
    """The arguments for a function that is not the user's: contents in place of containers."""
    own = _entry(BUILTINS, function)
    if function is len and args:
        if isinstance(args[0], KeyedView):
            args = [args[0].of, *args[1:]]
        if is_keyed(args[0]):
            return args, keywords
    if is_plain(function) or function is view or own is not None and function in ABOUT_CLASSES:
        return args, keywords
    anyhow = function in (sorted, len, min, max, any, all, set, frozenset, in_any_order)
    if function is not dict:
        args = [members_of(frame, a, node, anyhow) if isinstance(a, Container) else a for a in args]
    if not hasattr(own, "opens"):
        args = [a.shown(frame) if isinstance(a, KeyedView) else a for a in args]
    if (function in ABOUT_OBJECTS or hasattr(function, "function_for")
        or hasattr(own, "opens")):
        return args, keywords
    return ([frame.contents_of(a) for a in args],
            {k: frame.contents_of(a) for k, a in keywords.items()})


def _apply_creator(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call that makes a structured array, or NOTHING."""
    made = create_records(frame, function, args, keywords, node)
    return NOTHING if made is MISSING else made


def _apply_macro(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call of a function that is expanded with the functions among its arguments, or NOTHING."""
    macro = function if isinstance(function, Macro) else _entry(MACROS, function)
    if macro is None:
        return NOTHING
    args = [nested_function(frame, a, node) if isinstance(a, FunctionValue) else a for a in args]
    args = [frame.static(a, "an option", node) if macro.is_option(k) else a
            for k, a in enumerate(args)]
    keywords = {k: frame.static(a, k, node) if macro.is_option(k) else a
                for k, a in keywords.items()}
    return macro.expand(lambda f, *xs: apply(frame, f, list(xs), {}, node), *args, **keywords)


def _apply_builtin(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call of a function that the front end evaluates on bindings, or NOTHING."""
    own = _entry(BUILTINS, function)
    if own is None or own is frame.meaning:
        return NOTHING
    try:
        _signature(own).bind(frame, node, *args, **keywords)
    except TypeError as error:
        raise frame.refuse(f"{_name_of(function)} called like this: {error}", node,
                           "use the arguments that s2s knows") from None
    try:
        return own(frame, node, *args, **keywords)
    except UNFIT as error:
        raise unfit(frame, _name_of(function), error, node) from error


def _apply_library(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call of a function of NumPy's, SciPy's or Python's that s2s knows, or NOTHING."""
    written = writer(function)
    if written is not None:
        return _write(frame, written, _name_of(function), args, keywords, node)
    if _entry(FUNCTIONS, function) is None:
        return NOTHING
    args, keywords, out = out_of(function, args, keywords)
    if out is not None:
        return write_out(frame, _caller(frame, node), function, args, keywords, out, node)
    if function in KNOWN_NOW and _all_static(frame, args, keywords):
        return _evaluate_now(frame, function, args, keywords, node)
    return operate(frame, function, args, keywords, node)


def _apply_transformed(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call of a transformed function, `s2s.grad(f)` say, or NOTHING."""
    if not hasattr(function, "function_for"):
        return NOTHING
    if frame.session.tries and getattr(function, "kind", "") == "jit":
        # its statements may raise caught exceptions
        return _apply_decorated(frame, function.inner, args, keywords, node)
    function = function.named_by(keywords) if hasattr(function, "named_by") else function
    args = in_parameter_order(frame, signature_of(function), _name_of(function), args, keywords,
                              node)
    return _emit_transformed(frame, function, args, node)


def _apply_now(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """A call that is evaluated at compile time, or NOTHING."""
    if _hashable(function) and function in KNOWN_NOW:
        if _all_static(frame, args, keywords):
            return _evaluate_now(frame, function, args, keywords, node)
        raise frame.refuse(f"{_name_of(function)}() of run-time data", node,
                           "use NumPy's functions")
    if isinstance(function, type) and issubclass(function, Enum):  # a member, by its value
        return _evaluate_now(frame, function, args, keywords, node)
    return make_exception(frame, function, args, keywords) if is_exception(function) else NOTHING


def _apply_decorated(frame: Frame, function, args: list, keywords: dict, node: gast.AST):
    """Call s2s.jit(function), whose recursive calls go by that name, and which must not write to
    its caller's arrays.
    """
    held = {
        root
        for cell in cells_in((*args, *keywords.values()))
        for root in (cell.roots if isinstance(cell, Cell) else (cell,))
    }
    before = {cell: frame.heap.contents.get(cell) for cell in held}
    found = apply(frame, function, args, keywords, node)
    if any(frame.heap.contents.get(cell) is not content for cell, content in before.items()):
        raise frame.refuse(
            f"{_name_of(function)}, which writes to its arguments, by the name of the compiled "
            "function, which leaves them as they are",
            node, "compile a function that calls it, and leave it undecorated")
    return found


# how many calls deep functions are run again with what their callers know of flags: each doubles
# the time that it takes to refuse a program
MOST_AGAIN = 4
_again: ContextVar[int] = ContextVar("calls run again", default=0)
FEW = 8  # longest range that is written out


def _takes_arrays(function) -> bool:
    """Whether a function converts a range argument to an array."""
    module = ((getattr(function, "__module__", None) or "").partition(".")[0] if _hashable(function)
              else "")
    return ((isinstance(function, np.ufunc) or module in ("numpy", "scipy"))
            and function not in (np.fromiter, np.vectorize))


def _without_ranges(frame: Frame, binding, node: gast.AST):
    """An argument for NumPy with its ranges, also those among the members of a list, converted to
    numbers or arrays.
    """
    if isinstance(binding, Iterable) and binding.is_range:
        known = [
            b if isinstance(b, int) else b.constant if isinstance(b, Value) else None
            for b in binding.bounds
        ]
        if all(isinstance(b, int) for b in known) and len(range(*known)) <= FEW:
            return tuple(range(*known))  # it may also be axes, or a shape
        return apply(frame, np.arange, list(binding.bounds), {}, node)
    members = (frame.members(binding)
               if isinstance(binding, (tuple, list)) or is_list(frame, binding)
               else None)
    if members and any(isinstance(x, Iterable) and x.is_range for x in members):
        return tuple(_without_ranges(frame, x, node) for x in members)
    return binding


# np.random.randn and its like draw from this
SHARED_STATE = Global(vars(np.random.mtrand), "_rand")
OF_SHARED_STATE = {np.random.seed: "seed", np.random.sample: "sample", np.random.ranf: "ranf"}


def _drawn_from(function) -> tuple[Callable, str] | None:
    """The getter of the generator of which `function` is a bound method, and the method's name;
    None for other functions.
    """
    rng = getattr(function, "__self__", None)
    if rng is SHARED_STATE():
        return SHARED_STATE, function.__name__
    if isinstance(rng, (np.random.Generator, np.random.RandomState)):
        return Fixed(rng), function.__name__
    name = _entry(OF_SHARED_STATE, function)
    return None if name is None else (SHARED_STATE, name)


METHODS_OF_NUMBERS = {"is_integer"}  # methods that arrays do not have
METHODS_OF_INTEGERS = {"bit_length": int.bit_length}


def apply_generator_method(frame: Frame, rng: Value, name: str, args: list, keywords: dict,
                           node: gast.Call):
    """A method call of a random number generator."""
    if name == "shuffle" and len(args) == 1 and isinstance(args[0], Cell) and not keywords:
        frame.live |= frame.pending  # the rest of the statement is still to be evaluated
        frame.write(args[0], shuffled(rng, frame.heap.read(args[0])))
        return None
    methods = METHODS_OF_RANDOM_STATES if rng.type.legacy else METHODS_OF_GENERATORS
    if name not in methods:
        raise frame.refuse(
            f"the method {name} of a generator", node,
            "draw numbers with normal, uniform, integers and their like, or before the call")
    return operate_as(frame, methods[name], f"rng.{name}", [rng, *args], keywords,
                      node)


def apply_method(frame: Frame, base, name: str, args: list, keywords: dict, node: gast.Call):
    """The binding of `base.name(*args, **keywords)`, where `base` is an array, a number or a list.
    """
    if isinstance(base, Cell) and not is_list(frame, base):
        args = [_without_ranges(frame, a, node) for a in args]
    if isinstance(base, Value) and isinstance(base.type, Generator):
        return apply_generator_method(frame, base, name, args, keywords, node)
    if isinstance(base, Cell):
        if is_list(frame, base):
            return _apply_to_list(frame, base, name, args, keywords, node)
        if name in METHOD_WRITERS:
            return _write(frame, METHOD_WRITERS[name], name, [base, *args], keywords, node)
        if keywords.get("out") is not None and name in METHODS:
            function = getattr(np, name, None)
            if function in FUNCTIONS:
                return apply(frame, function, [base, *args], keywords, node)
    elif isinstance(base, Container):
        found = dict_method(frame, base, name, args, keywords, node)
        return new_dict_at(frame, found, node) if name == "copy" else found
    elif isinstance(base, (tuple, list)) and name in ("count", "index"):
        found = _by_identity(frame, base, name, args)
        if found is not NOTHING:
            return found
        with guarding(frame):
            return apply_list_method(frame, new_list(frame, base), name, args, keywords, node)
    elif isinstance(base, (tuple, list)):
        raise frame.refuse(f"the method {name} of a {type(base).__name__}", node, "use a list")
    elif not isinstance(base, Value):
        if (_all_static(frame, args, keywords)
            and isinstance(base, (str, int, float, complex, np.dtype))):
            return _evaluate_now(frame, getattr(base, name), args, keywords, node)
        if isinstance(base, (str, Text)) and not keywords:
            found = by_word(frame, lambda x, *rest: getattr(x, name)(*rest), base, *args)
            if found is not UNKNOWN:
                return found
        if isinstance(base, str):
            return text_method(frame, node, base, name, args, keywords)
        raise frame.refuse(f"the method {name} of a {type(base).__name__}", node,
                           "use arrays and numbers")
    if (name in METHODS_OF_INTEGERS
        and (dtype_of(base.type) if isinstance(base, Value) else "") in ("int64", "bool")):
        return apply(frame, METHODS_OF_INTEGERS[name], [base, *args], keywords, node)
    if name in METHODS_OF_NUMBERS and rank(frame.value(base)):
        raise frame.refuse(f"the method {name} of an array", node,
                           "call it of each element, or ask x == np.floor(x)")
    if name not in METHODS:
        raise frame.refuse(f"the method {name}", node,
                           "use a NumPy function that s2s knows, or write a loop")
    return operate_as(frame, METHODS[name], name, [base, *args], keywords, node, True)


def _apply_to_list(frame: Frame, xs: Cell, name: str, args: list, keywords: dict, node: gast.Call):
    if name == "sort":
        return put_in_order(frame, xs, apply(frame, sorted, [xs, *args], keywords, node))
    found = _by_identity(frame, xs, name, args)
    if found is not NOTHING:
        return found
    if name == "extend":
        args = [frame.session.listed(frame, frame.contents_of(a)) for a in args]
    with guarding(frame):
        return apply_list_method(frame, xs, name, args, keywords, node)


def _by_identity(frame: Frame, base, name: str, args: list):
    """`xs.index(x)` and the like, of an object that is compared by identity; NOTHING for others."""
    items = frame.members(base)
    if name not in ("index", "count", "remove") or len(args) != 1:
        return NOTHING
    if name == "count" and items and (found := count_word(frame, items, args[0])) is not UNKNOWN:
        return found
    found = matches(items, args[0])
    if found is None or name != "count" and True not in found:
        return NOTHING
    if name == "remove":
        return apply_list_method(frame, base, "pop", [found.index(True)], {}, None) and None
    return getattr(found, name)(True)


# ---------------------------------------------------------------------------------------------- ops


def operate(frame: Frame, function: Callable, args: list, keywords: dict, node: gast.AST):
    """A call of a function that has an op."""
    return operate_as(frame, FUNCTIONS[function], _name_of(function), args, keywords, node,
                      function=function)


def operate_as(frame: Frame, rule: Callable, name: str, args: list, keywords: dict, node: gast.AST,
               method: bool = False, function=None):
    """Emit the ops of `rule`, and find the memory that the result shares."""
    if function in OF_ROWS and args:
        args = [_rows(frame, args[0], node), *args[1:]]
    rule, args = _rule_of_list(frame, rule, function, args)
    values = [frame.value(a) for a in args]
    named = {
        k: frame.static(v, k) if frame.is_static(v) else frame.value(v)
        for k, v in keywords.items()
    }
    cells = {
        frame.heap.read(cell): cell
        for a in args
        for cell in cells_in(a) if isinstance(cell, Cell)
    }
    try:
        with guarding(frame, getattr(np, name, np.sum) if method else function):
            result, values, named = _with_static_options(frame, rule, values, named)
    except ArrayNeededError as error:
        listed = [k for k, x in enumerate(values) if x is error.value and is_listed(x.type)]
        if not listed or function in (np.array, np.asarray):
            raise
        args = [
            apply(frame, np.array, [a], {}, node) if k in listed else a for k, a in enumerate(args)
        ]
        return operate_as(frame, rule, name, args, keywords, node, method, function)
    except S2SError:
        raise
    except TypeError as error:
        text = str(error).replace("<lambda>()", f"{name}()").replace("_infer", name)
        text = text.replace(f"{getattr(rule, '__name__', name)}()", f"{name}()")
        text = text.partition(". Did you mean")[0]  # newer Pythons append suggestions
        raise frame.refuse(f"{name} called like this: {text}", node,
                           "use the arguments that s2s knows") from error
    except UNFIT as error:
        raise unfit(frame, name, error, node) from error
    if isinstance(result, tuple):
        return tuple(shared_result(frame, r, name, args, named, cells) for r in result)
    return shared_result(frame, result, name, args, named, cells,
                         lambda x: rule(x, *values[1:], **named), method,
                         (*values[1:], *(v for v in named.values() if isinstance(v, Value))))


# errors of rules for arguments that they do not support, as in Python
UNFIT = (TypeError, ValueError, IndexError, OverflowError)


def unfit(frame: Frame, name: str, error: Exception, node: gast.AST) -> Exception:
    """The refusal of a call of `name` whose rule has raised `error`; `error` itself if the call has
    run code of the program's.
    """
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_name in ("activation", "_apply_local", "instantiate"):
            return error
        place = place.tb_next
    if isinstance(error, S2SError) or hasattr(error, "line_of_program"):  # emission has failed
        return error
    kind = (TypeMismatchError
            if isinstance(error, TypeError)
            else ShapeMismatchError
            if isinstance(error, ValueError)
            else UnsupportedError)
    return kind(f"{name} called like this: {error}", frame.line(node),
                "use the arguments that s2s knows")


def _with_static_options(frame: Frame, rule: Callable, values: list, named: dict) -> tuple:
    """The result of rule(*values, **named) and its arguments; captured numbers that must be static,
    such as an axis, are read now.
    """
    while True:
        try:
            return rule(*values, **named), values, named
        except UndecidedError as error:
            known = frame.read_now(error.value)
            if known is MISSING:
                raise
            values = [_substitute(x, error.value, value(known)) for x in values]
            named = {k: _substitute(x, error.value, value(known)) for k, x in named.items()}


def _substitute(x, old: Value, new: Value):
    """`x` with `old` replaced by `new`, also inside tuples."""
    if x is old:
        return new
    if isinstance(x, Value) and x.op is not None and x.op.name == "tuple":
        items = [_substitute(item, old, new) for item in x.op.inputs]
        if any(a is not b for a, b in zip(items, x.op.inputs)):
            return RECORDS["tuple"](*items)
    return x


def _write(frame: Frame, rule: Callable, name: str, args: list, keywords: dict,
           node: gast.AST) -> None:
    """A call of a function that writes into its argument and returns nothing."""
    named = {k: frame.static(v, k) if frame.is_static(v) else v for k, v in keywords.items()}
    try:
        _signature(rule).bind(frame, None, node, *args, **named)
    except TypeError as error:
        raise frame.refuse(f"{name} called like this: {error}", node,
                           "use the arguments that s2s knows") from None
    with guarding(frame, np.add):
        rule(frame, _caller(frame, node), node, *args, **named)


def _rule_of_list(frame: Frame, rule: Callable, function, args: list) -> tuple[Callable, list]:
    """`rule`, or the counterpart of `function` for run-time lists; other functions receive them as
    arrays.
    """
    def grows(a) -> bool:
        return isinstance(a, Cell) and is_list(frame, a) and frame.heap.items(a) is None

    if args and grows(args[0]) and _hashable(function) and function in OF_LISTS:
        return OF_LISTS[function], args
    return rule, [list_stack(frame.value(a)) if grows(a) else a for a in args]


def _rows(frame: Frame, a, node: gast.AST):
    """`a`; of a run-time list of tuples of numbers, the array of its rows, stacked from its
    columns.
    """
    content = (frame.heap.type_of(a)
               if isinstance(a, Cell) and is_list(frame, a) and frame.heap.items(a) is None
               else None)
    if not isinstance(content, List) or not is_listed(content.item):
        return a
    columns = [
        in_place(frame, column, [a, k], {}, node,
                 current().line) for k in range(len(content.item.items))
    ]
    return apply(frame, np.stack, [tuple(apply(frame, np.array, [c], {}, node) for c in columns)],
                 {"axis": 1}, node)


def _caller(frame: Frame, node: gast.AST) -> Callable:
    """A Python function (f, *args, **keywords) that calls f in the program; code in library/ gets
    the user's line.
    """

    def call(function, *args, **keywords):
        if getattr(function, "__module__", "") == writer.__module__:
            return in_place(frame, function, list(args), keywords, node, current().line)
        return apply(frame, function, list(args), keywords, node)

    return call


def _evaluate_now(frame: Frame, function: Callable, args: list, keywords: dict, node: gast.AST):
    try:
        return function(*(frame.static(a, "this") for a in args), **{
            k: frame.static(v, k)
            for k, v in keywords.items()
        })
    except Exception as error:
        guard(frame, type(error), lambda: True, *error.args)
        raise TypeMismatchError(f"{_name_of(function)}: {error}", frame.line(node)) from error


def _all_static(frame: Frame, args: list, keywords: dict) -> bool:
    return all(map(frame.is_static, (*args, *keywords.values())))


def _hashable(x) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _entry(table: dict, function):
    """The entry of `function` in a table of functions, or None."""
    return table.get(function) if _hashable(function) else None


def _name_of(function) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _called_name(function) -> str:
    """The name in generated code of a call of a function, which may be one of the program's own."""
    while isinstance(function, (CheckpointedFunction, Partial, Method, functools.partial, Object)):
        function = (function.content if isinstance(function, Object)
                    else getattr(function, "function", getattr(function, "func", None)))
    name = (getattr(function.node, "name", "f") if isinstance(function, Local)
            else _name_of(function))
    return identifier(name)


def _is_of_numpy(function) -> bool:
    module = getattr(function, "__module__", "") or ""
    return module.split(".")[0] in ("numpy", "scipy", "math", "cmath", "builtins")


def _unknown(frame: Frame, function, node: gast.AST) -> UnsupportedError:
    name = getattr(function, "__qualname__", None) or _name_of(function)
    if _is_of_numpy(function) or isinstance(function, np.ufunc):
        of_numpy = (getattr(np, name, None) is function if isinstance(function, np.ufunc)
                    else function.__module__.startswith("numpy"))
        module = "np." if of_numpy else "scipy.special." if isinstance(function, np.ufunc) else \
            "" if function.__module__ == "builtins" else f"{function.__module__}."
        return frame.refuse(f"s2s does not know {module}{name}", node,
                            "write it with functions that s2s knows, or as a loop")
    if not callable(function):
        return frame.refuse(f"a {type(function).__name__} is called", node, "call a function")
    base = next((c for c in getattr(function, "__mro__", ()) if c in CONTAINERS), None)
    if base is not None:
        return frame.refuse(
            f"{name} is a class of its own of {base.__name__}s", node,
            "derive it from typing.NamedTuple, or hold the tuple in an attribute"
            if base is tuple else f"hold the {base.__name__} in an attribute of a plain class")
    return frame.refuse(f"s2s cannot look into {name}", node,
                        "write it in Python, with numbers and arrays")


# --------------------------------------------------------------------------------- Python functions


def _apply_python(frame: Frame, function: Callable, args: list, keywords: dict, node: gast.AST):
    """A call of a user's function, or of one in s2s/library."""
    if (function.__module__ or "").rpartition(".")[0] == LIBRARY:
        return in_place(frame, function, args, keywords, node, current().line)
    if (frame.session.tries or may_call_itself(function)
        or is_generator_function(plain_function(function)[0])
        or any(_needs_the_caller(frame, a) for a in (*args, *keywords.values()))):
        return in_place(frame, function, args, keywords, node)
    if frame.session.recursions:
        plain, owner = plain_function(function)
        if plain is not None and is_open(frame, reachable_functions(plain, owner)):
            return in_place(frame, function, args, keywords, node)
    in_order = in_parameter_order(frame, signature_of(function), _name_of(function), args, keywords,
                                  node)
    if any(_needs_the_caller(frame, a) for a in in_order):
        return in_place(frame, function, args, keywords, node)
    values = [frame.value(a) for a in in_order]
    callee = frame.session.callee(function, len(values))
    try:
        built = callee.built_for(values)
    except S2SError as error:  # a value may be known to the caller alone
        if isinstance(error, (NeedsInlining, UndecidedError)):
            return in_place(frame, function, args, keywords, node)
        deciding = [values[k] for k in error.parameters if k < len(values)]
        error.conditions = (*error.conditions, *deciding)  # and the caller's own arguments may
        # a length of the callee's is one of the caller's
        error.extent = next((dim for k in error.lengths if k < len(values)
                             for dim in dims_of(values[k].type) if isinstance(dim, Extent)), None)
        if (_again.get() == MOST_AGAIN
            or all(x.constant is MISSING for x in deciding)):
            raise
        before = _again.set(_again.get() + 1)
        try:
            return in_place(frame, function, args, keywords, node)
        except S2SError as inner:
            error.carriers |= inner.carriers  # what the caller may still try
            error.unrolled |= inner.unrolled
            raise error from None
        finally:
            _again.reset(before)
    filters = frame.session.filters
    if built.in_place or filters and warns_of(built.function, filters):
        return in_place(frame, function, args, keywords, node)
    return rebind(frame.heap, _emit_call(frame, callee, values, node), built.identities)


def is_plain(function) -> bool:
    """Whether a function is the user's own, in Python."""
    return (isinstance(function, types.FunctionType) and not _is_of_numpy(function)
            and function not in BUILTINS and function not in FUNCTIONS and function not in MACROS)


def _needs_the_caller(frame: Frame, binding) -> bool:
    """Whether an argument exists only at compile time: a function, module, object, range or list.
    """
    match binding:
        case Maybe():
            return True
        case tuple() | list():
            return any(_needs_the_caller(frame, b) for b in binding)
        case slice():
            return not frame.is_static(binding)
        case (FunctionValue() | Object() | Iterable() | Container() | dict() | Text()
              | ExceptionObject() | types.ModuleType()):
            return True
        case Cell() if is_list(frame, binding):
            return True
        case Value() | Cell():
            return False
        case type():
            # dtypes are arguments
            return not issubclass(binding, (bool, int, float, complex, np.generic))
    return callable(binding)


def in_parameter_order(frame: Frame, signature: inspect.Signature, name: str, args: list,
                       keywords: dict, node) -> list:
    """The arguments in the order of the parameters, with defaults filled in and `*args` spread."""
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeMismatchError(f"{name}(): {error}", frame.line(node),
                                "pass the arguments that it takes") from None
    found = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            found += bound.arguments.get(parameter.name, ())
        elif parameter.kind is parameter.VAR_KEYWORD:
            if bound.arguments.get(parameter.name):
                # a dict, which a `call` op does not take
                found.append(bound.arguments[parameter.name])
        elif parameter.name in bound.arguments:
            found.append(bound.arguments[parameter.name])
        else:
            found.append(default_binding(frame, parameter.default, parameter.name))
    return found


def default_binding(frame: Frame, default, name: str):
    """The binding of a parameter's default."""
    if (isinstance(default, (np.ndarray, list, dict))
        or (isinstance(default, tuple) and not frame.is_static(default))):
        return frame.outside(default, Fixed(default), name)
    return default


def _emit_transformed(frame: Frame, function, args: list, node: gast.AST):
    """A call of a transformed function; its compile-time arguments are no operands."""
    fixed = function.static_positions(len(args)) if hasattr(function, "static_positions") else ()
    known = {
        k: frame.static(a, "a static argument", node)
        for k, a in enumerate(args) if k in fixed
        or isinstance(a, Object) and not isinstance(a.content, (list, dict)) or isinstance(a, type)
    }
    for k, a in enumerate(args):
        if isinstance(a, Object):
            note_dependency(a.getter, a.content)
    while True:
        try:
            if not known:
                return _emit_call(frame, function, args, node)
            values = [value(None) if k in known else frame.value(a) for k, a in enumerate(args)]
            made = function.function_for_types(
                [Static(known[k]) if k in known else v.type for k, v in enumerate(values)])
            return _results(frame, made,
                            emit_block(made.block, [*values, *captured_in(frame, made)], {}))
        except UndecidedError as error:  # for example an axis, which may be static here
            more = [k for k in error.parameters if k < len(args) and k not in known]
            if len(more) == 1 and not frame.is_static(args[more[0]]):
                error.value = frame.value(args[more[0]])
            if not more or not all(frame.is_static(args[k]) for k in more):
                raise
            known.update({k: frame.static(args[k], "an argument", node) for k in more})


def _results(frame: Frame, function, outputs):
    """The binding of the results of a call of `function`."""
    if acts(function):
        record_effect()
    if never_returns(function):
        raise PathEnded
    results = tuple(map(frame.wrap, outputs))
    return results if function.tupled else results[0]


def captured_in(frame: Frame, function) -> list[Value]:
    """The captures of `function`, captured by the caller."""
    first = len(function.params) - len(function.captures)
    found = []
    for param, (name, getter) in zip(function.params[first:], function.captures.items()):
        if isinstance(getter, EnclosingValue):
            found.append(getter.value)
            continue
        kept = frame.kept_outside(getter, name)
        found.append(frame.value(frame.captured(param.type, getter, name) if kept is MISSING
                                 else kept))
    return found


def _emit_call(frame: Frame, callee, args: list, node: gast.AST):
    """A `call` op; the captures of the callee become captures of the caller and operands."""
    values = [frame.value(a) for a in args]
    with collect_dependencies() as found:
        function = callee.function_for(values)
    note_asked(frame, found)
    require_quiet(frame, function, _name_of(callee), node)
    written = written_by_callee(frame, function)
    values += captured_in(frame, function)
    frame.session.outside.inner |= written
    if any(isinstance(getter, EnclosingValue) for getter in function.captures.values()):
        # it cannot be rebuilt outside this program
        outputs = emit_block(function.block, values, {})
    else:
        outputs = emit(call_record, *values, callee=callee)
    return _results(frame, function, outputs)


def _parts(frame: Frame, function: functools.partial) -> tuple[list, dict]:
    """The arguments held by a functools.partial from outside."""
    owner = Fixed(function)
    given = [
        frame.outside(x, Item(Member(owner, "args"), k), name)
        for k, (x,
                name) in enumerate(zip(function.args, names_of(function.func, len(function.args))))
    ]
    return given, {
        k: frame.outside(x, Item(Member(owner, "keywords"), k), k)
        for k, x in function.keywords.items()
    }


def nested_function(frame: Frame, function: FunctionValue, node: gast.AST) -> NestedFunction:
    """A function defined inside the program, as an operand of a transformation."""
    name = (getattr(function.node, "name", "f") if isinstance(function, Local)
            else getattr(function, "name", "f"))

    def run(args: list):
        before, around = dict(frame.heap.contents), names_around(frame)
        result = apply(frame, function, args, {}, node)
        if was_written(frame, before) or any(
                at.env.get(each) is not then for at, each, then in around if each.isidentifier()):
            raise frame.refuse(f"{name}, which the program transforms, writes to what lies around "
                               "it", node, "return what changes, and store it after the call")
        return result

    return NestedFunction(name, _made_signature(frame, function, node), run, frame)


def _made_signature(frame: Frame, function, node: gast.AST) -> inspect.Signature:
    """The signature of a function defined inside the program."""
    match function:
        case Local():
            return local_signature(function)
        case Partial():
            inner = list(_made_signature(frame, function.function, node).parameters.values())
            return inspect.Signature(
                [p for p in inner[len(function.args):] if p.name not in function.keywords])
        case ConditionalFunction(_, (first, _)) | CheckpointedFunction(first):
            return _made_signature(frame, first, node)
        case Intrinsic(signature=inspect.Signature()):
            return function.signature
        case FunctionValue():
            raise frame.refuse("a transformation of this function", node,
                               "write a lambda around it")
    return signature_of(function)


def in_place(frame: Frame, function: Callable, args: list, keywords: dict, node: gast.AST,
             place: Line | None = None, meaning: Callable | None = None):
    """Inline a function of the user's, or one that implements the line `place`, and is the
    `meaning` of the function called there, on the caller's own bindings.
    """
    target = target_of(function)
    plain = target.function
    if plain.__module__ == Set.__module__:
        place = current().line
    args = [*(_held(frame, getter, f"arg{k}") for k, getter in enumerate(target.arguments)), *args]
    bound = {name: _held(frame, getter, name) for name, getter in target.keywords}
    keywords = {**bound, **keywords}
    definition = definition_of(plain)
    bindings = bound_arguments(frame, signature_of(plain), plain.__name__, args, keywords, node)
    # those of s2s's own do not
    if (place is None and (may_call_itself(function) or calls_itself(frame, definition.node))
            and not is_unrolled(frame, definition.node, bindings, node)):
        return call_recursive(frame, outside_definition(plain), bindings, node)
    closure = dict(zip(plain.__code__.co_freevars, plain.__closure__ or ()))

    def activation(node_run, names):
        inner = Frame(node_run,
                      lambda_body(node_run) if isinstance(node_run, gast.Lambda) else node_run.body,
                      definition.source, frame.session, plain.__globals__, closure, caller=frame,
                      place=place, meaning=meaning)
        return run(inner, {**bindings, **names}, node)

    if is_generator(definition.node):
        return run_generator(frame, node, definition.node, list(bindings.values()), activation)
    if place is not None:
        return activation(definition.node, {})
    return note(frame.session, definition.node, definition_name(plain), definition.source,
                bindings, lambda: activation(definition.node, {}))


def definition_name(plain: types.FunctionType) -> str:
    """The name of a function in generated code: of a special method, that of its class."""
    *_, owner, name = "", *plain.__qualname__.split(".")
    return identifier(owner.lower() if name.startswith("__") else name)


def run_part(frame: Frame, function, part: gast.FunctionDef, args: list, keywords: dict,
             node: gast.AST):
    """Inline `part`, which stands for a part of the body of a function of the user's."""
    if isinstance(function, Local):
        own, outer, signature = function.node, function.frame, local_signature(function)
        inner = Frame(part, part.body, outer.source, frame.session, outer.globals, outer.closure,
                      outer, frame, place=outer.place, meaning=outer.meaning,
                      foreign=outer.foreign)
    else:
        definition, signature = definition_of(function), signature_of(function)
        own, cells = definition.node, function.__closure__ or ()
        inner = Frame(part, part.body, definition.source, frame.session, function.__globals__,
                      dict(zip(function.__code__.co_freevars, cells)), caller=frame)
    bindings = (bound_arguments(frame, signature, own.name, args, keywords, node)
                if part.args is own.args else dict(zip(parameter_names(part), args)))
    borrowed = borrow(inner, node) if isinstance(function, Local) else ()
    result = run(inner, bindings, node)
    for name in borrowed:
        frame.env[name] = inner.env[name]
    return result


def outside_definition(plain: types.FunctionType) -> Definition:
    """The Definition of a module-level function, which may be recursive."""
    definition = definition_of(plain)
    closure = dict(zip(plain.__code__.co_freevars, plain.__closure__ or ()))
    return Definition(("outside", id(plain)), identifier(plain.__name__), definition.node,
                      definition.body, definition.source, plain.__globals__, closure,
                      doc=inspect.cleandoc(plain.__doc__ or ""), function=plain)


def _held(frame: Frame, getter: Callable, name: str):
    content = getter()
    return frame.outside(content, getter, "self" if not is_data(content) else name)


def _apply_local(frame: Frame, local: Local, args: list, keywords: dict, node: gast.AST):
    """Run a lambda or a nested function of the program."""
    body = lambda_body(local.node) if isinstance(local.node, gast.Lambda) else local.node.body
    signature = local_signature(local)
    name = getattr(local.node, "name", "lambda")
    bindings = bound_arguments(frame, signature, name, args, keywords, node)
    outer = local.frame
    if ((local_may_call_itself(local) or calls_itself(frame, local.node))
            and not is_unrolled(frame, local.node, bindings, node, outer)):
        definition = Definition(("inside", id(local.node), id(outer)), identifier(name), local.node,
                                body, outer.source, outer.globals, outer.closure, outer)
        return call_recursive(frame, definition, bindings, node)

    def activation(definition, body, names):
        inner = Frame(definition, body, outer.source, frame.session, outer.globals, outer.closure,
                      outer, frame, place=outer.place, meaning=outer.meaning,
                      foreign=outer.foreign)
        borrowed = borrow(inner, node)
        result = run(inner, {**bindings, **names}, node)
        for name in borrowed:
            frame.env[name] = inner.env[name]
        return result

    if is_generator(local.node):
        return run_generator(frame, node, local.node, [*bindings.values(), local],
                             lambda made, names: activation(made, made.body, names))
    return note(frame.session, local.node, identifier(name, "inner"), outer.source,
                bindings, lambda: activation(local.node, body, {}))


def local_signature(local: Local) -> inspect.Signature:
    """The signature of a function defined inside the program."""
    a, kind = local.node.args, inspect.Parameter
    parameters = [kind(x.id, kind.POSITIONAL_ONLY) for x in a.posonlyargs]
    parameters += [kind(x.id, kind.POSITIONAL_OR_KEYWORD) for x in a.args]
    parameters += [kind(a.vararg.id, kind.VAR_POSITIONAL)] if a.vararg else []
    parameters += [kind(x.id, kind.KEYWORD_ONLY) for x in a.kwonlyargs]
    parameters += [kind(a.kwarg.id, kind.VAR_KEYWORD)] if a.kwarg else []
    return inspect.Signature(
        [p.replace(default=local.defaults.get(p.name, kind.empty)) for p in parameters])


def bound_arguments(frame: Frame, signature: inspect.Signature, name: str, args: list,
                    keywords: dict, node: gast.AST) -> dict:
    """Parameter names and the bindings of their arguments."""
    try:
        bound = signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeMismatchError(f"{name}(): {error}", frame.line(node),
                                "pass the arguments that it takes") from None
    bindings = {}
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            bindings[parameter.name] = frame.heap.new_container(
                dict, bound.arguments.get(parameter.name, {}))
        elif parameter.name in bound.arguments:
            given = bound.arguments[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL and isinstance(given[0], Spread):
                given = given[0].items
            bindings[parameter.name] = given
        elif parameter.kind is parameter.VAR_POSITIONAL:
            bindings[parameter.name] = ()
        else:
            bindings[parameter.name] = default_binding(frame, parameter.default, parameter.name)
    return bindings
