"""Symbolic vector registers: arithmetic on them emits LLVM code for all lanes.

    y = where(x < 0.0, 1.0 - x, x)   ->   %1 = fcmp olt <4 x double> %x, <double 0.0, ...>
                                          %2 = fsub contract <4 x double> <double 1.0, ...>, %x
                                          %3 = select <4 x i1> %1, <4 x double> %2, <4 x double> %x

The functions of vector math are Python that runs on these, once for each width, and no less on
NumPy's arrays, which is how they are tested.  Both sides decide, and `where` picks: there is no
branch, but for `rarely`.

Products may be fused with sums (the flag `contract`) where the processor can; the algorithms are
right either way. Nothing else is reordered.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

NAMES = {"double": "f64", "float": "f32"}


@dataclass(frozen=True)
class Format:
    """The bit layout of a floating-point precision."""

    mantissa: int  # its bits
    bias: int  # the exponent bias
    # 1.5 * 2**mantissa: adding a number to it rounds that to an integer, in its last bits
    magic: float
    smallest: float  # smallest normal number
    largest: float
    # log(2) in two parts, the first with so few bits that an exponent times it is exact
    log2: tuple[float, float]


DOUBLE = Format(52, 1023, 6755399441055744.0, 2.0**-1022, 1.7976931348623157e308,
                (0.6931471803691238, 1.9082149292705877e-10))
SINGLE = Format(23, 127, 12582912.0, 2.0**-126, 3.4028234663852886e38,
                (0.693145751953125, 1.4286068203094172e-06))


class Code:
    """The instructions of one LLVM function on vectors of `lanes` numbers; 1 means scalar."""

    def __init__(self, lanes: int, fuses: bool = False):
        self.lanes, self.fuses = lanes, fuses
        self.lines: list[str] = []
        self.needs: set[tuple[str, str]] = set()  # declarations, and slow paths (name, type)

    def type(self, kind: str) -> str:
        return kind if self.lanes == 1 else f"<{self.lanes} x {kind}>"

    def suffix(self, kind: str) -> str:
        """The type suffix of an intrinsic's name."""
        return NAMES.get(kind, kind) if self.lanes == 1 else f"v{self.lanes}{NAMES.get(kind, kind)}"

    def emit(self, text: str, kind: str) -> Lanes:
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return Lanes(self, name, kind)

    def constant(self, x: float | int, kind: str) -> Lanes:
        if kind in NAMES:
            x = float(np.float32(x)) if kind == "float" else float(x)
            text = f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}"
        else:
            text = str(int(x))
        if self.lanes > 1:
            text = f"<{', '.join([f'{kind} {text}'] * self.lanes)}>"
        return Lanes(self, text, kind)

    def call(self, intrinsic: str, *xs: Lanes, flags: str = "") -> Lanes:
        kind = xs[0].kind
        name = f"@llvm.{intrinsic}.{self.suffix(kind)}"
        type = self.type(kind)
        self.needs.add(("declare", f"declare {type} {name}({', '.join([type] * len(xs))})"))
        return self.emit(f"call {flags}{type} {name}({', '.join(f'{type} {x.text}' for x in xs)})",
                         kind)


class Lanes:
    """One variable in all lanes: double, float, i64, i32 or, for truth values, i1."""

    __array_ufunc__ = None  # let np.float64(2.0) * x call __rmul__
    __slots__ = ("code", "text", "kind")

    def __init__(self, code: Code, text: str, kind: str):
        self.code, self.text, self.kind = code, text, kind

    def like(self, x) -> Lanes:
        return x if isinstance(x, Lanes) else self.code.constant(x, self.kind)

    def _op(self, op: str, other, swapped: bool = False) -> Lanes:
        a, b = (self.like(other), self) if swapped else (self, self.like(other))
        return self.code.emit(f"{op} {self.code.type(self.kind)} {a.text}, {b.text}", self.kind)

    def _compare(self, op: str, other) -> Lanes:
        op = (f"fcmp {'une' if op == 'ne' else 'o' + op}" if self.kind in NAMES
              else f"icmp {op if op in ('eq', 'ne') else 'u' + op}")
        return self.code.emit(
            f"{op} {self.code.type(self.kind)} {self.text}, {self.like(other).text}", "i1")

    def _is_real(self) -> bool:
        return self.kind in NAMES

    def __add__(self, x): return self._op("fadd contract" if self._is_real() else "add", x)
    def __radd__(self, x): return self._op("fadd contract" if self._is_real() else "add", x, True)
    def __sub__(self, x): return self._op("fsub contract" if self._is_real() else "sub", x)
    def __rsub__(self, x): return self._op("fsub contract" if self._is_real() else "sub", x, True)
    def __mul__(self, x): return self._op("fmul contract" if self._is_real() else "mul", x)
    def __rmul__(self, x): return self._op("fmul contract" if self._is_real() else "mul", x, True)
    def __truediv__(self, x): return self._op("fdiv", x)
    def __rtruediv__(self, x): return self._op("fdiv", x, True)
    def __lshift__(self, x): return self._op("shl", x)
    def __rshift__(self, x): return self._op("lshr", x)
    def __and__(self, x): return self._op("and", x)
    def __or__(self, x): return self._op("or", x)
    def __xor__(self, x): return self._op("xor", x)
    def __invert__(self): return self._op("xor", 1 if self.kind == "i1" else -1)
    def __neg__(self):
        return self.code.emit(f"fneg {self.code.type(self.kind)} {self.text}", self.kind)
    def __lt__(self, x): return self._compare("lt", x)
    def __le__(self, x): return self._compare("le", x)
    def __gt__(self, x): return self._compare("gt", x)
    def __ge__(self, x): return self._compare("ge", x)
    def __eq__(self, x): return self._compare("eq", x)
    def __ne__(self, x): return self._compare("ne", x)
    __hash__ = None

    def cast(self, op: str, kind: str) -> Lanes:
        return self.code.emit(
            f"{op} {self.code.type(self.kind)} {self.text} to {self.code.type(kind)}", kind)


# ----------------------------------------- what is no operator; on NumPy's arrays it means the same


def where(condition, a, b):
    """a where the condition holds, else b."""
    if not isinstance(condition, Lanes):
        dtype = next((v.dtype for v in (a, b) if isinstance(v, np.ndarray)), None)
        return np.where(condition, a, b).astype(dtype, copy=False)
    like = a if isinstance(a, Lanes) else b
    a, b, code = like.like(a), like.like(b), condition.code
    type = code.type(like.kind)
    return code.emit(f"select {code.type('i1')} {condition.text}, {type} {a.text}, {type} {b.text}",
                     like.kind)


def absolute(x):
    """|x|."""
    return x.code.call("fabs", x) if isinstance(x, Lanes) else np.abs(x)


def copysign(x, y):
    """|x| with the sign of y."""
    return y.code.call("copysign", y.like(x), y) if isinstance(y, Lanes) else np.copysign(x, y)


def sqrt(x):
    """The square root."""
    return x.code.call("sqrt", x) if isinstance(x, Lanes) else np.sqrt(x)


def bits(x):
    """The bits of x, as an unsigned integer."""
    if isinstance(x, Lanes):
        return x.cast("bitcast", "i64" if x.kind == "double" else "i32")
    return x.view(np.uint32 if x.dtype == np.float32 else np.uint64)


def number(n):
    """The number with these bits."""
    if isinstance(n, Lanes):
        return n.cast("bitcast", "float" if n.kind == "i32" else "double")
    return n.view(np.float32 if n.dtype == np.uint32 else np.float64)


def wide(x):
    """A number of single precision, in double precision."""
    return x.cast("fpext", "double") if isinstance(x, Lanes) else x.astype(np.float64)


def narrow(x):
    """A number rounded to single precision."""
    return x.cast("fptrunc", "float") if isinstance(x, Lanes) else x.astype(np.float32)


def is_single(x) -> bool:
    """Whether x is of single precision."""
    return x.kind == "float" if isinstance(x, Lanes) else x.dtype == np.float32


def like(x, constant: float):
    """The constant, in the precision of x."""
    return x.like(constant) if isinstance(x, Lanes) else np.full_like(x, constant)


def format_of(x) -> Format:
    """The precision of x."""
    return SINGLE if is_single(x) else DOUBLE


def rounded(x):
    """x rounded to an integer; it must be below a quarter of the largest exact integer."""
    magic = format_of(x).magic
    return (x + magic) - magic


def integer(x):
    """The integral, non-negative number x, as an integer."""
    return bits(x + format_of(x).magic) & ((1 << 22) - 1)


def product(a, b):
    """a * b as an exact sum of two numbers."""
    p = a * b
    if isinstance(a, Lanes) and a.code.fuses:
        return p, a.code.call("fma", a, a.like(b), -p)
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    # each product is exact, fused or not
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(x):
    """x as the sum of two numbers of half its bits."""
    shift = 27 if not is_single(x) else 12
    mask = (1 << (32 if is_single(x) else 64)) - (1 << shift)
    high = number(bits(x) & mask)
    return high, x - high


def polynomial(x, coefficients):
    """c[0] + c[1] x + c[2] x² + ..., by Estrin's scheme, for short dependence chains."""
    terms, power = list(coefficients), x
    while len(terms) > 1:
        terms = [terms[k] + terms[k + 1] * power if k + 1 < len(terms) else terms[k]
                 for k in range(0, len(terms), 2)]
        power = power * power if len(terms) > 1 else power
    return terms[0]


def rarely(condition, name: str, y, *xs):
    """y, or libm's `name` of xs where the condition holds: the only branch, taken for all lanes
    together.
    """
    if not isinstance(condition, Lanes):
        found = getattr(np, name)(*xs)
        return np.where(condition, found, y)
    code, kind = condition.code, y.kind
    code.needs.add(("slow", f"{name} {kind} {len(xs)}"))
    type, any_ = code.type(kind), condition
    if code.lanes > 1:
        name_ = f"@llvm.vector.reduce.or.v{code.lanes}i1"
        code.needs.add(("declare", f"declare i1 {name_}(<{code.lanes} x i1>)"))
        any_ = code.emit(f"call i1 {name_}({code.type('i1')} {condition.text})", "i1")
    k = len(code.lines)
    before = y.text
    code.lines += [f"  br label %from{k}", f"from{k}:",
                   f"  br i1 {any_.text}, label %slow{k}, label %fast{k}, !prof !0", f"slow{k}:"]
    arguments = [f"{code.type('i1')} {condition.text}", *(f"{type} {v.text}" for v in (y, *xs))]
    slow = code.emit(
        f"call {type} @s2s_slow_{name}_{NAMES[kind]}_{code.lanes}({', '.join(arguments)})", kind)
    code.lines += [f"  br label %fast{k}", f"fast{k}:"]
    return code.emit(f"phi {type} [ {before}, %from{k} ], [ {slow.text}, %slow{k} ]", kind)
