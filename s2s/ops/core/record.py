"""One op, one record: meaning, type, derivative, batching and spelling of an operation.

Calling a record on Values emits the op; calling it on arrays computes it.  So a derivative rule is
ordinary Python that can be tested with no compiler at all.

A derivative is stated once.  An elementwise op states its partial derivatives as functions of the
result and the operands; a linear op states its transpose; both modes follow.  `vjp` returns one
contribution per input: None for none, a Value to be added to the input's cotangent, or a function
that takes the cotangent accumulated so far (None if there is none yet) and returns the new one, for
ops whose adjoint writes into that buffer (`x_bar[i] += y_bar`).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from ...errors import ArrayNeededError, TypeMismatchError, UndecidedError
from ...ir.builder import current, emit, fresh_extent, meet
from ...ir.graph import MISSING, Op, Value
from ...ir.types import Array, Scalar, Static, Type, Unknown, is_inexact
from ...lazy_import import Meanings

# the remedy for what only the arguments of a call decide
WITH_ARGUMENTS = "call it first, or ask with arguments: .lower(*args).source"
ALL = range(sys.maxsize)  # inputs of an op of any number of them
RECORDS: dict[str, Record] = {}
# np.sum -> what it means here: called on Values, emits ops
FUNCTIONS: dict[object, Callable] = Meanings()
METHODS: dict[str, Callable] = {}  # x.sum(...) -> the same
ATTRIBUTES: dict[str, Callable] = {}  # x.shape -> a function of x
# by the name that a program calls: how the result shares memory with the first argument (Note
# [Views]), and the functions that copy it, or return an array even of one number
VIEWS: dict[str, str] = {}
COPIES: set[str] = set()
ALWAYS_ARRAYS: set[str] = set()


@dataclass(eq=False)
class Record:
    """The complete definition of one operation."""

    name: str
    # (*arrays, **attrs) -> result: what NumPy computes; None: `run` does it
    evaluate: Callable | None
    infer: Callable  # (*values, **attrs) -> Type, or a list of Types for several outputs
    # (*ast expressions, **attrs) -> ast expression; None: the printer knows the statement
    syntax: Callable | None = None
    # (*values, **attrs) -> Value(s) that stand for the result, or None
    fold: Callable | None = None
    partials: tuple = ()  # elementwise: one (y, *xs) -> ∂y/∂x per operand; None: no derivative
    partial: Callable | None = None  # of any number of operands: (y, x) -> ∂y/∂x of any of them
    vjp: Callable | None = None  # (y_bar, y, *xs, **attrs) -> one contribution per input
    jvp: Callable | None = None  # (x_dots, y, *xs, **attrs) -> y_dot or None
    batch: Callable | None = None  # (flags, *xs, **attrs) -> y of all lanes: see batch_rules.py
    # for sparse derivatives (dependence_rules.py): the inputs of which it moves elements, or the
    # rule by which it combines elements
    moves: Sequence[int] = ()
    depends: Callable | None = None
    elementwise: bool = False
    cheap: bool = False  # recomputed in the reverse sweep rather than saved
    pure: bool = True  # may be dropped if unused, shared if repeated
    # not pure, but its only effect is to raise: independent trips stay independent
    only_raises: bool = False
    # not pure, as it acts on the world outside the program, by output or by writing: it is carried
    # out once, in order, with operands that are templates' (ops/program/effects.py)
    outward: bool = False
    calls_by_name: bool = False  # its text calls its attribute `function` by that one's name
    views: tuple[int, ...] = ()  # inputs whose memory the result may share
    shapes: tuple[int, ...] = ()  # inputs of which only the shape is read
    writes: int | None = None  # the input that prints as overwritten in place: `a[i] = v`
    # elementwise: see Note [Slopes]; or a function of the operands that says it
    slope: str | Callable = "pole"
    warns_at_poles: bool = True  # elementwise: NumPy warns where its value is infinite
    # elementwise: NumPy may warn about what a finite slope is computed from, though not about the
    # value: x * x overflows in that of np.arctan
    slope_warns: bool = False
    # when Python raises instead of computing it: Raises (raise_conditions.py), in order of
    # testing
    raises: tuple = ()
    # its function in runtime/kernels/vector_math, for loops over arrays: "sin"
    vector: str = ""
    # what Numba compiles of it on arrays: Note [Native code]
    native: str = ""
    # (op, *inputs) -> Value: what native code computes instead of it, and kernels of a GPU, unless
    # `cuda` says what these do; None: it stays as it is.  Note [Lowering rules]
    lower: Callable | None = None
    cuda: Callable | None = None
    # (text, op, *xs) -> what it is in StableHLO, or NotImplemented: Note [StableHLO]
    stablehlo: Callable | None = None
    # "operands": native code needs its array operands contiguous; "all": makes the result so, too
    contiguous: str = ""
    ring: bool = False  # a sum, a difference or a product: what indices are computed by
    # its expression of operands a, b, c, if it is an operator or a builtin of Python
    python: str = ""
    # numbers computed in the time of this many additions, for the cost model of parallel loops
    cost: int = 1
    # NumPy's floating-point warnings.  "": an elementwise op may give them where a slope is not
    # finite, another op does not; "never": not even there; "overflow": it may give them anywhere
    warns: str = ""
    keeps_dtype: bool = False  # elementwise: Numba computes it in the dtype of its operands
    returns: int | None = None  # the input that it returns, unless it raises
    checks: bool = False  # its function, in native code too, raises if its operands do not fit
    same_shape: int | None = None  # not elementwise: the input whose shape the result has
    # each element of the result is the one of its first input there, which may be broadcast
    same_elements: bool = False
    # an op on stacks of matrices: the same on one matrix
    of_one: Record | None = None
    # what it is on NumPy's booleans, if Numba computes it there as on integers
    of_truths: Record | None = None
    # a module-level function the spelling calls; its source is printed along
    helper: Callable | None = None
    # (length, *xs, **attrs) -> for each result, its lengths, or None: what they follow from, where
    # extents alone do not say it; `length(x, axis)` asks one of an operand
    lengths: Callable | None = None
    # ops with blocks: (op, inputs, inner) -> outputs, emitted again
    rebuild: Callable | None = None
    run: Callable | None = None  # ops with blocks: (op, inputs, run_block) -> list of results
    check: Callable | None = None  # ops with blocks: (op) -> raises VerifyError
    kinks: tuple = ()  # where its derivative is a convention (kinks.py)
    # (op, output) -> the input that equals the output, if any
    stands_for: Callable | None = None
    # inputs in which it is linear together: without a `jvp`, their tangents go through the op
    # (derivative_rules.py)
    linear: Sequence[int] = ()
    # of these, those that it broadcasts: the number 0 stands for zeros of any shape
    stretches: tuple[int, ...] = ()
    # (y, *xs, **attrs) -> the operand, or the (op, inputs, attributes), that equals the result, or
    # the first of the results, and is differentiated in its place
    differentiated_as: Callable | None = None
    # why it states both `vjp` and `jvp`, where one is not derived from the other
    states_both: str = ""
    # inputs in each of which it is linear: without a `jvp`, the tangent is the sum of the op on one
    # of theirs at a time
    multilinear: Sequence[int] = ()
    # a collective, over the axis that its attribute `name` names (ops/program/collectives.py):
    # (lanes, flags, *xs, **attrs) -> what it is where the flagged xs have that axis in front; and
    # whether all lanes get the same
    across: Callable | None = None
    alike: bool = False
    # of lanes that workers share: (share, flags, *xs, **attrs) -> what it is for those of a worker;
    # None: what it is for all, of what is gathered from all (ops/program/workers.py)
    among: Callable | None = None

    # what it is, in mathematics
    signs: tuple[int, ...] = ()  # the sum of its operands, each times this: a - b has (1, -1)
    divides: bool = False  # elementwise: a / b
    contracts: bool = False  # elementwise: a product that may be fused with a following addition
    commutes: bool = False  # f(a, b) is f(b, a), bit for bit, which maximum(0.0, -0.0) is not
    root: int = 0  # elementwise: the root of this order
    size: bool = False  # elementwise: the root of the sum of its operands' squares
    spectrum: Record | None = None  # of a decomposition: its eigen- or singular values alone
    chooses: bool = False  # each element of the result is an element of one of the operands
    extreme: int = 0  # of two operands it chooses the larger (1) or the smaller (-1)
    skips_nan: bool = False  # ... and where one is NaN the other
    leaves_out: bool | Callable = False  # moves elements, but not all (of these operands)
    selects: bool = False  # ... where the first operand says of which of the others
    halves_ties: bool = False  # ... and at a tie each operand gets half of the derivative
    compares: bool = False  # two numbers
    negates: bool = False  # a truth value
    tests_finite: bool = False  # whether a number is finite, infinite or NaN
    natural: bool = False  # an integer that is never negative
    # the least that a result can be: a number, a `Least`, or a rule that tells it of those of the
    # operands (Note [Least values], signs.py); None: what the other facts imply
    least: Callable | float | tuple | None = None
    fill: int | None = None  # the number that all elements are
    unwritten: bool = False  # its elements are not said
    distinct: bool = False  # no two elements of its result, a vector, are equal
    integral: bool = False  # elementwise: an integer where, and only where, all operands are
    converts: bool = False  # elementwise: the same number, in another dtype
    tame_at_one: bool = False  # steep, but finite, and so is its slope, where all operands are 1
    # how it computes, and of what
    exact: bool = False  # the same bit for bit, however it is compiled: nothing, or one rounding
    # elementwise, and measured: native code has it sooner than a number from memory
    quick: bool = False
    total: bool = False  # not elementwise, and cannot raise
    of_numbers: bool = False  # its operands are numbers, never arrays
    returns_operand: bool = False  # one of its operands itself, of Python or of NumPy
    from_zero: bool = False  # a sum that begins with Python's 0, and may end with it
    # what it does with arrays, tuples and tapes
    asks_extents: bool = False  # its result is made of the extents of its operand
    finds: bool = False  # its result is the number of an element of its first input
    # the elements of its first input, in the same order, in a shape that its other inputs give
    reshapes: bool = False
    # not elementwise: broadcasts its first input to a shape that the others give, or sums it to one
    # from which it was broadcast
    broadcasts: bool = False
    allocates: int | None = None  # the first of the lengths of a new array among its inputs
    indices: int | None = None  # the first of the indices into input 0, an array, among the inputs
    read_only: bool = False  # its result is a view that is not to be written into
    stores: bool = False  # the second input, or the items of it, in the first, a list
    growth: int = 0  # by how many items it makes its first input, a list, longer
    accumulates: bool = False  # what it writes is added to what stands there: `a[i] += v`
    structural: bool = False  # computes nothing: names a value, makes a tuple, takes a member
    on_tapes: bool = False  # its result is a tape, or what was stored in one

    def __post_init__(self):
        if self.signs:
            self.linear = tuple(range(len(self.signs)))

    @property
    def is_sum(self) -> bool:
        """Whether it adds or subtracts two operands."""
        return len(self.signs) == 2

    @property
    def is_arithmetic(self) -> bool:
        """Whether it is one of +, -, * and /, of one operand or of two."""
        return self.ring or self.divides or bool(self.signs)

    @property
    def is_equality(self) -> bool:
        """Whether it compares for equality."""
        return self.compares and self.commutes

    @property
    def is_broadcast(self) -> bool:
        """Whether its result is its first input, broadcast."""
        return self.broadcasts and self.same_elements

    def __call__(self, *args, **attrs):
        if any(isinstance(a, Value) for a in args):
            return emit(self, *map(value, args), **attrs)
        return self.evaluate(*args, **attrs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    @property
    def writes_elements(self) -> bool:
        """Whether it writes to elements of an array: `a[i] = v`, `a[i] += v`."""
        return self.indices is not None and self.writes is not None

    def is_silently_steep(self, inputs) -> bool:
        """Whether NumPy may compute it without a warning where a slope is infinite: where the value
        is finite, and for SciPy everywhere.
        """
        slope = self.slope_at(inputs)
        return (slope == "steep"
                or slope == "pole"
                and (not self.warns_at_poles
                     or self.name == "power" and inputs[1].constant is MISSING
                     and is_inexact(dtype_of(inputs[1].type) or "float64")))

    def slope_at(self, inputs) -> str:
        """The boundedness of an elementwise op's slopes for these operands: "finite", "steep" or
        "pole".
        """
        return self.slope(*inputs) if callable(self.slope) else self.slope


# Note [Slopes]
# "finite": at finite operands all slopes are finite, unless they overflow (exp, multiply).
# "steep": the slope may be infinite where the value is finite (sqrt at 0, arccos at 1).  "pole":
# the value may be infinite, too (log, 1 / x), and so may values computed from it.


def shared(rule: Callable) -> Callable:
    """Decorator: a rule that many ops share, and whose first argument is the record."""
    rule.is_shared = True
    return rule


# Note [Native code]
# An op for which `lower` has other ops is computed by these.  Elementwise ops become loops, and so
# does what back/lower has a rule for.  Of the other ops Numba compiles those on single numbers, and
# those on arrays as the field `native` says:
# "compiled": it compiles the op as it is printed.
# "search": likewise if the first operand is an array.
# "matrix": by BLAS or LAPACK, if all arrays have one dtype, of real or complex floats, and at most
# two axes.
# "": nothing; NumPy does it, called from compiled code.
# "python": likewise, on single numbers, too.
#
# Considered: a decorator at the code that calls NumPy (back/lower/library_calls.py), as for the ops
# that become loops; but these have no code of their own, and what Numba compiles is a fact about
# the op as it is printed, which its record spells.


# Note [Lowering rules]
# `lower(op, *inputs)` emits what stands for `op` in native code, where Numba has no such function
# (np.outer), computes it otherwise than NumPy (the sign of an uint8), or has a slower one, and
# where the op matters to derivatives only.  It is called once for each op (back/arrays/legalise.py)
# and not for the ops that it emits.  `inputs` are those of `op` after their own lowering; the type
# of the result and the attributes are those of `op`.  A rule made of ops stands where the op is
# defined; one that needs the loop form, BLAS or LAPACK stands in back/arrays, and is attached there
# to the record that it imports.
#
# Kernels of a GPU call no library and raise no errors, so the few rules that do have a counterpart,
# `cuda`; of the others `lower` holds on both.  Considered: an argument of each rule, whether there
# is BLAS, which sixty rules would take and four would read; a context value, such as `deriving`,
# with which a rule means one thing or another, unseen where it is called: by that of einsum, say.


# Note [StableHLO]
# `stablehlo(text, op, *xs)` appends to a Text (stablehlo_text.py) what `op` is for the operands xs,
# Tensors or known values of which one at least is a Tensor, and returns the result, or a list of
# several.  Without a rule, or where it returns NotImplemented, an op that moves elements (`moves`)
# is a view or a gather of the elements that `evaluate` picks, one that has a lowering rule is what
# that emits, and any other is refused.  A rule of an op with blocks is given the values around as
# its third argument.


def lowers(*records: Record, cuda: Callable | None = None) -> Callable:
    """Decorator: the rule by which these ops are lowered, and that for kernels, if it is another
    one (Note [Lowering rules]).
    """

    def attach(rule: Callable) -> Callable:
        for record in records:
            if record.lower is not None:
                raise ValueError(f"the op {record.name} is lowered twice")
            record.lower, record.cuda = rule, cuda or record.cuda
        return rule

    return attach


def no_vjp(bar, y, *inputs, **attrs) -> tuple:
    """The `vjp` of an op whose result has derivative 0 by all inputs."""
    return (None,) * len(inputs)


def no_jvp(dots, y, *inputs, **attrs) -> None:
    """The `jvp` of an op whose result has derivative 0 by all inputs."""


def becomes(record: Record) -> Callable:
    """The lowering rule of an op that is this one of the same operands and attributes."""
    return lambda op, *inputs: record(*inputs, **op.attrs)


def its_operand(op: Op, x: Value, *others: Value) -> Value:
    """The lowering rule of an op that is its first operand."""
    return x


def stays(op: Op, *inputs: Value) -> None:
    """The lowering rule of an op that stays as it is, where kernels do without `lower`."""


def define(name: str, **fields) -> Record:
    """Add a record to the table of ops."""
    if name in RECORDS:
        raise ValueError(f"the op {name} is defined twice")
    record = RECORDS[name] = Record(name, **fields)
    for field_name, rule in fields.items():
        if getattr(rule, "is_shared", False):
            setattr(record, field_name, partial(rule, record))
    return record


def is_check(name: str) -> bool:
    """Whether the op of this name, as in the text `name(n, ...)`, is a check, which may raise."""
    return name in RECORDS and RECORDS[name].checks


def returns_its_operand(name: str) -> bool:
    """Whether the op of this name, as in the text `name(n, ...)`, is a check that returns n."""
    return name in RECORDS and RECORDS[name].returns == 0


def state(*records: Record, **facts) -> None:
    """State fields that these records have in common, where rows of a table have no room."""
    for record in records:
        for name, content in facts.items():
            getattr(record, name)  # raises if there is no such field
            setattr(record, name, content)


@dataclass(frozen=True, eq=False)
class Macro:
    """A higher-order function such as `grad`: its meaning inside a program.

    `expand(call, *args, **keywords)` is given what the arguments stand for and returns what the
    result does; `call(f, *args)` calls `f` in the program.  After the function come `data`
    arguments, `...` for any number; all others are options, of which it is given the Python
    objects, known when code is generated.
    """

    expand: Callable
    data: tuple = ()

    def is_option(self, argument: int | str) -> bool:
        """Whether the argument with this number or name is static."""
        if isinstance(argument, str):
            return argument not in self.data
        return argument > len(self.data) and self.data != (...,)


# s2s.grad -> its meaning inside a program; filled by the public module
MACROS: dict[object, Macro] = {}


# Note [Views]
# "transpose": a view with its axes in another order.
# "involution": a view, and the function of the view is the array again.
# "reshape": a view in which only axes of length 1 come or go.
# "contiguous": a view with other axes if the array is contiguous, else a copy.
# "read-only": a view that NumPy marks read-only.
# "parts": views of parts of the array.
# "component": a view of the real or of the imaginary parts of complex numbers; of an array of other
# numbers, the array itself or zeros.
# "maybe": the array itself, a view, or a copy.
# front/values/numpy_views.py says which writes can be followed through them.


class MemberTuple(tuple):
    """A tuple of whose members each is an attribute as well, `np.linalg.svd(a).S`."""

    names: list[str]


MEMBERS: dict[Callable, type[MemberTuple]] = {}  # the functions that return one


def numpy_function(*functions, method: str = "", attribute: str = "", view: str = "",
                   copies: bool = False, always_array: bool = False, fields: str = ""):
    """Register the decorated function as the meaning of these functions, this method or this
    attribute, whose result is such a view of the first argument (Note [Views]), a copy of it, or an
    array even of one number; or a tuple whose members are these `fields` of it as well.
    """
    for function in functions if fields else ():
        MEMBERS[function] = type(function.__name__, (MemberTuple,), {"names": fields.split()})
    names = [getattr(function, "__name__", "") for function in functions] + [method, attribute]
    for name in filter(None, names):
        if view:
            VIEWS[name] = view
        if copies:
            COPIES.add(name)
        if always_array:
            ALWAYS_ARRAYS.add(name)

    def register(rule: Callable) -> Callable:
        for function in functions:
            FUNCTIONS[function] = rule
        if method:
            METHODS[method] = rule
        if attribute:
            ATTRIBUTES[attribute] = rule
        return rule

    return register


def common_dtype(*dtypes: str | None) -> str | None:
    """NumPy's result dtype of these; among numbers known only at a call, which are real, a complex
    one makes it complex.
    """
    if None in dtypes:
        return ("complex128" if any(d is not None and d.startswith("complex") for d in dtypes)
                else None)
    return np.result_type(*map(np.dtype, dtypes)).name


# ---------------------------------------------------------------------------------------- constants


def type_of_constant(x) -> Type:
    """The type of a Python or NumPy object in the program text, or fixed from outside."""
    match x:
        case bool():
            return Scalar("bool", weak=True)
        case np.generic():
            return Scalar(x.dtype.name)
        case int():
            return Scalar("int64", weak=True)
        case float():
            return Scalar("float64", weak=True)
        case complex():
            return Scalar("complex128", weak=True)
    return Static(x)


constant = define(
    "constant",
    evaluate=lambda *, value: value,
    infer=lambda *, value: type_of_constant(value),
    # the printer spells constants that ast.Constant cannot
    syntax=lambda *, value: ast.Constant(value),
    cheap=True,
    total=True, structural=True, exact=True, native="compiled",
    # members of an IntEnum are numbers, which Numba has as objects
    lower=lambda op: (value(op.attrs["value"].value) if isinstance(op.attrs["value"], Enum)
                      else None),
)


def value(x) -> Value:
    """`x` as a Value: Values as they are, tuples as tuple ops, everything else as a constant."""
    if isinstance(x, Value):
        return x
    if isinstance(x, tuple):
        return RECORDS["tuple"](*map(value, x)) if x else emit(RECORDS["tuple"])
    return emit(constant, value=x)


def static(x, what: str = "this argument"):
    """The Python object behind `x`, which must be a constant."""
    if not isinstance(x, Value):
        return x
    if x.constant is not MISSING:
        return x.constant
    if x.op is not None and x.op.name == "tuple":
        return tuple(static(item, what) for item in x.op.inputs)
    error = UndecidedError(
        f"{what} must be known when code is generated, and depends on run-time data",
        current().line, "write it as a literal, or make the argument static")
    error.value = x
    raise error


def is_static(x) -> bool:
    """Whether `static(x)` would succeed."""
    if not isinstance(x, Value) or x.constant is not MISSING:
        return True
    return x.op is not None and x.op.name == "tuple" and all(map(is_static, x.op.inputs))


# ------------------------------------------------------------------------------------------- shapes


def rank(x: Value) -> int | None:
    """The number of axes, or None if unknown."""
    match x.type:
        case Scalar():
            return 0
        case Array(_, dims):
            return len(dims)
        case Unknown():
            return None
    raise ArrayNeededError(x, current().line)


def dims_of(type: Type) -> tuple:
    """The extents of a Scalar or Array."""
    return type.dims if isinstance(type, Array) else ()


def dtype_of(type: Type) -> str | None:
    """The dtype of a Scalar, Array or Unknown."""
    return getattr(type, "dtype", None)


def same_shape(a: Type, b: Type) -> bool:
    """Whether the two shapes are proved equal."""
    if isinstance(a, Unknown) and isinstance(b, Unknown):
        return a.shape is not None and a.shape == b.shape
    if isinstance(a, (Scalar, Array)) and isinstance(b, (Scalar, Array)):
        return dims_of(a) == dims_of(b)
    return False


def array_type(dtype: str, dims: tuple) -> Type:
    """An Array type, or a Scalar for rank 0."""
    return Array(dtype, tuple(dims)) if dims else Scalar(dtype)


def broadcast_dim(a, b):
    """The broadcast of the extents `a` and `b`; None if known only at run time.  See Note [Which
    extents are 1].
    """
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    meet(a, b, broadcasts=True)
    if isinstance(a, int) and isinstance(b, int):
        raise TypeMismatchError(f"shapes do not broadcast: {a} against {b}", current().line,
                                "make the extents equal, or one of them 1")
    if isinstance(a, int):  # not 1
        return a
    if isinstance(b, int):
        return b
    if not a.may_be_one:
        return a
    if not b.may_be_one:
        return b
    return None


def broadcast_dims(*shapes: tuple) -> tuple:
    """NumPy's broadcasting of shapes."""
    first, *others = [shape for shape in shapes if shape] or [()]
    if all(shape == first for shape in others):
        return tuple(first)
    count = max(map(len, shapes), default=0)
    result = []
    for axis in range(-count, 0):
        dim = 1
        for shape in shapes:
            if -axis <= len(shape):
                dim = broadcast_dim(dim, shape[axis])
                if dim is None:
                    dim = fresh_extent()
        result.append(dim)
    return tuple(result)


def promote(*types: Type) -> tuple[str, bool]:
    """NEP 50: (dtype, weak) of an elementwise result, from types with known dtypes."""
    weak = all(isinstance(t, Scalar) and t.weak for t in types)
    samples = [_weak_sample(t) if isinstance(t, Scalar) and t.weak else np.dtype(t.dtype)
               for t in types]
    return np.result_type(*samples).name, weak


def _weak_sample(t: Scalar):
    return {"bool": False, "int64": 0, "float64": 0.0, "complex128": 0j}[t.dtype]


# --------------------------------------------------------------------------------------- directions


def runs_backwards() -> bool:
    """Whether the code being emitted belongs to an adjoint, where the sign of a zero does not
    matter.
    """
    line = current().line
    return line is not None and line.backwards


# Note [Derivatives do not raise]
# Python numbers raise when divided by zero, NumPy's do not.  For a Python number x, `np.sin(x) / x`
# is NumPy's and nan at 0; its derivative has the factor 1.0 / x, which is Python's and would raise.
# A program that does not raise has a derivative that does not: it is inf or nan, as in NumPy.  So a
# rule that divides by a Python number divides as np.divide does (the op `quotient`), unless the
# other operand is certainly NumPy's, the divisor certainly not 0, or the op itself raises in this
# case: then `1 / x` stays as it is, and x = 0 stays a ZeroDivisionError.
# Considered: converting the divisor, np.float64(x), which makes the derivatives of float32 programs
# float64; starting cotangents as np.float64(1.0), which spoils every product from which the seed is
# simplified away, and does not help if the dividend is a Python zero from another path.
#
# np.divide turns Python numbers into float64, which widens everything that meets it.  In the
# derivative of a single-precision result, of np.mean or x / len(x), it is np.divide(1.0, n,
# dtype=np.float32) (the op `single_quotient`).  Considered: np.float32(1.0) / n, but a converted
# constant is a constant, and counts as Python's once it is printed as 1.0.


class deriving:
    """Context manager: divisions emitted inside belong to the derivative of y = record(...)."""

    quietly = False  # whether divisions by zero must not raise now
    single = False  # whether its results from Python numbers are to be float32

    def __init__(self, record: Record, y):
        self.quiet = not (any(each.at_poles for each in record.raises) and isinstance(y, Value)
                          and isinstance(y.type, Scalar) and y.type.weak)
        self.of_single = isinstance(y, Value) and dtype_of(y.type) == "float32"
        self.overflows = record.slope_warns
        self.steep = (isinstance(y, Value) and y.op is not None
                      and record.is_silently_steep(y.op.inputs))

    def __enter__(self) -> None:
        self.builder = current()
        self.saved = deriving.quietly, deriving.single, self.builder.line
        deriving.quietly, deriving.single = self.quiet, self.of_single
        if (self.steep or self.overflows) and self.builder.line is not None:
            self.builder.line = self.builder.line.of_slope(self.steep, self.overflows)

    def __exit__(self, *exc) -> None:
        deriving.quietly, deriving.single, self.builder.line = self.saved


class forwards:
    """Context manager: the values emitted inside are tangents, of a derivative if `one_sided`
    (ops/arrays/norms.py).
    """

    active = False
    one_sided = False

    def __init__(self, one_sided: bool):
        self.mine = True, one_sided

    def __enter__(self) -> None:
        self.saved = forwards.active, forwards.one_sided
        forwards.active, forwards.one_sided = self.mine

    def __exit__(self, *exc) -> None:
        forwards.active, forwards.one_sided = self.saved
