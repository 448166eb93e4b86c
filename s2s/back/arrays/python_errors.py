"""Where Python's own numbers raise, compiled code raises, too.

Native division of numbers gives inf where Python raises ZeroDivisionError; native sqrt gives NaN
where math.sqrt raises ValueError. So before an op that Python might refuse, compiled code asks what
the op's record says (ops/core/raise_conditions.py), or after it, where the result tells:

    if n == 0:                              y = x ** p
        raise ZeroDivisionError             if not math.isfinite(y) and math.isfinite(x):
    mean = total / n                            raise ArithmeticError

NumPy's numbers do not raise, and are not asked. What exactly Python does, the interpreted form says
when it runs again (runtime/call/native_function.py, Note [Where an error came from]): `(-8.0) ** (1
/ 3)` is a complex number. Sums, products and squares of integers wrap around at 64 bits, as in
NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.builder import emit
from ...ir.graph import Op, Value
from ...ir.types import Scalar
from ...ops.core.control import if_
from ...ops.core.identities import base_offset
from ...ops.core.raise_conditions import DIVISION, Raises, both
from ...ops.program.effects import Made, raise_record


def ask_first(op: Op, inputs: list[Value], asked: set[tuple], pythons: Callable) -> None:
    """Emit what raises where Python would refuse `op` on these operands, unless that has been
    `asked` already.

    `pythons` says of numbers of the program whether they are Python's: None where they are not, or
    as analysis/python_numbers.py says it.
    """
    for each, are_pythons in _asked_of(op, pythons):
        if each.natively is True and _is_new(each.condition, each.of(inputs), op, asked,
                                             are_pythons):
            raise_where(each, both(each.asked(inputs, op.attrs), are_pythons()))


def ask_counts(op: Op, whole: Callable, asked: set[tuple]) -> None:
    """The same of an op that makes an array: of its operands that are numbers, each of which
    `whole` gives.
    """
    for each in op.record.raises:
        operands = each.of(op.inputs)
        if (each.natively is True and operands and all(isinstance(x.type, Scalar) for x in operands)
                and each.is_possible(op.inputs, op.attrs)):
            numbers = [whole(x) for x in operands]
            if _is_new(each.condition, numbers, op, asked):
                raise_where(each, each.condition(*numbers, **op.attrs))


def ask_afterwards(op: Op, inputs: list[Value], output: Value, asked: set[tuple],
                   pythons: Callable) -> None:
    """Emit what raises where the result of `op` shows that Python would have refused it."""
    for each, are_pythons in _asked_of(op, pythons):
        if callable(each.natively) and _is_new(each.natively, inputs, op, asked, are_pythons):
            raise_where(each, both(each.natively(output, *inputs, **op.attrs), are_pythons()))


def _surely() -> bool:
    return True


def _asked_of(op: Op, pythons: Callable) -> list[tuple[Raises, Callable]]:
    """What may be raised, each with what asks whether the operands are Python's, if that matters.
    """
    if not op.record.raises:
        return []
    if all(isinstance(x.type, Scalar) and x.type.weak for x in op.inputs):
        are_pythons = _surely
    else:
        are_pythons = pythons(op.inputs) if any(each.pythons for each in op.record.raises) else None
    found = [(each, are_pythons if each.pythons else _surely) for each in op.record.raises]
    return [(each, asks) for each, asks in found if asks is not None]


def _is_new(rule, operands: list[Value], op: Op, asked: set[tuple],
            are_pythons: Callable = _surely) -> bool:
    """Whether this has not been asked of these operands."""
    key = (rule, *operands)
    if key in asked:
        return False
    if are_pythons is _surely:
        asked.add(key)
    return op.line is None or not op.line.again  # the forward sweep has asked


def raise_where(each: Raises, condition) -> None:
    """Emit what raises where the condition holds, of which None cannot."""
    if condition is None or condition is False:
        return
    kind = each.kind or ArithmeticError

    def refuse() -> tuple:
        emit(raise_record, thrown=Made(kind, bare=True), cause=None, again=True)
        return ()

    if condition is True:
        refuse()
    else:
        if_(condition, refuse, lambda: ())


def answered_by_trips(lo: Value, hi: Value, step: Value) -> list[tuple]:
    """What need not be asked where `range(lo, hi, step)` makes a trip: whether the length is 0 that
    all its numbers are below.
    """
    first, last = (lo, hi) if step.constant == 1 else (hi, lo)
    # the first number of the range that ends with `last`, or the one before it
    before = 0 if step.constant == 1 else -1
    (n, offset), is_natural = (base_offset(last), type(first.constant) is int
                               and first.constant >= before)
    is_sure = step.constant in (1, -1) and is_natural and n is not None and offset <= before
    return [(DIVISION[0].condition, n)] if is_sure else []
