"""The type lattice of the IR: dtypes, ranks, and which extents are 1.

Types form a lattice: `join(a, b)` is the least type that describes both.  `Undefined` is its bottom
(a name that no statement has bound yet), `Unknown` its top (a scalar or an array of any rank).

Extents are compared, never computed: an `Extent` is a symbol plus an offset, equal symbols mean
equal lengths, and code that needs the number asks a live value for it.  See
Note [Which extents are 1].
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .length_assumptions import LONG, depend_on_long_axes, is_long
from .treedef import Form

# Note [Which extents are 1]
# Code is specialised on dtype, rank and on which extents are 1, never on other extents.  An extent
# that a parameter brings is known not to be 1 (`may_be_one` is False), so two such extents that
# meet in an elementwise op are equal, or the op raises.  The length of `x[1:-1]` is max(n - 2, 0),
# which may be 1 at run time although n is not; it is written n - 2 with `may_be_one` set, unless n
# is `long` (length_assumptions.py,
# Note [Long axes]).  Negative offsets mean max(n + offset, 0), which is what slicing gives.


@dataclass(frozen=True)
class Extent:
    """A run-time length: max(symbol + offset, 0).  The symbol stands for a length, which is not
    negative.

    What is known of being 1 is known of the symbol, so that the extent that is taken from `x`, made
    longer and shorter again, is the one that `x` has: the inside of `np.zeros(len(x) + 2)` is as
    long as `x`.
    """

    symbol: str
    offset: int = 0
    symbol_may_be_one: bool = True
    symbol_is_long: bool = False
    # not to be what makes a slice of it have length 1: Note [Supposed lengths] in
    # length_assumptions.py
    symbol_is_supposed: bool = False

    @property
    def may_be_one(self) -> bool:
        """Whether this length may be 1: n + 2 never is, nor is n - 2 where n is long, or assumed
        not to be 3.
        """
        if self.symbol_may_be_one or not self.leaves_out_few:
            return self.offset < 2 if self.offset else self.symbol_may_be_one
        if self.symbol_is_supposed:
            return False
        depend_on_long_axes()
        return not self.symbol_is_long

    @property
    def least(self) -> int:
        """A lower bound of this length: of n - 2 where n is long, 6; 0 where nothing is known."""
        if self.symbol_may_be_one or not self.symbol_is_long or LONG + self.offset <= 0:
            return max(self.offset, 0)
        depend_on_long_axes()
        return LONG + self.offset

    @property
    def leaves_out_few(self) -> bool:
        """Whether so few elements are left out that the length is not 1 if the axis is long: n - 7.
        """
        return 1 - LONG < self.offset < 0

    @property
    def may_be_one_though_long(self) -> bool:
        """Whether so many elements are left out that the length may be 1 though the axis is long: n
        - 8.
        """
        return self.offset <= 1 - LONG

    @property
    def accepts_any(self) -> bool:
        """Whether this axis of a loop's carry may change from trip to trip."""
        # that has one is an argument's: `anything.0`
        return self.symbol.startswith("any") and "." not in self.symbol

    @property
    def is_supposed(self) -> bool:
        """Whether its difference from 1 is assumed and checked once it is known.
        Note [Supposed lengths] in length_assumptions.py.
        """
        return (self.symbol_is_supposed and self.leaves_out_few
                or self.symbol.startswith("supposed") and "." not in self.symbol
                and not self.offset)

    def __str__(self) -> str:
        return self.symbol if not self.offset else f"{self.symbol}{self.offset:+d}"


Dim = int | Extent


def dims_of_argument(shape: Sequence[int], name: str) -> tuple[Dim, ...]:
    """Return the extents of an array argument, named after it."""
    return tuple(1 if n == 1 else Extent(f"{name}.{axis}", 0, False, is_long(n))
                 for axis, n in enumerate(shape))


@dataclass(frozen=True)
class Scalar:
    """A number.  `weak` marks Python's own int, float and complex, which are weak in promotion (NEP
    50).
    """

    dtype: str
    weak: bool = False

    def __str__(self) -> str:
        return self.dtype or "?"


@dataclass(frozen=True)
class Array:
    """An ndarray of known rank; rank 0 is a Scalar."""

    dtype: str
    dims: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        return len(self.dims)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True)
class Unknown:
    """A scalar or an array of any rank and dtype.

    `shape` names what is not known: two values with the same symbol have the same shape.  `dtype`
    is None where that is not known either.
    """

    shape: str | None = None
    dtype: str | None = None

    def __str__(self) -> str:
        return "?" if self.shape is None else f"?[*{self.shape}]"


@dataclass(frozen=True)
class Tuple:
    """A tuple of values, known member by member, or another container: then `form` says which."""

    items: tuple[Type, ...]
    form: Form | None = None

    def __str__(self) -> str:
        if self.form is not None:
            members = ", ".join(f"{key}: {item}" for key, item in zip(self.form.keys, self.items))
            return f"{self.form.cls.__name__}({members})"
        return f"({', '.join(map(str, self.items))}{',' if len(self.items) == 1 else ''})"


def is_same(a, b) -> bool:
    """Test whether two objects are equal and of one type, so that 1, 1.0 and True are three."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else has_equality(a) and a == b


def has_equality(x) -> bool:
    """Test whether objects equal to `x` are interchangeable in every program, as they may not be if
    a user's class defines equality.
    """
    kind = type(x)
    return (kind.__eq__ is object.__eq__
            or kind.__module__ in ("builtins", "numpy", "functools", "types"))


@dataclass(frozen=True)
class Static:
    """A value with no run-time content: None, a string, a dtype, a function."""

    value: object

    def __str__(self) -> str:
        return f"static {getattr(self.value, '__name__', self.value)!s}"

    def __eq__(self, other) -> bool:
        return isinstance(other, Static) and is_same(self.value, other.value)

    def __hash__(self) -> int:
        try:
            return hash((Static, self.value))
        except TypeError:
            return hash((Static, id(self.value)))


def is_listed(type: Type) -> bool:
    """Test whether NumPy converts a value of this type to an array: a tuple or a list."""
    return isinstance(type, Tuple) and (type.form is None
                                        or issubclass(type.form.cls, (tuple, list)))


@dataclass(frozen=True)
class List:
    """A list of items of one type, which grows and shrinks at run time."""

    item: Type

    def __str__(self) -> str:
        return f"list of {self.item}"


@dataclass(frozen=True)
class Tape(List):
    """A stack that is emptied by whoever fills it, so that its cotangent starts empty."""

    def __str__(self) -> str:
        return f"tape of {self.item}"


@dataclass(frozen=True)
class HashTable(List):
    """A dict from keys, which are numbers or tuples of numbers, to places in a list; `item` is the
    type of its keys.
    """

    def __str__(self) -> str:
        return f"hash table of {self.item}"


@dataclass(frozen=True)
class HashSet(List):
    """A set of numbers, or of tuples of numbers."""

    def __str__(self) -> str:
        return f"set of {self.item}"


@dataclass(frozen=True)
class Generator:
    """A numpy.random.Generator, which every draw changes; `legacy`, a numpy.random.RandomState."""

    legacy: bool = False

    def __str__(self) -> str:
        return "legacy_generator" if self.legacy else "generator"


@dataclass(frozen=True)
class Undefined:
    """The type of a name that no statement has bound yet."""

    def __str__(self) -> str:
        return "undefined"


Type = Scalar | Array | Unknown | Tuple | Static | List | Undefined | Generator

BOOL = Scalar("bool", weak=True)
INT = Scalar("int64", weak=True)
FLOAT = Scalar("float64", weak=True)
UNKNOWN = Unknown()
UNDEFINED = Undefined()
GENERATOR = Generator()
RANDOM_STATE = Generator(legacy=True)
NONE = Static(None)

def is_inexact(dtype: str | None) -> bool:
    """Test whether values of `dtype`, None if it is not known, can carry a derivative."""
    return dtype is None or dtype.startswith(("float", "complex"))


def carries_derivative(type: Type) -> bool:
    """Test whether a value of `type` can carry a derivative."""
    match type:
        case Scalar(dtype) | Array(dtype):
            return dtype is None or is_inexact(dtype)
        case Tuple(items):
            return any(map(carries_derivative, items))
        case HashTable() | HashSet():
            return False  # of floats, too
        case List(item):
            return carries_derivative(item)
        case Unknown(_, dtype):
            return dtype is None or is_inexact(dtype)
    return False


def has_unknown(type: Type) -> bool:
    """Test whether some part of `type` is of unknown rank."""
    match type:
        case Unknown():
            return True
        case Tuple(items):
            return any(map(has_unknown, items))
        case List(item):
            return has_unknown(item)
    return False


def may_be_one(dim: Dim) -> bool:
    """Test whether this extent may be 1."""
    return dim == 1 if isinstance(dim, int) else dim.may_be_one


def with_own_extents(type: Type, name: str) -> Type:
    """Return `type` with fresh extents named after `name`."""
    match type:
        case Array(dtype, dims):
            return Array(dtype,
                         tuple(Extent(f"{name}.{k}", 0, d.may_be_one, d.symbol_is_long
                                      and not d.offset) if isinstance(d, Extent) else d
                               for k, d in enumerate(dims)))
        case Unknown(str(), dtype):
            return Unknown(name, dtype)
        case Tuple(items):
            return replace(type,
                           items=tuple(with_own_extents(t, f"{name}.{k}")
                                       for k, t in enumerate(items)))
    return type


def _join_dims(m: Dim, n: Dim, fresh) -> Dim:
    if m == n or isinstance(m, Extent) and m.accepts_any and m.may_be_one >= may_be_one(n):
        return m
    return replace(fresh(), symbol_may_be_one=may_be_one(m) or may_be_one(n))


def _of_items(extent: Extent) -> Extent:
    """Return an extent that may differ between the items of a list."""
    return extent if extent.accepts_any else replace(extent,
                                                     symbol=f"any{extent.symbol.removeprefix('d')}")


# Note [What joins]
# A variable that holds a float32 on one path and a float64 on another is of the type that describes
# both, as NumPy promotes (np.promote_types).  Python's own numbers yield, as they do in NumPy's
# operators (NEP 50): the running sum that starts as 0.0 and to which elements of a float32 array
# are added is a float32.


def _kind_and_bits(dtype: str) -> tuple[str, int]:
    kind = dtype.rstrip("0123456789")
    return kind, int(dtype[len(kind):] or 8)


def promoted(a: str | None, b: str | None) -> str | None:
    """Return the least dtype that holds the values of both, as np.promote_types."""
    if a is None or b is None or a == b:
        return None if a is None or b is None else a
    (kind, bits), (other, size) = sorted(map(_kind_and_bits, (a, b)),
                                         key=lambda k: _KINDS.index(k[0]))
    if kind == "bool":
        return a if b == "bool" else b
    if kind == other:
        return f"{kind}{max(bits, size)}"
    if other == "int":  # and the first is unsigned
        return f"int{max(2 * bits, size)}" if bits < 64 else "float64"
    if kind in ("int", "uint"):
        kind, bits = "float", min(2 * bits, 64)
    if other == "float":
        return f"float{max(bits, size)}"
    return f"complex{max(2 * bits, size)}"


_KINDS = ("bool", "uint", "int", "float", "complex")


def _joined_number(a: Scalar, b: Scalar) -> Scalar:
    if a.dtype is None or b.dtype is None:
        return Scalar(None, weak=a.weak and b.weak)
    if a.weak is b.weak:
        return Scalar(promoted(a.dtype, b.dtype), weak=a.weak)
    weak, strong = (a, b) if a.weak else (b, a)
    (kind, _), (other, bits) = _kind_and_bits(weak.dtype), _kind_and_bits(strong.dtype)
    if _KINDS.index(kind) <= _KINDS.index(other) or kind == "int" and other == "uint":
        return strong
    if kind == "complex" and other == "float":
        return Scalar(f"complex{max(2 * bits, 64)}")
    return Scalar(weak.dtype)


def join(a: Type, b: Type, fresh=lambda: Extent("?")) -> Type | None:
    """Return the least type that describes both `a` and `b`, or None where there is none.

    `fresh()` supplies the extent for an axis on which the two differ.
    """
    if a == b:
        return a
    match a, b:
        case Undefined(), _:
            return b
        case _, Undefined():
            return a
        case Scalar(), Scalar():
            return _joined_number(a, b)
        case Array(), Array() if a.rank == b.rank:
            return Array(promoted(a.dtype, b.dtype),
                         tuple(_join_dims(m, n, fresh) for m, n in zip(a.dims, b.dims)))
        case Tuple(), Tuple() if len(a.items) == len(b.items) and a.form == b.form:
            items = tuple(join(m, n, fresh) for m, n in zip(a.items, b.items))
            return None if None in items else replace(a, items=items)
        case List(), List() if type(a) is type(b):
            item = join(a.item, b.item, lambda: _of_items(fresh()))
            return None if item is None else type(a)(item)
        case (Unknown() | Scalar() | Array()), (Unknown() | Scalar() | Array()):
            # as is what they make, on some path
            is_complex = any(d is not None and d.startswith("complex") for d in (a.dtype, b.dtype))
            return Unknown(dtype=a.dtype if a.dtype == b.dtype else "complex128" if is_complex
                           else None)
    return None


def forget_weak(type: Type) -> Type:
    """Return `type` with Python's own numbers counted as NumPy's."""
    match type:
        case Scalar(dtype, True):
            return Scalar(dtype)
        case Tuple(items):
            return replace(type, items=tuple(map(forget_weak, items)))
    return type


def canonical_types(types: Iterable[Type], names: Iterable[str]) -> tuple[Type, ...]:
    """Return the types of values of these names, alpha-renamed: an extent is named after the axis
    where it first appears.
    """
    symbols: dict[str, str] = {}

    def extent(dim: Dim, name: str) -> Dim:
        if not isinstance(dim, Extent):
            return dim
        return replace(dim, symbol=symbols.setdefault(dim.symbol, name))

    def own(type: Type, name: str) -> Type:
        match type:
            case Array(dtype, dims):
                return Array(dtype, tuple(extent(d, f"{name}.{k}") for k, d in enumerate(dims)))
            case Unknown(shape, dtype) if shape is not None:
                return Unknown(symbols.setdefault(f"shape {shape}", name), dtype)
            case Tuple(items):
                return replace(
                    type, items=tuple(own(item, f"{name}.{k}") for k, item in enumerate(items)))
        return type

    return tuple(own(type, name) for type, name in zip(types, names))
