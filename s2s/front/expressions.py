"""Expressions: each node of the syntax tree, evaluated to a binding."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable

import gast
import numpy as np

from ..errors import S2SError, TypeMismatchError
from ..ir.builder import at, current
from ..ir.graph import MISSING, OPERATORS, Value
from ..ir.types import Array, Scalar, Tape, Unknown
from ..ops.control import tape_new
from ..ops.record import ATTRIBUTES, RECORDS, emit, value
from .access import put, take, unpack
from .alias import Cell
from .branches import branch
from .calls import apply, apply_method
from .capture import is_data
from .frame import Frame, Local, Object
from .iterables import iterable
from .views import shared_result

BINARY = {gast.Add: ("add", operator.add), gast.Sub: ("subtract", operator.sub), gast.Mult: ("multiply", operator.mul),
          gast.Div: ("divide", operator.truediv), gast.FloorDiv: ("floor_divide", operator.floordiv),
          gast.Mod: ("remainder", operator.mod), gast.Pow: ("power", operator.pow),
          gast.MatMult: ("matmul", operator.matmul), gast.BitAnd: ("bitwise_and", operator.and_),
          gast.BitOr: ("bitwise_or", operator.or_), gast.BitXor: ("bitwise_xor", operator.xor),
          gast.LShift: ("left_shift", operator.lshift), gast.RShift: ("right_shift", operator.rshift)}
UNARY = {gast.USub: ("negative", operator.neg), gast.UAdd: ("positive", operator.pos),
         gast.Invert: ("invert", operator.invert)}
COMPARE = {gast.Lt: ("less", operator.lt), gast.LtE: ("less_equal", operator.le), gast.Gt: ("greater", operator.gt),
           gast.GtE: ("greater_equal", operator.ge), gast.Eq: ("equal", operator.eq),
           gast.NotEq: ("not_equal", operator.ne)}
STATIC_MODULES = ("numpy", "math", "scipy", "builtins", "cmath")


def evaluate(frame: Frame, node: gast.AST):
    """The binding of an expression."""
    match node:
        case gast.Constant():
            return node.value
        case gast.Name():
            return frame.lookup(node.id, node)
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
            return binary(frame, node.op, evaluate(frame, node.left), evaluate(frame, node.right), node)
        case gast.UnaryOp(op=gast.Not()):
            return _not(frame, condition(frame, node.operand))
        case gast.UnaryOp():
            return _unary(frame, node)
        case gast.BoolOp():
            return _short_circuit(frame, isinstance(node.op, gast.And), node.values, evaluate)
        case gast.Compare():
            return _chain(frame, node, evaluate(frame, node.left), 0)
        case gast.IfExp():
            return branch(frame, condition(frame, node.test), lambda: evaluate(frame, node.body), lambda: evaluate(frame, node.orelse),
                          live_here(frame))
        case gast.Call():
            return _call(frame, node)
        case gast.Attribute():
            return attribute(frame, evaluate(frame, node.value), node.attr, node)
        case gast.Subscript():
            base = evaluate(frame, node.value)
            return take(frame, base, key_of(frame, node.slice))
        case gast.Tuple():
            return tuple(_items(frame, node.elts))
        case gast.List():
            return _items(frame, node.elts) if node.elts else frame.heap.new(emit(tape_new))
        case gast.NamedExpr():
            binding = evaluate(frame, node.value)
            frame.bind(node.target.id, binding)
            return frame.env[node.target.id]
        case gast.Lambda():
            return make_local(frame, node)
        case gast.ListComp() | gast.GeneratorExp() if len(node.generators) == 1:
            return _comprehension(frame, node)
        case gast.JoinedStr():
            raise frame.refuse("a formatted string", node, "format results after the call")
        case gast.Await() | gast.Yield() | gast.YieldFrom():
            raise frame.refuse("generators and coroutines", node, "return the values, in an array if there are many")
        case gast.Dict() | gast.Set() | gast.DictComp() | gast.SetComp():
            raise frame.refuse("a dict or set", node, "use tuples or variables of their own")
    raise frame.refuse(f"the syntax {type(node).__name__}", node, "write it with plain statements")


def live_here(frame: Frame) -> frozenset:
    """What may be read after an expression of the current statement: the rest of the statement included."""
    return frame.live | frame.pending


def _items(frame: Frame, nodes: list) -> list:
    items = []
    for node in nodes:
        if isinstance(node, gast.Starred):
            items += _spread(frame, evaluate(frame, node.value), node)
        else:
            items.append(evaluate(frame, node))
    return items


def _spread(frame: Frame, binding, node: gast.AST) -> list:
    if not isinstance(binding, (tuple, list)):
        raise frame.refuse("`*` before something other than a tuple", node, "spread tuples only")
    return list(binding)


def key_of(frame: Frame, node: gast.AST):
    """The binding of an index: slices become slices of bindings."""
    match node:
        case gast.Slice():
            return slice(*(None if b is None else evaluate(frame, b) for b in (node.lower, node.upper, node.step)))
        case gast.Tuple():
            return tuple(key_of(frame, item) for item in node.elts)
        case gast.List():
            with at(frame.line(node)):
                return apply(frame, np.array, [evaluate(frame, node)], {}, node)
    return evaluate(frame, node)


# --------------------------------------------------------------------------------------------- operators


def binary(frame: Frame, op: gast.AST, a, b, node: gast.AST):
    """`a op b`."""
    name, compute = BINARY[type(op)]
    if _known(a) and _known(b):
        try:
            return compute(a, b)
        except ArithmeticError:
            pass  # let the run raise it
        except TypeError as error:
            raise TypeMismatchError(str(error), frame.line(node), "use operands of one kind") from None
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        return _of_tuples(frame, name, a, b, node)
    return _operator(frame, name, a, b)


def _operator(frame: Frame, name: str, *operands):
    if name not in OPERATORS:
        raise frame.refuse(f"the operator for {name}", None, "use the functions that s2s knows")
    return frame.wrap(OPERATORS[name](*map(frame.value, operands)))


def _known(x) -> bool:
    """Whether `x` is a Python object that Python itself can compute with now."""
    return x is None or isinstance(x, (bool, int, float, complex, str))


def _of_tuples(frame: Frame, name: str, a, b, node: gast.AST):
    if name == "add" and type(a) is type(b):
        return a + b
    if name == "multiply":
        items, count = (a, b) if isinstance(a, (tuple, list)) else (b, a)
        if frame.is_static(count) and isinstance(frame.static(count, "this"), int):
            return items * frame.static(count, "this")
    whole, other = (a, b) if isinstance(a, (tuple, list)) else (b, a)
    if isinstance(other, Cell) and name != "add":
        raise frame.refuse("arithmetic of an array with a tuple or list", node, "make it an array with np.array")
    raise TypeMismatchError(f"{name} of a {type(whole).__name__}", frame.line(node), "use numbers and arrays")


def _unary(frame: Frame, node: gast.UnaryOp):
    x = evaluate(frame, node.operand)
    name, compute = UNARY[type(node.op)]
    if _known(x):
        try:
            return compute(x)
        except TypeError as error:
            raise TypeMismatchError(str(error), frame.line(node), "use a number or an array") from None
    return _operator(frame, name, x)


def truth(frame: Frame, binding, node: gast.AST | None = None) -> Value:
    """The condition that Python tests where it is given `binding`, as a Value."""
    if isinstance(binding, (tuple, list, str)):
        return value(bool(binding))
    content = binding if isinstance(binding, Value) else frame.heap.read(binding) if isinstance(binding, Cell) else None
    if content is None:
        if isinstance(binding, np.ndarray):
            raise frame.refuse("the truth of an array", node, "use .any() or .all()")
        return value(bool(binding.content if isinstance(binding, Object) else True if isinstance(binding, Local) else binding))
    if content.constant is not MISSING:
        return value(bool(content.constant))
    match content.type:
        case Array():
            raise TypeMismatchError("the truth of an array is ambiguous", frame.line(node) if node else current().line,
                                    "use .any() or .all(), or np.where")
        case Tape():
            return RECORDS["tape_len"](content) > 0
        case Scalar(dtype) if dtype not in ("bool", None):
            return OPERATORS["not_equal"](content, value(0))
    return frame.value(content)


def _not(frame: Frame, test: Value):
    if test.constant is not MISSING:
        return not test.constant
    return RECORDS["not_"](test)


def condition(frame: Frame, node: gast.AST) -> Value:
    """The truth of an expression that stands where only its truth matters."""
    match node:
        case gast.BoolOp():
            with at(frame.line(node)):
                return truth(frame, _short_circuit(frame, isinstance(node.op, gast.And), node.values, condition), node)
        case gast.UnaryOp(op=gast.Not()):
            return value(_not(frame, condition(frame, node.operand)))
        case gast.Compare() if len(node.ops) > 1:
            with at(frame.line(node)):
                return truth(frame, _chain(frame, node, evaluate(frame, node.left), 0, True), node)
    return truth(frame, evaluate(frame, node), node)


def _short_circuit(frame: Frame, both: bool, nodes: list, operand: Callable):
    """`a and b and ...` (both) or `a or b or ...`: the operand that decides; `operand` evaluates them."""
    first = operand(frame, nodes[0])
    if len(nodes) == 1:
        return first
    return _decide(frame, both, first, lambda: _short_circuit(frame, both, nodes[1:], operand), nodes[0],
                   operand is condition)


def _decide(frame: Frame, both: bool, first, rest: Callable, node: gast.AST, truth_only: bool):
    test = truth(frame, first, node)
    if test.constant is not MISSING:
        return rest() if bool(test.constant) is both else first
    decided = not both if truth_only or test is first else first
    arms = (rest, lambda: decided) if both else (lambda: decided, rest)
    return branch(frame, test, *arms, live_here(frame))


def _chain(frame: Frame, node: gast.Compare, left, k: int, truth_only: bool = False):
    right = evaluate(frame, node.comparators[k])
    first = _compare(frame, node.ops[k], left, right, node)
    if k + 1 == len(node.ops):
        return first
    return _decide(frame, True, first, lambda: _chain(frame, node, right, k + 1, truth_only), node, truth_only)


def _compare(frame: Frame, op: gast.AST, a, b, node: gast.AST):
    match op:
        case gast.Is() | gast.IsNot():
            same = _is(frame, a, b, node)
            return same if isinstance(op, gast.Is) else not same
        case gast.In() | gast.NotIn():
            if not (frame.is_static(a) and frame.is_static(b)):
                raise frame.refuse("`in` with run-time data", node, "compare with == and `or`")
            inside = frame.static(a, "this") in frame.static(b, "this")
            return inside if isinstance(op, gast.In) else not inside
    name, compute = COMPARE[type(op)]
    if not any(isinstance(x, (Value, Cell)) for x in (a, b)):
        if frame.is_static(a) and frame.is_static(b):
            return compute(frame.static(a, "this"), frame.static(b, "this"))
        if name in ("equal", "not_equal") and type(a) is type(b) and isinstance(a, tuple):
            return _compare_tuples(frame, name == "equal", a, b, node)
        raise frame.refuse("comparing tuples by order", node, "compare their members")
    if a is None or b is None or isinstance(a, str) or isinstance(b, str) or isinstance(a, types.FunctionType):
        if name in ("equal", "not_equal"):
            return name == "not_equal"
    if isinstance(a, (tuple, list)) or isinstance(b, (tuple, list)):
        raise frame.refuse("comparing an array with a tuple", node, "make it an array with np.array")
    return _operator(frame, name, a, b)


def _compare_tuples(frame: Frame, equal: bool, a: tuple, b: tuple, node: gast.AST):
    if len(a) != len(b):
        return not equal
    same = True
    for x, y in zip(a, b):
        def rest(x=x, y=y):
            return _compare(frame, gast.Eq(), x, y, node)

        same = rest() if same is True else _decide(frame, True, same, rest, node, True)
    return same if equal else _not(frame, truth(frame, same, node))


def _is(frame: Frame, a, b, node: gast.AST) -> bool:
    if isinstance(a, Cell) and isinstance(b, Cell):
        if a is b:
            return True
        raise frame.refuse("`is` between arrays", node, "compare what they hold")
    for x, y in ((a, b), (b, a)):
        if y is None or isinstance(y, (str, type)):
            return x is y
        if isinstance(y, bool) and not isinstance(x, (Value, Cell)):
            return x is y
    if frame.is_static(a) and frame.is_static(b):
        return frame.static(a, "this") is frame.static(b, "this")
    raise frame.refuse("`is` between numbers", node, "use ==")


# ------------------------------------------------------------------------------------ calls and attributes


def _call(frame: Frame, node: gast.Call):
    method = None
    if isinstance(node.func, gast.Attribute):
        base = evaluate(frame, node.func.value)
        if isinstance(base, (Value, Cell, tuple, list, str)):
            method = node.func.attr
        else:
            function = attribute(frame, base, node.func.attr, node.func)
    else:
        function = evaluate(frame, node.func)
    args = _items(frame, node.args)
    keywords = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            raise frame.refuse("`**` in a call", node, "name the arguments")
        keywords[keyword.arg] = evaluate(frame, keyword.value)
    if method is not None:
        return apply_method(frame, base, method, args, keywords, node)
    return apply(frame, function, args, keywords, node)


def attribute(frame: Frame, base, name: str, node: gast.AST):
    """`base.name`."""
    if isinstance(base, Object):
        try:
            return frame.attribute_of(base, name)
        except AttributeError as error:
            raise TypeMismatchError(str(error), frame.line(node), "set it before the call") from None
    if isinstance(base, types.ModuleType):
        return _of_module(frame, base, name, node)
    if isinstance(base, (Value, Cell)):
        if name not in ATTRIBUTES:
            raise frame.refuse(f"the attribute {name}", node, "use the attributes and functions that s2s knows")
        content = frame.value(base)
        return shared_result(frame, ATTRIBUTES[name](content), name, [base], {},
                             {content: base} if isinstance(base, Cell) else {})
    if isinstance(base, (tuple, list, Local)):
        raise frame.refuse(f"the attribute {name} of a {type(base).__name__}", node, "unpack it first")
    try:
        return getattr(base, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node)) from None


def _of_module(frame: Frame, module: types.ModuleType, name: str, node: gast.AST):
    try:
        content = getattr(module, name)
    except AttributeError as error:
        raise TypeMismatchError(str(error), frame.line(node)) from None
    if is_data(content) and module.__name__.split(".")[0] in STATIC_MODULES:
        return content
    return frame.attribute_of(Object(module, lambda: module, module.__name__.rpartition(".")[2]), name)


def make_local(frame: Frame, node: gast.FunctionDef | gast.Lambda) -> Local:
    """A lambda or nested def, with its defaults evaluated now, as Python does."""
    a = node.args
    positional = [*a.posonlyargs, *a.args]
    defaults = {p.id: evaluate(frame, d) for p, d in zip(positional[len(positional) - len(a.defaults):], a.defaults)}
    defaults.update({p.id: evaluate(frame, d) for p, d in zip(a.kwonlyargs, a.kw_defaults) if d is not None})
    return Local(node, frame, defaults)


def _comprehension(frame: Frame, node):
    """A list of known length."""
    (generator,) = node.generators
    source = iterable(frame, evaluate(frame, generator.iter), generator.iter)
    trips = source.trips
    indices = range(trips) if trips is not None else (
        range(*source.bounds) if all(isinstance(b, int) for b in source.bounds) else None)
    if indices is None and all(isinstance(b, (int, Value)) and frame.is_static(b) for b in source.bounds):
        indices = range(*(frame.static(b, "a bound") for b in source.bounds))
    if indices is None:
        raise frame.refuse("a list of run-time length", node, "fill an array in a `for` loop")
    saved = dict(frame.env)
    items = []
    for k in indices:
        assign(frame, generator.target, source.get(k), generator.target)
        if all(_known_condition(frame, test) for test in generator.ifs):
            items.append(evaluate(frame, node.elt))
    for name in {n.id for n in gast.walk(generator.target) if isinstance(n, gast.Name)}:
        frame.env.pop(name, None)
        if name in saved:
            frame.env[name] = saved[name]
    return items


def _known_condition(frame: Frame, node: gast.AST) -> bool:
    return bool(frame.static(condition(frame, node), "the condition of a list comprehension", node))


# ------------------------------------------------------------------------------------------- assignment


def assign(frame: Frame, target: gast.AST, binding, node: gast.AST) -> None:
    """`target = binding`."""
    match target:
        case gast.Name():
            frame.bind(target.id, binding)
        case gast.Tuple() | gast.List():
            stars = [k for k, item in enumerate(target.elts) if isinstance(item, gast.Starred)]
            with at(frame.line(node)):
                items = unpack(frame, binding, len(target.elts), stars[0] if stars else None)
            for item, part in zip(target.elts, items):
                assign(frame, item.value if isinstance(item, gast.Starred) else item, part, item)
        case gast.Subscript():
            base, key = evaluate(frame, target.value), key_of(frame, target.slice)
            with at(frame.line(node)):
                put(frame, base, key, frame.value(binding))
        case gast.Attribute():
            raise frame.refuse("writing to an attribute", target, "return the new value")
        case _:
            raise frame.refuse("this kind of assignment", target, "assign to names and elements")


def augment(frame: Frame, node: gast.AugAssign) -> None:
    """`target op= value`."""
    match node.target:
        case gast.Name(id=name):
            old = frame.lookup(name, node.target)
            v = evaluate(frame, node.value)
            _augment_name(frame, name, old, v, node)
        case gast.Subscript():
            base, key = evaluate(frame, node.target.value), key_of(frame, node.target.slice)
            old = take(frame, base, key)
            new = binary(frame, node.op, old, evaluate(frame, node.value), node)
            if isinstance(old, Cell) and frame.value(old).type != frame.value(new).type:
                _same_kind(frame, frame.value(old), frame.value(new))
            put(frame, base, key, frame.value(new))
        case _:
            raise frame.refuse("writing to an attribute", node.target, "return the new value")


def _augment_name(frame: Frame, name: str, old, v, node: gast.AugAssign) -> None:
    new = binary(frame, node.op, old, v, node)
    if not isinstance(old, Cell):
        frame.bind(name, new)
        return
    before, after = frame.heap.read(old), frame.value(new)
    if isinstance(before.type, Tape):
        raise frame.refuse("extending a list", node, "append to it")
    if isinstance(before.type, Unknown):
        others = [n for n, cell in frame.reachable() if n != name and cell.root is old.root or
                  n != name and cell.root.family() & old.root.family()]
        if others or old.base is not None and any(True for n, c in frame.reachable() if n != name and c.root is old.root):
            raise frame.refuse(f"{name} may be a number or an array, and {others[0]} may share its memory", node,
                               f"write {name} = {name} ... if a new value is meant")
        frame.bind(name, new)
        return
    if after.type == before.type:
        frame.write(old, after)
    else:
        _same_kind(frame, before, after)
        frame.write(old, RECORDS["setitem"](before, after, pattern=(...,)))
    content = frame.heap.read(old)
    if not content.name:
        content.name = frame.label(name)


def _same_kind(frame: Frame, before: Value, after: Value) -> None:
    """NumPy refuses to write floats into integers in place."""
    old, new = getattr(before.type, "dtype", None), getattr(after.type, "dtype", None)
    if old is not None and new is not None and not np.can_cast(new, old, "same_kind"):
        raise TypeMismatchError(f"{new} values cannot be written into an array of {old} in place", current().line,
                                "make the array of the wider dtype first, with .astype")

