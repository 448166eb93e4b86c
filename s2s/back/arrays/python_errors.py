"""Insert the checks that make compiled code raise where Python's own numbers raise.

Native division of numbers gives inf where Python raises ZeroDivisionError; native sqrt gives NaN
where math.sqrt raises ValueError. So compiled code tests the condition in the op's record
(ops/core/raise_conditions.py) before an op that Python might reject, or after it, where the result
shows it:

    if n == 0:                              y = x ** p
        raise ZeroDivisionError             if not math.isfinite(y) and math.isfinite(x):
    mean = total / n                            raise ArithmeticError

NumPy's numbers do not raise, and are not tested. Which error Python raises is decided by the
interpreted form when it runs again (runtime/call/native_function.py, Note [Where an error came
from]): `(-8.0) ** (1 / 3)` is a complex number. Sums, products and squares of integers wrap around
at 64 bits, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.builder import emit
from ...ir.graph import Op, Value
from ...ir.types import Scalar
from ...ops.arrays.argument_checks import CHECKS
from ...ops.arrays.finite import finite
from ...ops.core.control import if_
from ...ops.core.identities import base_offset
from ...ops.core.raise_conditions import DIVISION, Raises, both
from ...ops.core.record import its_operand, lowers
from ...ops.program.effects import Made, raise_record


def check_operands(op: Op, inputs: list[Value], asked: set[tuple], pythons: Callable) -> None:
    """Emit the test before `op` of operands that Python would reject, unless `asked` already.

    `pythons` tells whether numbers of the program are Python's: None if they are not, else as
    analysis/python_numbers.py does.
    """
    for each, are_pythons in _conditions(op, pythons):
        if each.natively is True and _is_new(each.condition, each.of(inputs), op, asked,
                                             are_pythons):
            raise_where(each, both(each.asked(inputs, op.attrs), are_pythons()))


def check_counts(op: Op, whole: Callable, asked: set[tuple]) -> None:
    """Emit the tests for an op that makes an array: of its scalar operands, which `whole` gives."""
    for each in op.record.raises:
        operands = each.of(op.inputs)
        if (each.natively is True and operands and all(isinstance(x.type, Scalar) for x in operands)
                and each.is_possible(op.inputs, op.attrs)):
            numbers = [whole(x) for x in operands]
            if _is_new(each.condition, numbers, op, asked):
                raise_where(each, each.condition(*numbers, **op.attrs))


def check_result(op: Op, inputs: list[Value], output: Value, asked: set[tuple],
                   pythons: Callable) -> None:
    """Emit the test after `op` of results that show that Python would raise."""
    for each, are_pythons in _conditions(op, pythons):
        if callable(each.natively) and _is_new(each.natively, inputs, op, asked, are_pythons):
            raise_where(each, both(each.natively(output, *inputs, **op.attrs), are_pythons()))


def _surely() -> bool:
    return True


def _conditions(op: Op, pythons: Callable) -> list[tuple[Raises, Callable]]:
    """The possible errors, each with the test whether operands are Python's, if that matters."""
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
    """Whether these operands have not been tested for this error."""
    key = (rule, *operands)
    if key in asked:
        return False
    if are_pythons is _surely:
        asked.add(key)
    return op.line is None or not op.line.again  # the forward sweep has tested it


def raise_where(each: Raises, condition) -> None:
    """Emit the raise where the condition holds; None means never."""
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


@lowers(finite, *CHECKS.values(), cuda=its_operand)
def _check_values(op: Op, x: Value, *wrong: Value) -> Value:
    (each,) = op.record.raises
    raise_where(each, each.asked([x, *wrong], {}))
    return x


def implied_by_trips(lo: Value, hi: Value, step: Value) -> list[tuple]:
    """The tests of lengths for 0 that are redundant if `range(lo, hi, step)` makes a trip."""
    first, last = (lo, hi) if step.constant == 1 else (hi, lo)
    # the first number of the range that ends with `last`, or the one before it
    before = 0 if step.constant == 1 else -1
    (n, offset), is_natural = (base_offset(last), type(first.constant) is int
                               and first.constant >= before)
    is_sure = step.constant in (1, -1) and is_natural and n is not None and offset <= before
    return [(DIVISION[0].condition, n)] if is_sure else []
