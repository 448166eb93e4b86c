"""Sign analysis: values that are provably positive or not negative by their form; and slopes that
are finite for that reason.

    1 + x * x      positive        np.sum(np.exp(x), axis=1)       positive, unless exp underflows
    np.abs(x)      not negative    np.sqrt(np.maximum(x, 1e-9))    positive

This is no interval analysis: a value of any other form has unknown sign.
"""

from __future__ import annotations

from ...ir.graph import MISSING, Value

DEEPEST = 12  # depth of the analysis, in ops
POSITIVE, NOT_NEGATIVE, UNKNOWN = 2, 1, 0
_ABOVE_ZERO = {"exp", "exp2", "cosh", "math.exp", "math.cosh", "expit", "ndtr"}
_SQUARES = {"square", "absolute", "abs_", "fabs", "math.fabs", "hypot", "math.hypot", "length",
            "size"}
_ROOTS = {"sqrt", "root", "math.sqrt", "cbrt", "math.cbrt"}
_MOVES = {"getitem", "reshape", "ravel", "expand_dims", "squeeze", "transpose", "swapaxes",
          "moveaxis", "flip", "broadcast_to",
          # ops that preserve the sign
          "spread", "repeat", "copy", "astype", "convert", "float_", "shaped_like", "sum", "max",
          "min"}


def sign_of(x, depth: int = 0) -> int:
    """POSITIVE, NOT_NEGATIVE or UNKNOWN; UNKNOWN for complex numbers."""
    constant = x.constant if isinstance(x, Value) else x
    if type(constant) in (bool, int, float):
        return POSITIVE if constant > 0 else NOT_NEGATIVE if constant == 0 else UNKNOWN
    if not isinstance(x, Value) or x.op is None or x.op.blocks or depth == DEEPEST:
        return UNKNOWN
    if (getattr(x.type, "dtype", None) or "").startswith("complex"):
        return UNKNOWN
    name, inputs = x.op.name, x.op.inputs

    def of(k: int) -> int:
        return sign_of(inputs[k], depth + 1)

    if name in _ABOVE_ZERO:
        return POSITIVE
    if (name in ("multiply", "power")
        and (name == "multiply" and inputs[0] is inputs[1] or _is_even(inputs[1]))):
        return POSITIVE if of(0) == POSITIVE else NOT_NEGATIVE
    if name in _SQUARES:
        return (POSITIVE if inputs and name in ("absolute", "abs_", "fabs") and of(0) == POSITIVE
                else NOT_NEGATIVE)
    if name in _ROOTS:
        return POSITIVE if of(0) == POSITIVE else NOT_NEGATIVE if name != "cbrt" else of(0)
    if name in _MOVES:
        return of(0)
    match name:
        case "add":
            a, b = of(0), of(1)
            return UNKNOWN if UNKNOWN in (a, b) else max(a, b)
        case "multiply" | "divide" | "quotient" | "single_quotient" | "power":
            if name == "power":
                return POSITIVE if of(0) == POSITIVE else UNKNOWN
            return min(of(0), of(1))
        case "maximum" | "fmax" | "max_":
            return max(of(0), of(1))
        case "minimum" | "fmin" | "min_":
            return min(of(0), of(1))
        case "where" | "select":
            return min(of(1), of(2))
        case "clip":
            return (min(max(of(0), of(1)), of(2)) if inputs[2].constant is not None
                    else max(of(0), of(1)))
        case "log1p" | "expm1":
            return of(0)
    return UNKNOWN


def _is_even(exponent: Value) -> bool:
    return (type(exponent.constant) in (int, float) and exponent.constant % 2 == 0
            and exponent.constant > 0)


def is_nonzero(x) -> bool:
    """Whether `x` is provably not 0: a nonzero constant, or positive."""
    constant = x.constant if isinstance(x, Value) else x
    if type(constant) in (bool, int, float, complex):
        return constant != 0
    return sign_of(x) == POSITIVE


# ------------------------------------------------------------------------- Note [Slopes], record.py


def steep_at_zero(x) -> str:
    """The boundedness of the slopes of sqrt and cbrt."""
    return "finite" if is_nonzero(x) else "steep"


def pole_at_zero(x) -> str:
    """The boundedness of the slopes of log and of 1 / x."""
    return "finite" if is_nonzero(x) else "pole"


def of_quotient(a, b) -> str:
    """The boundedness of the slopes of a / b, a // b and a % b."""
    return pole_at_zero(b)


def of_power(a, b) -> str:
    """The boundedness of the slopes of a ** b."""
    n = b.constant if isinstance(b, Value) else b
    if type(n) in (bool, int, float) and n >= 1 or n == 0 and n is not MISSING:
        return "finite"
    if is_nonzero(a):
        return "finite"
    return "steep" if type(n) in (int, float) and n > 0 else "pole"


def of_angle(y, x) -> str:
    """The boundedness of the slopes of arctan2(y, x)."""
    return "finite" if is_nonzero(x) or is_nonzero(y) else "steep"
