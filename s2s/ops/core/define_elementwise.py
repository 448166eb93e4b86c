"""Define elementwise ops: one table row gives a whole record.

Types are NumPy's by construction: the op is run once on sample values of the operands' dtypes, and
the type is that of the result (NEP 50, Python's own numbers included).
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Callable

import numpy as np

from ...errors import ArrayNeededError, TypeMismatchError, UnsupportedError
from ...ir.builder import Builder, current
from ...ir.graph import MISSING, Block, Value
from ...ir.reemit import emit_block
from ...ir.types import (
    BOOL,
    FLOAT,
    INT,
    Array,
    List,
    Scalar,
    Tuple,
    Type,
    Unknown,
    join,
    may_be_one,
)
from . import raise_conditions
from .chain_rule import elementwise_jvp, elementwise_vjp
from .record import (
    FUNCTIONS,
    RECORDS,
    Record,
    array_type,
    broadcast_dims,
    constant,
    define,
    dims_of,
    dtype_of,
    emit,
    same_shape,
    type_of_constant,
    value,
)
from .shape import shaped_like
from .stablehlo_rules import named

IN_MATH: dict[Record, Record] = {}  # np.sin -> math.sin: the same function of one Python number

# ------------------------------------------------------------------------------------------- types


def sample(type: Type):
    """A sample number of this type."""
    match type:
        case Scalar(dtype, True):
            return {"bool": True, "int64": 1, "float64": 1.0, "complex128": 1j}[dtype]
        case Scalar(None) | Array(None) | Unknown(_, None):
            return np.float64(1)
    return np.dtype(type.dtype).type(1)


def sampled(compute: Callable, name: str) -> Callable:
    """Type inference by example: a function from operand types to the Scalar type of `compute` on
    samples.
    """

    @functools.cache
    def result(*types: Scalar) -> Scalar:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = compute(*map(sample, types))
        except TypeError:
            if any(t.dtype is None for t in types):
                return Scalar(None)
            kinds = " and ".join(map(str, types))
            raise TypeMismatchError(f"{name} is not defined for {kinds}",
                                    remedy="convert the operands, with .astype for example"
                                    ) from None
        return type_of_constant(y[()] if isinstance(y, np.ndarray) else y)

    return result


def joined(*types: Scalar) -> Scalar:
    """The type of a choice between Python objects: objects are not converted, so the wider type
    describes both.
    """
    if any(t.dtype is None for t in types):
        return Scalar(None)
    return functools.reduce(join, types)


def shape_symbol(types: list[Type]) -> str | None:
    """The symbolic shape of an elementwise result of unknown rank: a function of its operands'
    shape symbols, if they have them.
    """
    parts = set()
    for type in types:
        match type:
            case Unknown(None):
                return None
            case Unknown(shape):
                parts.update(shape.split("|"))
            case Array(_, dims):
                parts.add(f"[{', '.join(map(str, dims))}]")
    return "|".join(sorted(parts))


def _infer(name: str, result: Callable) -> Callable:
    @functools.cache
    def of_kinds(*kinds: tuple) -> Scalar:
        return result(*(Scalar(dtype, weak) for dtype, weak in kinds))

    def infer(*xs: Value) -> Type:
        kinds, classes = [], set()
        for x in xs:
            type = x.type
            if not isinstance(type, (Scalar, Array, Unknown)):
                raise ArrayNeededError(x, current().line, x.name or f"an operand of {name}")
            classes.add(type.__class__)
            kinds.append((type.dtype, type.__class__ is Scalar and type.weak))
        y = of_kinds(*kinds)
        if Unknown in classes:
            known = (y.dtype is not None and (y.dtype == "bool" or y.dtype.startswith("complex"))
                     or all(dtype is not None for dtype, _ in kinds))
            return Unknown(shape_symbol([x.type for x in xs]), y.dtype if known else None)
        if Array not in classes:
            return y
        dims = broadcast_dims(*[dims_of(x.type) for x in xs])
        return array_type(y.dtype, dims) if dims else y

    return infer


# -------------------------------------------------------------------------------------- spelling


def numpy_syntax(name: str) -> Callable:
    """The syntax np.name(...)."""
    return lambda *args: ast.Call(ast.Attribute(ast.Name("np", ast.Load()), name, ast.Load()),
                                  list(args), [])


def math_syntax(name: str) -> Callable:
    """The syntax math.name(...)."""
    return lambda *args: ast.Call(ast.Attribute(ast.Name("math", ast.Load()), name, ast.Load()),
                                  list(args), [])


def builtin_syntax(name: str) -> Callable:
    """The syntax name(...)."""
    return lambda *args: ast.Call(ast.Name(name, ast.Load()), list(args), [])


def python_syntax(expression: str) -> Callable:
    """The syntax of a Python operator, given as an expression of its operands a, b, c."""
    tree = ast.parse(expression, mode="eval").body

    return lambda *args: _with_operands(tree, dict(zip("abc", args)))


def _with_operands(tree: ast.expr, operands: dict[str, ast.expr]) -> ast.expr:
    """A copy of `tree` with the operands in place of the names a, b, c."""
    match tree:
        case ast.Name(id) if id in operands:
            return operands[id]
        case ast.AST():
            return type(tree)(**{field: _with_operands(child, operands)
                                 for field, child in ast.iter_fields(tree)})
        case list():
            return [_with_operands(child, operands) for child in tree]
    return tree


# ------------------------------------------------------------------------------------ definition


def elementwise(name: str, *partials, python: str = "", math: Callable | None = None,
                evaluate: Callable | None = None, syntax: Callable | None = None,
                fold: Callable | None = None, result: Callable | None = None, also: tuple = (),
                vector: bool = False, slope: str | Callable = "",
                stablehlo: str | Callable | None = None, **facts) -> Record:
    """Define an elementwise op.

    partials  per operand ∂y/∂x: a number, None for no derivative, or a function of (y, *xs)
    python    its expression of operands a, b, c, if it is an operator or builtin; Python numbers
              then fold
    math      its twin in Python's `math` module, if it has one
    evaluate  what computes it: that expression, or np.<name>, unless given
    syntax    how it prints: that expression, or a call of np.<name>, unless given
    fold      (record, *xs) -> a Value that is the same bit for bit, or None
    result    (*operand types) -> Scalar, if running `evaluate` on samples does not say
    also      further functions that mean this op
    vector    whether runtime/kernels/vector_math has it, for loops over arrays
    slope     Note [Slopes]; of partials that are numbers "finite", of others "pole", unless given
    stablehlo the name of the operation of StableHLO that it is, or a rule (Note [StableHLO])
    facts     further fields, such as `batch`: what computes it of arrays, if it is of numbers
    """
    facts["stablehlo"] = named(stablehlo) if isinstance(stablehlo, str) else stablehlo
    if python:
        operands = ", ".join("abc"[:len(partials)])
        compute = eval(f"lambda {operands}: {python}")
        syntax = python_syntax(python)
    else:
        compute = evaluate or getattr(np, name)

    def folded(*xs: Value):
        if python:
            constants = [x.constant for x in xs]
            if all(type(c) in (bool, int, float, complex) for c in constants):
                known = _fold_python(name, compute, constants)
                if known is not None:
                    return known
        simpler = fold(record, *xs) if fold is not None else None
        return simpler if simpler is not None else _absorb_broadcast(record, xs)

    record = define(name, evaluate=compute, syntax=syntax or numpy_syntax(name), fold=folded,
                    partials=partials, infer=_infer(name, result or sampled(compute, name)),
                    elementwise=True, cheap=True, vector=name if vector else "", python=python,
                    slope=slope or ("pole" if any(map(callable, partials)) else "finite"),
                    vjp=elementwise_vjp, jvp=_forward_rule(partials, facts), **facts)
    for function in (getattr(np, name, None) if name != "select" else None, *also):
        if function is not None:
            FUNCTIONS[function] = (of_numpys_numbers(record, len(partials)) if python
                                   else called(record, len(partials)))
    if math is not None:
        _define_in_math(record, math, facts)
    return record


def _forward_rule(partials: tuple, facts: dict) -> Callable | None:
    """The chain rule; None for an op that is linear in all operands by which it has a derivative:
    the op of their tangents (derivative_rules.py).
    """
    linear = facts.get("linear", ())
    is_linear = all(p is None or k in linear for k, p in enumerate(partials))
    return None if linear and is_linear else elementwise_jvp


def is_none(argument) -> bool:
    """Whether an argument is None, as a Python object or as a Value."""
    return argument is None or (isinstance(argument, Value) and argument.constant is None)


def called(record: Record, arity: int) -> Callable:
    """Register `record` as the meaning of a call in the user's program."""

    def call(*args, **keywords):
        for keyword, argument in keywords.items():
            if not is_none(argument):
                raise UnsupportedError(f"{record.name} with the argument {keyword}=",
                                       current().line, f"call {record.name} without it")
        if len(args) != arity:
            raise UnsupportedError(f"{record.name} of {len(args)} arguments", current().line,
                                   f"give it {arity}")
        for x in map(value, args):
            if isinstance(x.type, (Tuple, List)):
                raise ArrayNeededError(x, current().line, x.name or f"an operand of {record.name}")
        return record(*args)

    return call


def of_numpys_numbers(record: Record, arity: int) -> Callable:
    """Adapt `record`, a Python operator, to a call of NumPy's function: Python's numbers become
    NumPy's, and nothing raises.
    """
    call = called(record, arity)

    def called_by_name(*args, **keywords):
        xs = [value(x) for x in args]
        if (xs
            and all(isinstance(x.type, Scalar) and x.type.weak and x.constant is MISSING
                    and x.type.dtype is not None for x in xs[:1])
            and all(isinstance(x.type, Scalar) and x.type.weak for x in xs)):
            args = [RECORDS["convert"](xs[0], dtype=xs[0].type.dtype), *args[1:]]
        return call(*args, **keywords)

    return called_by_name


def _define_in_math(record: Record, function: Callable, facts: dict) -> None:
    """Define the twin of `record` in Python's math module: of one Python number, with math's own
    errors.
    """
    name = f"math.{function.__name__}"
    y = (BOOL if name.startswith("math.is") else INT
         if name in ("math.floor", "math.ceil", "math.trunc") else FLOAT)
    partials = tuple(_in_math(p) if callable(p) else p for p in record.partials)

    def infer(*xs: Value) -> Type:
        for x in xs:
            if isinstance(x.type, Array):
                raise TypeMismatchError(f"{name} of an array", current().line,
                                        f"use np.{record.name}")
        return y

    twin = define(name, evaluate=function, syntax=math_syntax(function.__name__), infer=infer,
                  partials=partials, elementwise=True, cheap=True, vector=record.vector,
                  slope=record.slope, raises=raise_conditions.IN_MATH.get(function.__name__, ()),
                  vjp=elementwise_vjp, jvp=record.jvp and elementwise_jvp,
                  **{**facts, "batch": record, "of_numbers": True})
    IN_MATH[record] = twin
    FUNCTIONS[function] = called(twin, len(partials))


def _in_math(partial: Callable) -> Callable:
    """The same partial derivative in terms of Python's math module: d math.sin = math.cos."""

    def respelled(y, *xs):
        if not isinstance(y, Value):
            return partial(y, *xs)
        block = Block()
        with Builder(block):
            result = value(partial(y, *xs))
        env: dict[Value, Value] = {}
        emit_block(block, (), env, lambda op, inputs: _twin(op, inputs))
        return env.get(result, result)

    return respelled


def _twin(op, inputs: list[Value]):
    """The twin of `op` in Python's math module, if there is one; a number that the rule has
    converted to NumPy's stays that, and what makes integers, which raises of NaN, NumPy's own.
    """
    twin = IN_MATH.get(op.record)
    if (twin is None or twin.raises is raise_conditions.TO_INTEGER
        or inputs[0].op is not None and inputs[0].op.name == "convert"):
        return None
    return twin(*inputs)


def _fold_python(name: str, compute: Callable, constants: list):
    """Fold an operator on Python numbers as Python computes it; None if the result is of another
    kind.
    """
    if name == "power" and isinstance(constants[1], int) and abs(constants[1]) > 64:
        return None
    try:
        result = compute(*constants)
    except (ArithmeticError, TypeError, ValueError):
        return None  # raised at run time
    if isinstance(result, int) and not -2**63 <= result < 2**63:
        return None
    if isinstance(result, complex) and not any(isinstance(c, complex) for c in constants):
        return None
    return emit(constant, value=result)


def _absorb_broadcast(record: Record, xs: tuple[Value, ...]):
    """Note [Broadcasts are absorbed]: `full(shape of x, s) * x` is `s * x` if the shapes are proved
    equal.

    The cotangent of a sum is a number broadcast to an array; almost always an elementwise op reads
    it.
    """
    for k, x in enumerate(xs):
        if x.op is not None and x.op.record.is_broadcast and x.constant is MISSING:
            others = [*xs[:k], x.op.inputs[0], *xs[k + 1:]]
            result = record.infer(*others)
            whole = record.infer(*xs)
            if dtype_of(result) != dtype_of(whole):
                continue
            if same_shape(result, whole):
                return emit(record, *others)
            if x.op.record.name == "spread" and _agree(result, whole):
                like = next((x for x in xs if same_shape(x.type, whole)), None)
                made = emit(record, *others)
                # it may have more axes than the broadcast value
                return made if like is None else shaped_like(made, like)
    return None


def _agree(a: Type, b: Type) -> bool:
    """Whether two shapes that met in the primal are equal: no extent could be 1."""
    return (isinstance(a, Array) and isinstance(b, Array) and a.rank == b.rank
            and not any(m != n and (may_be_one(m) or may_be_one(n))
                        for m, n in zip(a.dims, b.dims)))
