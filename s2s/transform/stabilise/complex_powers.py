"""Refuse derivatives of real functions through complex powers of Python's real numbers.

    t = (-x) ** 0.5                  2j for x = 4.0: Python's, where NumPy's is nan
    y = abs(t)

The type of such a power is real, for which number it is depends on the run, and so are the rules
that differentiate what is computed from it.  They are right for complex numbers too, unless `abs`,
`.real` or the like make them real again.  A power that may reach one of these is tested before it
is computed:

    >>> from s2s.transform.reverse.vjp import vjp  # which runs it first
    >>> from s2s.ir.types import FLOAT
    >>> show(vjp(read('''
    ... def f(x):
    ...     return abs(x**0.5)
    ... ''', FLOAT), [0]))  # doctest: +ELLIPSIS
    def f_vjp(x, y_bar):
        if x < 0:
            raise ValueError("line 3: the power of a negative number is complex, and ...")
        t = x**0.5
        value = abs(t)
        with np.errstate(all="ignore"):
            x_bar = 0.5 * (y_bar * np.sign(t)) / t
        return value, x_bar

Considered: to give such powers a complex type, which forbids what the program may do with them
(`t < 1`, `math.sin(t)`) where the base is positive, as it nearly always is; and to test the dtype
of gradients that are returned, which costs every call and misses `(x**x).imag`, whose derivative by
the rule for real numbers is 0, and real.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.activity import active_values
from ...analysis.side_effects import reachable_values
from ...ir.builder import emit
from ...ir.graph import MISSING, OPERATORS, Function, Op, Value, walk
from ...ir.reemit import rebuild
from ...ir.types import Scalar
from ...ops.arrays.norms import root
from ...ops.core.control import if_
from ...ops.core.elementwise import abs_, absolute, conjugate, imag, real
from ...ops.core.raise_conditions import both, is_integral, is_less
from ...ops.core.record import RECORDS
from ...ops.core.signs import is_never_negative
from ...ops.program.effects import Made, Plain, raise_record

# ops that give a real number for a complex one, or would need a rule for complex numbers
REAL_AGAIN = (abs_, absolute, real, imag, conjugate, root)


def refuse_complex_powers(function: Function, wrt: Sequence[int]) -> Function:
    """Test powers in `function` that may be complex where their derivative with respect to the
    parameters numbered `wrt` is one of real numbers.
    """
    powers = [op for op in walk(function.block) if _may_be_complex(op)]
    if not powers or not any(op.record in REAL_AGAIN for op in walk(function.block)):
        return function
    active = active_values(function, [function.params[k] for k in wrt])
    tested = {op.attrs["thrown"] for op in walk(function.block) if op.record is raise_record}
    suspects = {op for op in powers if op.output in active and _thrown(op) not in tested
                and _is_made_real(function, op.output)}

    def rule(op: Op, inputs: list[Value]) -> None:
        if op in suspects:
            _refuse(op, *inputs, op.inputs[1] in active)

    return rebuild(function, rule=rule) if suspects else function


def _may_be_complex(op: Op) -> bool:
    """Test whether `op` is a power of Python's real numbers that may be complex."""
    return (op.name == "power"
            and all(isinstance(x.type, Scalar) and x.type.weak for x in op.inputs)
            and not op.output.type.dtype.startswith("complex")
            and not _is_known_whole(op.inputs[1]) and not is_never_negative(op.inputs[0]))


def _is_made_real(function: Function, power: Value) -> bool:
    reached = reachable_values(function.block, {power}, through=True)
    return any(op.record in REAL_AGAIN and not reached.isdisjoint(op.inputs)
               for op in walk(function.block))


def _is_known_whole(exponent: Value) -> bool:
    known = exponent.constant
    return is_integral(exponent) or isinstance(known, (int, float)) and known % 1 == 0


def _refuse(op: Op, base: Value, exponent: Value, is_active: bool) -> None:
    def refuse() -> tuple:
        emit(raise_record, thrown=_thrown(op), cause=None)
        return ()

    # a derivative in the exponent is complex near whole ones, too
    is_fractional = is_active or exponent.constant is not MISSING or OPERATORS["less"](
        RECORDS["floor"](exponent), exponent)
    if_(both(is_less(base, 0), is_fractional), refuse, lambda: ())


def _thrown(op: Op) -> Made:
    place = "" if op.line is None else f"line {op.line.number}: "
    return Made(ValueError, (Plain(
        f"{place}the power of a negative number is complex, and the derivative of what is made of "
        "it real: write complex(x) ** p, or np.power(x, p) for nan"),))
