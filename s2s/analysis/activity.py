"""Activity analysis: find the values that depend on the differentiated inputs and on which a result
depends.

Note [Through calls]
A result depends on an argument of a call only if it does so in the callee.  This is not for speed
alone: the cotangent of a tape has an item for each that was pushed only if the items that are
popped carry a derivative (ops/core/control.py), so the two halves of a derivative, functions of
their own that push and pop, must agree on which tapes carry one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import DerivativeError
from ..ir.graph import Block, Function, Op, Value, walk
from ..ir.types import Type, carries_derivative
from ..ops.program.checkpoint import is_plain


def varied_values(function: Function, wrt: Iterable[Value]) -> set[Value]:
    """Return the values that depend differentiably on those in `wrt`."""
    varied = {v for v in wrt if carries_derivative(v.type)}
    _spread(function.block, varied, {})
    return varied


def varied_in_conditions(function: Function, wrt: Iterable[Value]) -> set[Value]:
    """Return the varied values, those in the conditions of while loops too, which no derivative
    passes through.
    """
    varied = varied_values(function, wrt)
    for op in walk(function.block):
        if op.name == "while":
            condition, params = op.blocks[0], loop_parts(op)[1]
            varied.update(p for p, x in zip(condition.params, params) if x in varied)
            _spread(condition, varied, {})
    return varied


def active_values(function: Function, wrt: Iterable[Value],
                  seeded: Sequence[int] | None = None) -> set[Value]:
    """Return the varied values on which a result of `function` depends: any, or one of those
    numbered in `seeded`.
    """
    varied = varied_values(function, wrt)
    results = function.results if seeded is None else [function.results[k] for k in seeded]
    useful = {y for y in results if y in varied}
    _gather(function.block, varied, useful, {})
    return varied & useful


def influenced_values(function: Function, roots: Iterable[Value]) -> set[Value]:
    """Return the values that depend on those in `roots` in any way, through comparisons, branches
    and trip counts too.
    """
    found = set(roots)
    _influence(function.block, found)
    return found


def _influence(block: Block, found: set[Value]) -> None:
    for op in block.ops:
        if op.name in ("for", "while"):
            inits, params, yields, body = loop_parts(op)
            first = op.blocks[0]
            while True:
                before = len(found)
                if op.name == "while":
                    found.update(p for p, carry in zip(first.params, params) if carry in found)
                for inner in op.blocks:
                    _influence(inner, found)
                stops = [*(op.inputs[:3] if op.name == "for" else first.yields),
                         *(body.yields[:1] if op.attrs["breaks"] else [])]
                chosen = any(x in found for x in stops)
                for init, param, end, out in zip(inits, params, yields, op.outputs):
                    if chosen or init in found or end in found:
                        found.update((param, out))
                if len(found) == before:
                    break
        elif op.name == "if":
            for branch in op.blocks:
                _influence(branch, found)
                found.update(out for out, y in zip(op.outputs, branch.yields) if y in found
                             or op.inputs[0] in found)
        elif any(x in found for k, x in enumerate(op.inputs) if k not in op.record.shapes):
            found.update(op.outputs)


def loop_parts(op: Op) -> tuple[list[Value], list[Value], list[Value], Block]:
    """Return the initial values, parameters and yields of the carries of a `for` or `while`, and
    its body.
    """
    body = op.blocks[-1]
    skip = 3 if op.name == "for" else 0
    return (op.inputs[skip:], body.params[1 if op.name == "for" else 0:],
            body.yields[1 if op.attrs["breaks"] else 0:], body)


def passes_derivative(op: Op, k: int) -> bool:
    """Test whether a derivative can flow from input `k` of a simple op to its outputs.

    What is piecewise constant on the real numbers (`sign`) need not be so on the complex ones.
    """
    if k in op.record.shapes or _cancels(op):
        return False
    partials = op.record.partials
    if not partials or k >= len(partials) or partials[k] is not None:
        return True
    if op.record.elementwise and all(_is_complex(x.type) for x in (op.inputs[k], *op.outputs)):
        raise DerivativeError(f"{op.name} of complex numbers has no derivative", op.line,
                              "write it with abs and division, as x / abs(x)")
    return False


def _cancels(op: Op) -> bool:
    """Test whether this is x - x, which is 0 for all x, even where what is made of it is steep."""
    return op.record.is_sum and sum(op.record.signs) == 0 and op.inputs[0] is op.inputs[1]


def _is_complex(type: Type) -> bool:
    return (getattr(type, "dtype", None) or "").startswith("complex")


def _spread(block: Block, varied: set[Value], known: dict) -> None:
    """Propagate `varied` forwards, in program order; loops until a fixed point; `known`: see
    `_reached`.
    """
    for op in block.ops:
        match op.name:
            case "for" | "while":
                inits, params, yields, body = loop_parts(op)
                while True:
                    before = len(varied)
                    for init, param, end, out in zip(inits, params, yields, op.outputs):
                        if carries_derivative(param.type) and (init in varied or end in varied):
                            varied.update((param, out))
                    _spread(body, varied, known)
                    if len(varied) == before:
                        break
            case "if":
                for branch in op.blocks:
                    _spread(branch, varied, known)
                    varied.update(out for out, y in zip(op.outputs, branch.yields)
                                  if y in varied and carries_derivative(out.type))
            case _:
                varied.update(_reached(op, varied, known))


def _reached(op: Op, varied: set[Value], known: dict) -> list[Value]:
    """Return the outputs of `op` to which a derivative can flow from its varied inputs.
    Note [Through calls]

    `known`: by call and numbers of its varied inputs, what is found.
    """
    callee = op.attrs["callee"] if op.name == "call" else None
    if callee is None or not is_plain(callee):
        passes = any(x in varied and passes_derivative(op, k) for k, x in enumerate(op.inputs))
        return [out for out in op.outputs if carries_derivative(out.type)] if passes else []
    given = tuple(k for k, x in enumerate(op.inputs) if x in varied)
    if (op, given) not in known:
        function = callee.function_for(op.inputs)
        inside = varied_values(function, [function.params[k] for k in given])
        known[op, given] = [out for out, y in zip(op.outputs, function.results) if y in inside
                            and carries_derivative(out.type)]
    return known[op, given]


def _gather(block: Block, varied: set[Value], useful: set[Value], known: dict) -> None:
    """Propagate `useful` backwards, against program order; `known` maps calls to the inputs on
    which their results depend.
    """
    for op in reversed(block.ops):
        match op.name:
            case "for" | "while":
                inits, params, yields, body = loop_parts(op)
                while True:
                    before = len(useful)
                    for init, param, end, out in zip(inits, params, yields, op.outputs):
                        if (out in useful or param in useful) and param in varied:
                            useful.update((init, param, end, out))
                    _gather(body, varied, useful, known)
                    if len(useful) == before:
                        break
            case "if":
                for branch in op.blocks:
                    useful.update(y for out, y in zip(op.outputs, branch.yields) if out in useful)
                    _gather(branch, varied, useful, known)
            case _:
                if any(out in useful and out in varied for out in op.outputs):
                    reaching = _reaching(op, varied, useful, known)
                    useful.update(x for k, x in enumerate(op.inputs) if x not in varied
                                  or k in reaching)


def _reaching(op: Op, varied: set[Value], useful: set[Value], known: dict) -> set[int]:
    """Return the inputs of `op` from which a derivative can flow to its useful outputs.
    Note [Through calls]
    """
    callee = op.attrs["callee"] if op.name == "call" else None
    if callee is None or not is_plain(callee):
        return {k for k in range(len(op.inputs)) if passes_derivative(op, k)}
    seeded = tuple(k for k, out in enumerate(op.outputs) if out in useful and out in varied)
    if (op, seeded) not in known:
        function = callee.function_for(op.inputs)
        active = active_values(function,
                               [p for p, x in zip(function.params, op.inputs) if x in varied],
                               seeded)
        known[op, seeded] = {k for k, p in enumerate(function.params) if p in active}
    return known[op, seeded]
