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
    demand = Demand(function)
    demand.of_effects(function.block, ())
    demand.spread()
    return demand.alive


class Demand:
    """The values of `function` that are `alive`, and those among them that are still `pending`:
    whose operands have not been demanded yet.
    """

    def __init__(self, function: Function):
        self.alive: set[Value] = set()
        self.pending: list[Value] = list(function.results)
        self.loops: dict[Value, tuple[Op, int]] = {}  # a carry's parameters -> its loop and number
        self.owner: dict[Value, Op] = {}  # a value defined in a block -> the op that owns the block
        self.ran: set[Op] = set()
        self.enter(function.block, None)

    def enter(self, block: Block, parent: Op | None) -> None:
        """Record the owners of the values that `block` defines."""
        for op in block.ops:
            if parent is not None:
                self.owner.update(dict.fromkeys(op.outputs, parent))
            if op.name in ("for", "while"):
                _, skip, _ = carry_offset(op)
                for inner in op.blocks:
                    self.loops.update({p: (op, k) for k, p in enumerate(inner.params[skip:])})
                    self.owner.update(dict.fromkeys(inner.params[:skip], op))
            for inner in op.blocks:
                self.enter(inner, op)

    def of_effects(self, block: Block, around: tuple[Op, ...]) -> None:
        """Demand what the effects of a block inside the ops `around` depend on."""
        for op in filter(has_effects, block.ops):
            for outer in (*around, op):
                self.of_running(outer)
            if not op.blocks:
                self.pending.extend(op.inputs)
            for inner in op.blocks:
                self.of_effects(inner, (*around, op))

    def of_running(self, op: Op) -> None:
        """Demand what decides whether and how often `op` is executed."""
        if op in self.ran:
            return
        self.ran.add(op)
        match op.name:
            case "for":
                self.pending.extend(op.inputs[:3])
            case "while":
                self.pending.extend(op.blocks[0].yields)
            case "if":
                self.pending.extend(op.inputs)
        if op.name in ("for", "while") and op.attrs["breaks"]:
            self.pending.append(op.blocks[-1].yields[0])
        for out in op.outputs:
            if out in self.owner:
                self.of_running(self.owner[out])

    def of_carry(self, op: Op, k: int) -> None:
        """Demand carry `k` of a loop: before the loop, in its trips and after it."""
        inputs, params, yields = carry_offset(op)
        self.of_running(op)
        self.pending.extend((op.inputs[inputs + k], op.blocks[-1].params[params + k],
                             op.blocks[-1].yields[yields + k], op.outputs[k]))

    def spread(self) -> None:
        """Demand what the values that are demanded depend on."""
        while self.pending:
            value = self.pending.pop()
            if value not in self.alive:
                self.alive.add(value)
                self.of_value(value)

    def of_value(self, value: Value) -> None:
        """Demand what `value` depends on."""
        if value in self.loops:
            self.of_carry(*self.loops[value])
        if value in self.owner:
            self.of_running(self.owner[value])
        op = value.op
        if op is None:
            return
        match op.name:
            case "for" | "while":
                self.of_carry(op, op.outputs.index(value))
            case "if":
                self.of_running(op)
                self.pending.extend(block.yields[op.outputs.index(value)] for block in op.blocks)
            case _:
                self.pending.extend(op.inputs)


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
