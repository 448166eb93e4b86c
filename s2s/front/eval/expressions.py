"""Evaluate expressions: dispatch on the node of the syntax tree and return a binding."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterator

import gast
import numpy as np

from ...errors import S2SError, TypeMismatchError
from ...ir.builder import at, current
from ...ir.graph import Value
from ...ir.types import Array, List, Tuple
from ...library import sequences
from ...library.containers import Keyed
from ...ops.core.record import (
    emit,
    value,
)
from ..control.generators import consumed_at_once
from ..control.iterables import Iterable
from ..control.iterators import OneShotIterator, once
from ..control.join import branch, with_either
from ..domain.frame import Frame, Object
from ..domain.functions import (
    ConditionalObject,
    Generator,
    GrowsFixedList,
    Local,
    Method,
    Spread,
)
from ..domain.heap import Cell, Container
from ..domain.optional import Maybe
from ..syntax.read_helpers import operands_of, record_of_helper
from ..values.captured_dicts import is_captured_dict, is_key, item_or
from ..values.captured_writes import (
    is_outside,
    write_method,
)
from ..values.dicts import is_keyed, key_in, new_dict, pairs, runtime_keys
from ..values.lists import (
    WRITES,
    is_list,
    new_list,
    place_in,
    run_time_tuple,
)
from ..values.maybe_unbound import read_name
from ..values.objects import (
    class_of,
    constructor_of,
    is_users,
    make_set,
    new_dict_at,
)
from ..values.objects import write as write_attribute
from ..values.overloads import NOTHING
from ..values.raise_guards import guard_list_index, guarding
from ..values.strings import format_fstring
from ..values.subscript import put, take, unpack
from ..values.unwrap import demand
from .apply import apply, apply_method, in_place, local_signature
from .attributes import attribute
from .call_by_index import choice_at, choices_in
from .operators import binary, compare, decide, negation, truth, unary
from .python_builtins import BUILTINS
from .unwrap_callable import signature_of

# functions that are indexed
GRIDS = (type(np.mgrid), type(np.ogrid), type(np.r_), type(np.c_))


def evaluate(frame: Frame, node: gast.AST):
    """The binding of an expression, unwrapped if it is an optional number."""
    binding = evaluate_any(frame, node)
    if not isinstance(binding, Maybe):
        return binding
    with at(frame.line(node)):
        return demand(frame, binding, node)


def evaluate_any(frame: Frame, node: gast.AST):
    """The binding of an expression, which may be a Maybe."""
    match node:
        case gast.Constant():
            return node.value
        case gast.Name():
            return read_name(frame, node.id, node)
    with at(frame.line(node)):
        try:
            return _evaluate(frame, node)
        except S2SError as error:
            if error.line is None:
                error.line = frame.line(node)
            raise


def _evaluate(frame: Frame, node: gast.AST):
    match node:
        case gast.BinOp():
            return binary(frame, node.op, evaluate(frame, node.left), evaluate(frame, node.right),
                          node)
        case gast.UnaryOp(op=gast.Not()):
            return negation(condition(frame, node.operand))
        case gast.UnaryOp():
            return unary(frame, node.op, evaluate(frame, node.operand), node)
        case gast.BoolOp():
            return _short_circuit(frame, isinstance(node.op, gast.And), node.values, evaluate_any)
        case gast.Compare():
            return _chain(frame, node, evaluate_any(frame, node.left), 0)
        case gast.IfExp():
            return branch(frame, condition(frame,
                                           node.test), lambda: evaluate_any(frame, node.body),
                          lambda: evaluate_any(frame, node.orelse), frame.live | frame.pending)
        case gast.Call():
            return _call(frame, node)
        case gast.Attribute():
            return attribute(frame, evaluate(frame, node.value), node.attr, node)
        case gast.Subscript():
            return _subscript(frame, node)
        case gast.Tuple():
            return tuple(_items(frame, node.elts))
        case gast.List():
            return _list(frame, node)
        case gast.NamedExpr():
            return _named(frame, node)
        case gast.Lambda():
            return make_local(frame, node)
        case gast.ListComp() | gast.GeneratorExp():
            return frame.session.comprehension(frame, node)
        case gast.JoinedStr():
            return format_fstring(frame, node, evaluate)
        case gast.Await() | gast.Yield() | gast.YieldFrom():
            raise frame.refuse("generators and coroutines", node,
                               "return the values, in an array if there are many")
        case gast.Dict():
            return _dict(frame, node)
        case gast.DictComp():
            return _dict_comprehension(frame, node)
        case gast.Set() | gast.SetComp():
            members = (tuple(_items(frame, node.elts)) if isinstance(node, gast.Set)
                       else frame.session.comprehension(frame, node))
            return make_set(frame, node, members)
    raise frame.refuse(f"the syntax {type(node).__name__}", node, "write it with plain statements")


def _subscript(frame: Frame, node: gast.Subscript):
    base = evaluate(frame, node.value)
    key = key_of(frame, node.slice)
    if isinstance(base, ConditionalObject):
        return with_either(frame, base, lambda x: take(frame, x, key))
    if isinstance(base, GRIDS):
        return BUILTINS[base](frame, node, *(key if isinstance(key, tuple) else (key,)))
    choices = (choices_in(frame, base, key)
               if isinstance(key, (Value, Cell)) and not frame.is_static(key)
               else None)
    return choice_at(frame, choices, key) if choices else take(frame, base, key)


def _dict_comprehension(frame: Frame, node: gast.DictComp) -> Container:
    made = frame.session.comprehension(frame, node)
    if isinstance(made, Container):
        return made
    members = {key_in(frame, key, node): member for key, member in frame.heap.items(made)}
    return new_dict_at(frame, new_dict(frame, members), node)


def _dict(frame: Frame, node: gast.Dict) -> Container:
    if node in frame.session.keyed:
        return _keyed_dict(frame, node)
    members: dict = {}
    for key, item in zip(node.keys, node.values):
        if key is None:  # `**other`
            other = evaluate(frame, item)
            if is_keyed(other):
                raise runtime_keys(node)
            members.update(pairs(frame, other, node))
        else:
            so_far = new_dict(frame, members)
            so_far.site = node
            key = key_in(frame, evaluate(frame, key), node, so_far)
            members[key] = evaluate_any(frame, item)
    made = new_dict(frame, members)
    for key, binding in members.items():
        frame.name_member(made, key, binding)
    return new_dict_at(frame, made, node)


def _named(frame: Frame, node: gast.NamedExpr):
    """`target := value`."""
    binding = evaluate_any(frame, node.value)
    if isinstance(node.target, gast.Attribute):  # a variable that an object holds
        owner = evaluate(frame, node.target.value)
        write_attribute(frame, owner, node.target.attr, binding, node.target)
        return binding
    frame.bind(node.target.id, binding)
    return frame.env[node.target.id]


def _keyed_dict(frame: Frame, node: gast.Dict) -> Container:
    """A dict some of whose keys are known only at run time: they are set one by one."""
    made = new_dict_at(frame, new_dict(frame, {}), node)
    name = f"<dict {node.lineno} {node.col_offset}>"
    frame.env[name] = made  # nobody else has it yet
    for key, item in zip(node.keys, node.values):
        each = None if key is None else evaluate(frame, key)
        binding = evaluate_any(frame, item)
        if key is not None:
            put(frame, made, each, binding)
        elif is_keyed(binding):
            frame.session.call(frame, Method(Keyed.update, made), [binding], {}, node)
        else:
            for each, member in pairs(frame, binding, node).items():
                put(frame, made, each, member)
    frame.env.pop(name)
    return made


def _items(frame: Frame, nodes: list) -> list:
    items = []
    for node in nodes:
        if isinstance(node, gast.Starred):
            items += _spread(frame, evaluate(frame, node.value), node)
        else:
            items.append(evaluate_any(frame, node))
    return items


def _list(frame: Frame, node: gast.List):
    """A list; with `*` of something of run-time length, several lists joined."""
    return _joined(frame, ((evaluate(frame, each.value), True) if isinstance(each, gast.Starred)
                           else (evaluate_any(frame, each), False) for each in node.elts), node)


def _joined(frame: Frame, members: Iterator[tuple], node: gast.AST) -> Cell:
    """A list of members, each of which is an item, or something with `*` before it."""
    parts, items = [], []
    for binding, is_starred in members:
        listed = _list_of_starred(frame, binding) if is_starred else None
        if listed is None:
            items.append(binding)
        elif (members := frame.members(listed)) is not None:
            items += members
        else:
            parts += [new_list(frame, items), listed] if items else [listed]
            items = []
    if items or not parts:
        parts.append(new_list(frame, items))
    return functools.reduce(lambda a, b: binary(frame, gast.Add(), a, b, node), parts)


def _list_of_starred(frame: Frame, binding):
    """The operand of `*`, as a list of its own."""
    binding = frame.contents_of(binding)
    if isinstance(binding, Container) and binding.is_dict:
        binding = tuple(binding.members)
    return frame.session.listed(frame, binding)


def _spread(frame: Frame, binding, node: gast.AST) -> list:
    members = frame.members(_list_of_starred(frame, binding))
    if members is None:
        error = GrowsFixedList("`*` before something whose length is known only at run time",
                               frame.line(node),
                               "name the members first, a, b, c = xs, or pass xs itself")
        error.extent = frame.run_time_length(binding)
        raise error
    return list(members)


def key_of(frame: Frame, node: gast.AST):
    """The binding of a subscript: slices become slices of bindings."""
    match node:
        case gast.Slice():
            return slice(*(None if b is None else evaluate(frame, b)
                           for b in (node.lower, node.upper, node.step)))
        case gast.Tuple():
            return tuple(key_of(frame, item) for item in node.elts)
        case gast.List():
            with at(frame.line(node)):
                return apply(frame, np.array, [evaluate(frame, node)], {}, node)
    return evaluate(frame, node)


# ---------------------------------------------------------------------------------------- operators


def condition(frame: Frame, node: gast.AST) -> Value:
    """The truth of an expression in a context where only its truth matters."""
    match node:
        case gast.BoolOp():
            with at(frame.line(node)):
                return truth(
                    frame,
                    _short_circuit(frame, isinstance(node.op, gast.And), node.values, condition),
                    node)
        case gast.UnaryOp(op=gast.Not()):
            return value(negation(condition(frame, node.operand)))
        case gast.Compare() if len(node.ops) > 1:
            with at(frame.line(node)):
                return truth(frame, _chain(frame, node, evaluate_any(frame, node.left), 0, True),
                             node)
    return truth(frame, evaluate_any(frame, node), node)


def _short_circuit(frame: Frame, both: bool, nodes: list, operand: Callable):
    """`a and b and ...` (both) or `a or b or ...`: the deciding operand; `operand` evaluates them.
    """
    first = operand(frame, nodes[0])
    if len(nodes) == 1:
        return first
    return decide(frame, both, first, lambda: _short_circuit(frame, both, nodes[1:], operand),
                  nodes[0], operand is condition)


def _chain(frame: Frame, node: gast.Compare, left, k: int, truth_only: bool = False):
    right = evaluate_any(frame, node.comparators[k])
    first = compare(frame, node.ops[k], left, right, node)
    if k + 1 == len(node.ops):
        return first
    return decide(frame, True, first, lambda: _chain(frame, node, right, k + 1, truth_only), node,
                  truth_only)


# ----------------------------------------------------------------------------- calls and attributes


def _call(frame: Frame, node: gast.Call):
    method = None
    if isinstance(node.func, gast.Attribute):
        reader = place_of if node.func.attr in WRITES else evaluate
        base = reader(frame, node.func.value)
        if node.func.attr == "get" and is_captured_dict(base):
            found = _entry_outside(frame, base, node)
            if found is not NOTHING:
                return found
        if (not is_outside(base) or write_method(base, node.func.attr) is None) and not isinstance(
                base, OneShotIterator):
            base = frame.contents_of(base)
        if isinstance(base, (Value, Cell, tuple, list, Container, str)) and class_of(base) is None:
            method = node.func.attr
        else:
            function = attribute(frame, base, node.func.attr, node.func)
    else:
        function = evaluate(frame, node.func)
        spelled = _helper_call(frame, function, node)
        if spelled is not None:
            return spelled
    columns = _columns(frame, function, node) if method is None else None
    if columns is not None:
        return columns
    outer = frame.session.consumed
    frame.session.consumed = None if method is not None else consumed_at_once(function, node)
    args = (_arguments(frame, function, node) if method is None
            and any(isinstance(x, gast.Starred) for x in node.args)
            else _items(frame, node.args))
    frame.session.consumed = outer
    keywords = {}
    for keyword in node.keywords:
        given = ({keyword.arg: evaluate_any(frame, keyword.value)} if keyword.arg
                 else _spread_keywords(frame, keyword.value))
        for name in given:
            if name in keywords:
                raise TypeMismatchError(f"two values for the keyword argument {name}",
                                        frame.line(node), "pass it once")
        keywords.update(given)
    if method is not None:
        return apply_method(frame, base, method, args, keywords, node)
    return apply(frame, function, args, keywords, node)


def _entry_outside(frame: Frame, base: Object, node: gast.Call):
    """`base.get(key, default)` of a captured dict; NOTHING if the key is not written out."""
    if (node.keywords or not 1 <= len(node.args) <= 2
            or not isinstance(node.args[0], (gast.Name, gast.Constant, gast.Attribute))):
        return NOTHING
    key = evaluate(frame, node.args[0])
    if not is_key(frame, key):
        return NOTHING
    default = evaluate_any(frame, node.args[1]) if len(node.args) == 2 else None
    return item_or(frame, base, frame.static(key, "this key"), default)


def _arguments(frame: Frame, function, node: gast.Call) -> list:
    """The positional arguments of a call with `*p` among them; where `p` is an array, the
    parameters that are left say how many it holds.
    """
    nodes = [x.value if isinstance(x, gast.Starred) else x for x in node.args]
    found = [evaluate(frame, x) if isinstance(given, gast.Starred) else evaluate_any(frame, x)
             for x, given in zip(nodes, node.args)]
    found = [_list_of_starred(frame, x) if isinstance(given, gast.Starred) else x
             for x, given in zip(found, node.args)]
    parts = [frame.members(x) if isinstance(given, gast.Starred) else [x]
             for x, given in zip(found, node.args)]
    unknown = [k for k, part in enumerate(parts) if part is None]
    if len(unknown) == 1 and isinstance(found[unknown[0]], (Cell, Value)):
        left = _parameters_left(frame, function, node, sum(len(part or ()) for part in parts))
        if left is not None:
            with at(frame.line(node.args[unknown[0]])):
                parts[unknown[0]] = unpack(frame, found[unknown[0]], left, None)
    if unknown and None in parts:
        count = _named_parameters(frame, function)
        before = [x for part in parts[:unknown[0]] for x in part]
        if count is not None and len(before) >= count:
            rest = _joined(frame, [(x, False) for x in before[count:]] + [
                (x, isinstance(given, gast.Starred))
                for x, given in list(zip(found, node.args))[unknown[0]:]], node)
            return [*before[:count], Spread(frame.session.call(frame, tuple, [rest], {}, node))]
    return [x for part, binding, given in zip(parts, found, node.args)
            for x in (_spread(frame, binding, given) if part is None else part)]


def _named_parameters(frame: Frame, function) -> int | None:
    """How many positional arguments a function takes before its `*args`; None where it has none."""
    given = 0
    while isinstance(function, Method):
        function, given = function.function, given + 1
    if is_users(function):
        function, given = constructor_of(function), given + 1
    if not isinstance(function, (Local, types.FunctionType)):
        return None
    signature = (local_signature(function) if isinstance(function, Local)
                 else signature_of(function))
    kinds = [p.kind for p in signature.parameters.values()]
    kind = inspect.Parameter.VAR_POSITIONAL
    return max(kinds.index(kind) - given, 0) if kind in kinds else None


def _parameters_left(frame: Frame, function, node: gast.Call, given: int) -> int | None:
    """How many parameters of a function a call leaves to `*p`; None where that is not certain."""
    while isinstance(function, Method):
        function, given = function.function, given + 1
    if is_users(function):
        function, given = constructor_of(function), given + 1
    try:
        signature = (local_signature(function) if isinstance(function, Local)
                     else signature_of(function))
    except (S2SError, TypeError, ValueError):
        return None
    named = {keyword.arg for keyword in node.keywords}
    left = [p for p in list(signature.parameters.values())[given:] if p.name not in named]
    if None in named or not left or any(
            p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) or p.default is not p.empty
            for p in left):
        return None
    return len(left)


def _columns(frame: Frame, function, node: gast.Call) -> tuple | OneShotIterator | None:
    """`zip(*rows)` of a run-time number of rows; None for other calls."""
    if (function is not zip or len(node.args) != 1 or node.keywords
            or not isinstance(node.args[0], gast.Starred)):
        return None
    rows = frame.contents_of(evaluate(frame, node.args[0].value))
    if isinstance(rows, (Iterable, Generator)):
        rows = frame.session.listed(frame, rows)
    if (members := frame.members(rows)) is not None:
        known = [frame.members(row) for row in members]
        return tuple(zip(*known)) if None not in known else None
    if not isinstance(rows, Cell):
        return None
    kind = frame.heap.type_of(rows)
    with at(frame.line(node)):
        line = current().line
        if isinstance(kind, List) and isinstance(kind.item, Tuple):
            return tuple(
                in_place(frame, sequences.column, [rows, k], {}, node, line)
                for k in range(len(kind.item.items)))
        if not (isinstance(kind, Array) and kind.rank > 1 or isinstance(kind, List)
                and (isinstance(kind.item, List) or isinstance(kind.item, Array))):
            return None
        count = in_place(frame, sequences.shortest, [rows], {}, node, line)
        columns = Iterable(
            lambda k: run_time_tuple(in_place(frame, sequences.column, [rows, k], {}, node, line)),
            (0, count, 1), held=(rows,))
        return once(frame, columns, "zip(*...)", (rows,))


def _spread_keywords(frame: Frame, node: gast.AST) -> dict:
    """The keywords that `**node` passes."""
    binding = frame.contents_of(evaluate(frame, node))
    if isinstance(binding, Container) and binding.is_dict:
        binding = binding.members
    if not isinstance(binding, dict):
        raise TypeMismatchError("`**` before something other than a dict", frame.line(node),
                                "pass a dict")
    if not all(isinstance(key, str) for key in binding):
        raise TypeMismatchError("keywords must be strings", frame.line(node),
                                "name the arguments by strings")
    return binding


def _helper_call(frame: Frame, function, node: gast.Call):
    """A call of a printed helper function, as the op that it stands for; None for others."""
    record = record_of_helper(function)
    operands = operands_of(record, node.args) if record is not None and not node.keywords else None
    if operands is None:
        return None
    inputs, attributes = operands
    values = [frame.value(evaluate(frame, x)) for x in inputs]
    attrs = {k: frame.static(evaluate(frame, x), k) for k, x in attributes.items()}
    with guarding(frame, function):
        return frame.wrap(emit(record, *values, **attrs))


def make_local(frame: Frame, node: gast.FunctionDef | gast.Lambda) -> Local:
    """A lambda or nested def, with its defaults evaluated now, as Python does."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    defaults = {
        p.id: evaluate(frame, d)
        for p, d in zip(positional[len(positional) - len(a.defaults):], a.defaults)
    }
    defaults.update({
        p.id: evaluate(frame, d)
        for p, d in zip(a.kwonlyargs, a.kw_defaults) if d is not None
    })
    return Local(node, frame.making or frame, defaults)


def place_of(frame: Frame, node: gast.AST):
    """The binding of the target of a write; an item of a run-time list is a view of the list."""
    if isinstance(node, gast.Subscript):
        base, key = place_of(frame, node.value), key_of(frame, node.slice)
        with at(frame.line(node)):
            base, key = place_by_key(frame, base, key, node)
            return item_of(frame, base, key)
    match node:
        case gast.Call(func=gast.Attribute(attr="setdefault"), args=[key, default], keywords=[]):
            base = evaluate(frame, node.func.value)
            if isinstance(base, Container) and issubclass(base.cls, Keyed):
                args = [evaluate(frame, key), evaluate_any(frame, default)]
                with at(frame.line(node)):
                    place = apply(frame, attribute(frame, base, "place_or", node.func), args, {},
                                  node)
                    return item_of(frame, base.members["_values"], place)
            return apply_method(frame, base, "setdefault", _items(frame, node.args), {},
                                node) if isinstance(base, Container) and base.is_dict else evaluate(
                                    frame, node)
    return evaluate(frame, node)


def item_of(frame: Frame, base, key):
    """base[key] as the target of a write; an item of a run-time list is a view of the list."""
    if is_list(frame, base) and frame.session.tries:
        guard_list_index(frame, base, key)
    place = place_in(frame, base, key)
    return take(frame, base, key) if place is None else place


def place_by_key(frame: Frame, base, key, node: gast.AST) -> tuple:
    """The location of `base[key]`: of a dict with run-time keys, an item of the list of its values.
    """
    if not isinstance(base, Container) or not issubclass(base.cls, Keyed):
        return base, key
    return base.members["_values"], apply(frame, attribute(frame, base, "place", node), [key], {},
                                          node)
