"""Evaluate expressions: dispatch on the node of the syntax tree and return a binding."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterator

import gast
import numpy as np

from ...errors import S2SError, TypeMismatchError
from ...ir.builder import at, current
from ...ir.graph import Value
from ...ir.types import Array, Extent, Tuple, Unknown
from ...ir.types import Generator as Draws
from ...library import sequences
from ...library.containers import Keyed, Set
from ...ops.core.record import (
    ATTRIBUTES,
    METHODS,
    RECORDS,
    MemberTuple,
    dims_of,
    emit,
    rank,
    value,
)
from ..control.generators import consumed_at_once
from ..control.introspection import type_of
from ..control.iterables import Iterable
from ..control.join import branch, with_either
from ..domain.frame import REST, ExceptionObject, Frame, Object, Text
from ..domain.functions import (
    ConditionalObject,
    FunctionValue,
    Generator,
    GrowsFixedList,
    Intrinsic,
    Local,
    Method,
    Spread,
)
from ..domain.heap import Cell, Container, SharedError
from ..domain.optional import Maybe
from ..syntax.captures import Fixed, is_data
from ..syntax.read_helpers import operands_of, record_of_helper
from ..values.captured_dicts import is_captured_dict, is_key, item_or
from ..values.captured_writes import (
    augment_attribute,
    augment_item,
    is_array_of,
    is_list_outside,
    is_outside,
    write_method,
)
from ..values.dicts import DICT_METHODS, delete_entry, key_in, new_dict, pairs
from ..values.exceptions import map_leaves
from ..values.lists import (
    LIST_METHODS,
    WRITES,
    exchange,
    extend_in_place,
    is_array,
    is_list,
    is_tuple,
    new_list,
    place_in,
    repeat_in_place,
)
from ..values.maybe_unbound import read_name
from ..values.numpy_views import set_shape, shared_result
from ..values.objects import (
    Super,
    class_of,
    constructor_of,
    found_in,
    instantiate,
    is_users,
    new_dict_at,
    of_class,
    read,
    read_of_exception,
    read_super,
)
from ..values.objects import write as write_attribute
from ..values.overloads import NOTHING, apply_in_place_operator, call_special
from ..values.python_operators import BINARY, SYMBOLS
from ..values.raise_guards import guard_list_index, guarding
from ..values.strings import format_fstring, is_member, words_of
from ..values.subscript import put, take, unpack
from ..values.unwrap import demand
from ..values.words import UNKNOWN, by_word
from .apply import apply, apply_method, in_place, local_signature
from .call_by_index import choice_at, choices_in
from .operators import binary, compare, decide, negation, truth, unary
from .python_builtins import BUILTINS
from .unwrap_callable import signature_of

# functions that are indexed
GRIDS = (type(np.mgrid), type(np.ogrid), type(np.r_), type(np.c_))
STATIC_MODULES = ("numpy", "math", "scipy", "builtins", "cmath")


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
            binding = evaluate_any(frame, node.value)
            frame.bind(node.target.id, binding)
            return frame.env[node.target.id]
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
            return instantiate(frame, Set, [members], {}, node)
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
            members.update(pairs(frame, evaluate(frame, item), node))
        else:
            so_far = new_dict(frame, members)
            so_far.site = node
            key = key_in(frame, evaluate(frame, key), node, so_far)
            members[key] = evaluate_any(frame, item)
    made = new_dict(frame, members)
    for key, binding in members.items():
        frame.name_member(made, key, binding)
    return new_dict_at(frame, made, node)


def _keyed_dict(frame: Frame, node: gast.Dict) -> Container:
    """A dict some of whose keys are known only at run time: they are set one by one."""
    made = new_dict_at(frame, new_dict(frame, {}), node)
    name = f"<dict {node.lineno} {node.col_offset}>"
    frame.env[name] = made  # nobody else has it yet
    for key, item in zip(node.keys, node.values):
        given = (pairs(frame, evaluate(frame, item), node).items() if key is None
                 else [(evaluate(frame, key), evaluate_any(frame, item))])
        for each, binding in given:
            put(frame, made, each, binding)
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
        if not is_outside(base) or write_method(base, node.func.attr) is None:
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
    parts = [
        frame.members(_list_of_starred(frame, x)) if isinstance(given, gast.Starred) else [x]
        for x, given in zip(found, node.args)
    ]
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


def _columns(frame: Frame, function, node: gast.Call) -> tuple | None:
    """`zip(*rows)` of a run-time list of tuples; None for other calls."""
    if function is not zip or len(node.args) != 1 or not isinstance(node.args[0], gast.Starred):
        return None
    rows = frame.contents_of(evaluate(frame, node.args[0].value))
    if isinstance(rows, (Iterable, Generator)):
        rows = frame.session.listed(frame, rows)
    if not is_list(frame, rows) or frame.heap.items(rows) is not None:
        return tuple(zip(
            *(frame.members(row)
              for row in frame.members(rows)))) if frame.members(rows) is not None and all(
                  frame.members(row) is not None for row in frame.members(rows)) else None
    item = frame.heap.read(rows).type.item
    if not isinstance(item, Tuple):
        raise frame.refuse("zip(*...) of a list of this kind", node,
                           "say it with a comprehension: [row[k] for row in rows]")
    with at(frame.line(node)):
        return tuple(
            in_place(frame, sequences.column, [rows, k], {}, node,
                     current().line) for k in range(len(item.items)))


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


def _of_members(frame: Frame, base, name: str, node: gast.AST):
    """The member of a tuple to which NumPy gives this name."""
    if isinstance(base, MemberTuple) and name in base.names:
        return base[base.names.index(name)]
    kind = tuple if isinstance(base, MemberTuple) else type(base)
    raise frame.refuse(f"the attribute {name} of a {kind.__name__}", node, "unpack it first")


def _of_object(frame: Frame, base: Object, name: str, node: gast.AST):
    """`base.name`, of an object outside."""
    cls = type(base.content)
    defined = inspect.getattr_static(cls, name, None)
    if (isinstance(defined, property) and isinstance(defined.fget, types.FunctionType)
            and cls.__module__.split(".")[0] not in STATIC_MODULES
            and frame.session.outside.note_property()):
        return of_class(frame, base, cls, defined, name, node)
    try:
        return frame.attribute_of(base, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node), "set it before the call") from None


def attribute(frame: Frame, base, name: str, node: gast.AST):
    """`base.name`."""
    if isinstance(base, ConditionalObject):
        return with_either(frame, base, lambda x: attribute(frame, x, name, node))
    if class_of(base) is not None:
        return read(frame, base, name, node)
    if isinstance(base, Super):
        return read_super(frame, base, name, node)
    if name == "__class__" and isinstance(base, (Value, Cell, Container, tuple, list, Text)):
        return type_of(frame, node, base)
    if isinstance(base, type) and is_users(base):
        owner, defined = found_in(base, name)
        if isinstance(defined, classmethod):
            return Method(defined.__func__, base)
    written = write_method(base, name) if is_outside(base) else None
    if written is not None:
        return Intrinsic(written)
    if isinstance(base, Object):
        return _of_object(frame, base, name, node)
    if isinstance(base, ExceptionObject):
        if name != "args":
            return read_of_exception(frame, base, name, node)
        return map_leaves(base.args, frame.wrap)
    if isinstance(base, types.ModuleType):
        return _of_module(frame, base, name, node)
    if isinstance(base, Value) and isinstance(base.type, Draws):
        return Intrinsic(lambda frame, node, *args, **keywords: apply_method(
            frame, base, name, args, keywords, node))
    if isinstance(base, Text):
        return _of_text(frame, base, name, node)
    if name in _methods_of(frame, base):
        return Intrinsic(
            lambda frame, node, *args, **keywords: apply_method(
                frame, base, name, list(args), keywords, node), (base,))
    if isinstance(base, (Value, Cell)):
        if name not in ATTRIBUTES:
            raise frame.refuse(f"the attribute {name}", node,
                               "use the attributes and functions that s2s knows")
        content = frame.value(base)
        return shared_result(frame, ATTRIBUTES[name](content), name, [base], {},
                             {content: base} if isinstance(base, Cell) else {}, ATTRIBUTES[name],
                             True)
    if isinstance(base, (tuple, list, FunctionValue, Container)):
        return _of_members(frame, base, name, node)
    try:
        content = getattr(base, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node)) from None
    if ((is_data(content) or isinstance(content, (tuple, list, dict))) and isinstance(base, type)
        and base.__module__.split(".")[0] not in STATIC_MODULES):
        return frame.attribute_of(Object(base, Fixed(base), base.__name__), name)
    return content


def _methods_of(frame: Frame, base) -> Collection[str]:
    """A bound method of a list, dict or array as a function: `key=d.get`, `add = xs.append`."""
    if isinstance(base, Container):
        return DICT_METHODS
    if is_list(frame, base):
        return LIST_METHODS
    return METHODS.keys() - ATTRIBUTES.keys() if isinstance(base, (Value, Cell)) else ()


def _of_module(frame: Frame, module: types.ModuleType, name: str, node: gast.AST):
    try:
        content = getattr(module, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node)) from None
    if is_data(content) and module.__name__.split(".")[0] in STATIC_MODULES:
        return content
    return frame.attribute_of(Object(module, Fixed(module),
                                     module.__name__.rpartition(".")[2]), name)


def _of_text(frame: Frame, base: Text, name: str, node: gast.AST):
    """`base.name`, of a string or a member of an enum that a run chooses."""
    words = words_of(base)
    if words is not None and all(map(is_member, words)):
        found = by_word(frame, lambda member: getattr(member, name), base)
        if found is not UNKNOWN:
            return found
    elif words is not None and hasattr(str, name):
        return Intrinsic(
            lambda frame, node, *args, **keywords: apply_method(
                frame, base, name, list(args), keywords, node), (base,))
    raise frame.refuse(f"the attribute {name} of a text", node,
                       "print it or raise it, and nothing else")


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


# --------------------------------------------------------------------------------------- assignment


def assign(frame: Frame, target: gast.AST, binding, node: gast.AST) -> None:
    """`target = binding`."""
    match target:
        case gast.Name():
            frame.bind(target.id, binding)
        case gast.Tuple() | gast.List():
            binding = demand(frame, binding, getattr(node, "value", None))
            stars = [k for k, item in enumerate(target.elts) if isinstance(item, gast.Starred)]
            with at(frame.line(node)):
                items = unpack(frame, binding, len(target.elts), stars[0] if stars else None)
            frame.live |= frame.pending  # live for later targets
            around = frame.env.get(REST, ())
            for k, item in enumerate(target.elts):
                frame.env[REST] = (around, tuple(items[k + 1:]))
                assign(frame, item.value if isinstance(item, gast.Starred) else item, items[k],
                       item)
            frame.env[REST] = around
        case gast.Subscript():
            base, key = place_of(frame, target.value), key_of(frame, target.slice)
            with at(frame.line(node)):
                put(frame, base, key, binding)
        case gast.Attribute(value=owner, attr=name):
            owner = evaluate(frame, owner)
            with at(frame.line(node)):
                if name == "shape" and is_array(frame, owner) and isinstance(owner, Cell):
                    set_shape(frame, owner, binding)
                else:
                    _assign_attribute(frame, owner, name, binding, target)
        case _:
            raise frame.refuse("this kind of assignment", target, "assign to names and elements")


def _assign_attribute(frame: Frame, owner, name: str, binding, target: gast.Attribute) -> None:
    """`owner.name = binding`."""
    if isinstance(owner, ConditionalObject):
        return with_either(frame, owner,
                           lambda x: _assign_attribute(frame, x, name, binding, target))
    write_attribute(frame, owner, name, binding, target)


def exchange_items(frame: Frame, targets: list, items: list) -> bool:
    """`xs[i], xs[j] = xs[j], xs[i]` of one list with run-time indices; returns False, and does
    nothing, for other targets.
    """
    nodes = [*targets, *items]
    if len(targets) != 2 or not all(
            isinstance(node, gast.Subscript) and isinstance(node.value, gast.Name)
            and _is_arithmetic(node.slice) for node in nodes):
        return False
    first, second, *taken = [gast.dump(node.slice) for node in nodes]
    if len({node.value.id for node in nodes}) > 1 or taken != [second, first]:
        return False
    xs = evaluate(frame, targets[0].value)
    if not is_list(frame, xs) or frame.session.tries:
        return False
    keys = [key_of(frame, node.slice) for node in targets]
    if (any(isinstance(key, slice) for key in keys)
        or frame.heap.items(xs) is not None and all(map(frame.is_static, keys))):
        return False
    with at(frame.line(targets[0])):
        exchange(frame, xs, *keys)
    return True


def _is_arithmetic(node: gast.AST) -> bool:
    """Whether an expression may be evaluated twice."""
    return all(
        isinstance(n, (gast.Name, gast.Constant, gast.BinOp, gast.UnaryOp, gast.operator,
                       gast.unaryop, gast.expr_context)) for n in gast.walk(node))


def place_of(frame: Frame, node: gast.AST):
    """The binding of the target of a write; an item of a run-time list is a view of the list."""
    if isinstance(node, gast.Subscript):
        base, key = place_of(frame, node.value), key_of(frame, node.slice)
        with at(frame.line(node)):
            base, key = _place_by_key(frame, base, key, node)
            return _item_of(frame, base, key)
    match node:
        case gast.Call(func=gast.Attribute(attr="setdefault"), args=[key, default], keywords=[]):
            base = evaluate(frame, node.func.value)
            if isinstance(base, Container) and issubclass(base.cls, Keyed):
                args = [evaluate(frame, key), evaluate_any(frame, default)]
                with at(frame.line(node)):
                    place = apply(frame, attribute(frame, base, "place_or", node.func), args, {},
                                  node)
                    return _item_of(frame, base.members["_values"], place)
            return apply_method(frame, base, "setdefault", _items(frame, node.args), {},
                                node) if isinstance(base, Container) and base.is_dict else evaluate(
                                    frame, node)
    return evaluate(frame, node)


def _item_of(frame: Frame, base, key):
    """base[key] as the target of a write; an item of a run-time list is a view of the list."""
    if is_list(frame, base) and frame.session.tries:
        guard_list_index(frame, base, key)
    place = place_in(frame, base, key)
    return take(frame, base, key) if place is None else place


def _place_by_key(frame: Frame, base, key, node: gast.AST) -> tuple:
    """The location of `base[key]`: of a dict with run-time keys, an item of the list of its values.
    """
    if not isinstance(base, Container) or not issubclass(base.cls, Keyed):
        return base, key
    return base.members["_values"], apply(frame, attribute(frame, base, "place", node), [key], {},
                                          node)


def delete_item(frame: Frame, base, key, node: gast.AST) -> bool:
    """`del base[key]`; False if `base` supports no deletion."""
    if isinstance(base, Container) and base.is_dict:
        delete_entry(frame, base, key)
    elif isinstance(base, Container) and issubclass(base.cls, Keyed):
        apply(frame, attribute(frame, base, "pop", node), [key], {}, node)
    elif is_list(frame, base) and not isinstance(key, slice):
        apply_method(frame, base, "pop", [key], {}, node)
    elif is_list(frame, base) and frame.heap.items(base) is not None and frame.is_static(key):
        items = list(frame.heap.items(base))
        del items[frame.static(key, "this slice")]
        apply_method(frame, base, "clear", [], {}, node)
        apply_method(frame, base, "extend", [tuple(items)], {}, node)
    else:
        return call_special(frame, base, "__delitem__", [key], node) is not NOTHING
    return True


def augment(frame: Frame, node: gast.AugAssign) -> None:
    """`target op= value`."""
    match node.target:
        case gast.Name(id=name):
            old, v = read_name(frame, name, node.target), evaluate(frame, node.value)
            if is_list_outside(old) and isinstance(node.op, gast.Add):
                write_method(old, "extend")(frame, node, v)
                return
            old = frame.contents_of(old)
            _augment_name(frame, name, old, v, node)
        case gast.Subscript():
            base, key = place_of(frame, node.target.value), key_of(frame, node.target.slice)
            if is_outside(base):
                v = evaluate(frame, node.value)
                augment_item(frame, base, key, SYMBOLS[BINARY[type(node.op)][0]], v,
                             lambda old: _augmented_member(frame, old, v, node), node)
                return
            base, key = _place_by_key(frame, base, key, node)
            old = _item_of(frame, base, key)
            if isinstance(base, Container) or is_list(frame, base):
                new = _augmented_member(frame, old, evaluate(frame, node.value), node)
                if new is not old:
                    put(frame, base, key, new)
                return
            new = binary(frame, node.op, old, evaluate(frame, node.value), node)
            if isinstance(old, Cell) and frame.value(old).type != frame.value(new).type:
                new = _in_place(frame.value(old), frame.value(new))
            put(frame, base, key, new)
        case gast.Attribute(value=owner, attr=name):
            _augment_attribute(frame, evaluate(frame, owner), name, node)
        case _:
            raise frame.refuse("this kind of assignment", node.target,
                               "assign to names and elements")


def _augment_attribute(frame: Frame, owner, name: str, node: gast.AugAssign) -> None:
    """`owner.name op= value`."""
    if isinstance(owner, ConditionalObject):
        return with_either(frame, owner, lambda x: _augment_attribute(frame, x, name, node))
    if is_outside(owner) and not is_array_of(owner, name):
        v = evaluate(frame, node.value)
        augment_attribute(frame, owner, name, SYMBOLS[BINARY[type(node.op)][0]], v,
                          lambda old: _augmented_member(frame, old, v, node), node)
        return
    old = attribute(frame, owner, name, node.target)
    new = _augmented_member(frame, old, evaluate(frame, node.value), node)
    if new is not old:
        write_attribute(frame, owner, name, new, node.target)


def _augmented_member(frame: Frame, old, v, node: gast.AugAssign):
    """The content of a member after `old op= v`: an array is written in place and stays the member.
    """
    old = frame.contents_of(old)
    if (is_list(frame, old) and isinstance(node.op, gast.Add) and not is_array(frame, v)
            and not is_tuple(frame, old)):
        extend_in_place(frame, old, v)
        return old
    found = apply_in_place_operator(frame, BINARY[type(node.op)][0], old, v, node)
    if found is not NOTHING:
        return found
    if is_list(frame, old):
        new = binary(frame, node.op, old, v, node)
        if not is_list(frame, new) or is_tuple(frame, old):
            return new
        repeat_in_place(frame, old, new, node)
        return old
    if not isinstance(old, Cell) or isinstance(frame.heap.read(old).type, Unknown):
        return binary(frame, node.op, old, v, node)
    if old.doubtful:
        _refuse_shared(frame, "this", old, node)
        return binary(frame, node.op, old, v, node)
    before, after = frame.heap.read(old), frame.value(binary(frame, node.op, old, v, node))
    if after.type != before.type:
        after = RECORDS["setitem"](before, _in_place(before, after), pattern=(...,))
    frame.write(old, after)
    return old


def _augment_name(frame: Frame, name: str, old, v, node: gast.AugAssign) -> None:
    if (is_list(frame, old) and isinstance(node.op, gast.Add) and not is_array(frame, v)
            and not is_tuple(frame, old)):
        extend_in_place(frame, old, v)
        return
    found = apply_in_place_operator(frame, BINARY[type(node.op)][0], old, v, node)
    if found is not NOTHING:
        frame.bind(name, found)
        return
    new = binary(frame, node.op, old, v, node)
    if is_list(frame, old) and is_list(frame, new) and not is_tuple(frame, old):
        repeat_in_place(frame, old, new, node)
        return
    if not isinstance(old, Cell) or is_list(frame, old):
        frame.bind(name, new)
        return
    before, after = frame.heap.read(old), frame.value(new)
    if isinstance(before.type, Unknown) or old.doubtful:
        _refuse_shared(frame, name, old, node)
        frame.bind(name, new)
        return
    if after.type == before.type:
        frame.write(old, after)
    elif old.index is not None:  # write at once into the array of which it is a part
        put(frame, old, ..., _in_place(before, after))
    else:
        frame.write(old, RECORDS["setitem"](before, _in_place(before, after), pattern=(...,)))
    content = frame.heap.read(old)
    if not content.name:
        content.name = frame.label(name)


def _refuse_shared(frame: Frame, name: str, old: Cell, node: gast.AugAssign) -> None:
    """Refuse `name op= value` where `old` may be either a number or an array with other references.
    """
    others = [
        n for n, cell in frame.reachable()
        if n != name and (cell.family() | cell.root.held) & old.family()
    ]
    if others and (name != "this" or len(others) > 1):  # a member belongs to one container
        place = "x[k]" if name == "this" else name
        raise SharedError(
            f"{name} may be a number or an array, and {others[0]} may share its memory",
            frame.line(node),
            f"write `{place} = {place} {SYMBOLS[BINARY[type(node.op)][0]]} ...` if a new value is "
            "meant"
        )


def _in_place(before: Value, after: Value) -> Value:
    """The new content of `before` in an in-place update: the operands are broadcast to its shape,
    else NumPy raises.

    NumPy refuses to write floats into integers in place, and arrays of higher rank than the target,
    whatever their lengths.
    """
    if (isinstance(before.type, Array) and isinstance(after.type, Array)
        and after.type.rank > before.type.rank):
        raise TypeMismatchError(
            f"a value of {after.type.rank} axes cannot be written in place into an array of "
            f"{before.type.rank}",
            current().line,
            "index or reshape it to the axes of that array, or make a new one: `x = x + ...`")
    old, new = getattr(before.type, "dtype", None), getattr(after.type, "dtype", None)
    if old is not None and new is not None and not np.can_cast(new, old, "same_kind"):
        raise TypeMismatchError(f"{new} values cannot be written into an array of {old} in place",
                                current().line,
                                "make the array of the wider dtype first, with .astype")
    dims = list(zip(dims_of(before.type), dims_of(after.type)))
    is_known = (len(dims) == rank(before) == rank(after)
                and all(m == n or isinstance(m, Extent) and isinstance(n, Extent) for m, n in dims))
    return RECORDS["shaped_like"](after, before) if is_known else after
