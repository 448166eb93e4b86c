"""Dead-code elimination (DCE): drop what no result and no effect depends on.

    >>> show(dce(read('''
    ... def f(x, k):
    ...     n = 0
    ...     while x < 1.0:
    ...         x = x * k
    ...         n = n + 1
    ...     return x
    ... ''')))
    def f(x, k):
        while x < 1.0:
            x = x * k
        return x

Liveness is demand: a result is demanded, and demands its operands.  A carry of a loop that only
feeds itself is never demanded, so it is removed, through whatever cycle; so is a tape that is only
pushed to.  A loop without effects is removed when nothing reads its results, even if it would not
have ended.
"""

from __future__ import annotations

from ...ir.graph import Block, Function, Op, Value
from ...ops.program.effects import has_effects


def dce(function: Function) -> Function:
    """Remove the ops, loop carries, branch results and tapes that nothing demands."""
    alive = demanded(function)
    _sweep(function.block, alive)
    return function


def carry_offset(op: Op) -> tuple[int, int, int]:
    """Return the number of inputs, parameters and yields of a loop's body before its carries."""
    return 3 * (op.name == "for"), 1 * (op.name == "for"), 1 * bool(op.attrs["breaks"])


def demanded(function: Function) -> set[Value]:
    """Return the values that a result or an effect of `function` depends on."""
    alive: set[Value] = set()
    pending: list[Value] = list(function.results)
    loops: dict[Value, tuple[Op, int]] = {}  # a carry's parameters -> its loop and number
    owner: dict[Value, Op] = {}  # any value defined in a block -> the op that owns the block
    ran: set[Op] = set()

    def enter(block: Block, parent: Op | None) -> None:
        for op in block.ops:
            if parent is not None:
                owner.update(dict.fromkeys(op.outputs, parent))
            if op.name in ("for", "while"):
                _, skip, _ = carry_offset(op)
                for inner in op.blocks:
                    loops.update({p: (op, k) for k, p in enumerate(inner.params[skip:])})
                    owner.update(dict.fromkeys(inner.params[:skip], op))
            for inner in op.blocks:
                enter(inner, op)

    def run(op: Op) -> None:
        """Demand what decides whether and how often `op` is executed."""
        if op in ran:
            return
        ran.add(op)
        match op.name:
            case "for":
                pending.extend(op.inputs[:3])
            case "while":
                pending.extend(op.blocks[0].yields)
            case "if":
                pending.extend(op.inputs)
        if op.name in ("for", "while") and op.attrs["breaks"]:
            pending.append(op.blocks[-1].yields[0])
        for out in op.outputs:
            if out in owner:
                run(owner[out])

    def demand_carry(op: Op, k: int) -> None:
        inputs, params, yields = carry_offset(op)
        pending.extend((op.inputs[inputs + k], op.blocks[-1].params[params + k],
                        op.blocks[-1].yields[yields + k], op.outputs[k]))

    def effects(block: Block, around: tuple[Op, ...]) -> None:
        for op in block.ops:
            if has_effects(op):
                for outer in (*around, op):
                    run(outer)
                if not op.blocks:
                    pending.extend(op.inputs)
                for inner in op.blocks:
                    effects(inner, (*around, op))

    enter(function.block, None)
    effects(function.block, ())
    while pending:
        value = pending.pop()
        if value in alive:
            continue
        alive.add(value)
        if value in loops:
            op, k = loops[value]
            run(op)
            demand_carry(op, k)
        if value in owner:
            run(owner[value])
        if value.op is None:
            continue
        match value.op.name:
            case "for" | "while":
                run(value.op)
                demand_carry(value.op, value.op.outputs.index(value))
            case "if":
                run(value.op)
                pending.extend(block.yields[value.op.outputs.index(value)]
                               for block in value.op.blocks)
            case _:
                pending.extend(value.op.inputs)
    return alive


def _sweep(block: Block, alive: set[Value]) -> None:
    kept = []
    for op in block.ops:
        effects = has_effects(op)
        if op.blocks:
            _drop_results(op, alive)
            for inner in op.blocks:
                _sweep(inner, alive)
        if effects or any(out in alive for out in op.outputs):
            kept.append(op)
    block.ops = kept


def _drop_results(op: Op, alive: set[Value]) -> None:
    """Remove the dead carries of a loop, or the dead results of an `if`."""
    keep = [k for k, out in enumerate(op.outputs) if out in alive]
    inputs, params, yields = (len(op.inputs), 0, 0) if op.name == "if" else carry_offset(op)
    op.inputs = op.inputs[:inputs] + [op.inputs[inputs + k] for k in keep if op.name != "if"]
    op.outputs = [op.outputs[k] for k in keep]
    for block in op.blocks:
        if op.name == "while" and block is op.blocks[0]:
            block.params = [block.params[k] for k in keep]
            continue
        if op.name != "if":
            block.params = block.params[:params] + [block.params[params + k] for k in keep]
        block.yields = block.yields[:yields] + [block.yields[yields + k] for k in keep]
