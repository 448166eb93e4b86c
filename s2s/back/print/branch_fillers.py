"""Leave variables unbound on the paths on which nothing reads them.

    if c:                                           if c:
        y = 0.0                                         z = 1.0
        z = 1.0                                     else:
    else:                          prints as            y = np.sin(x)
        y = np.sin(x)                                   z = y * y
        z = y * y                                   ...
    ...                                             if not c:
    if not c:                                           x_bar = z_bar * np.cos(x) * y
        x_bar = z_bar * np.cos(x) * y

The forward sweep hands such values to the reverse sweep, which branches on the same conditions.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.path_conditions import Facts, assume, facts_by_block
from ...ir.builder import Builder
from ...ir.graph import MISSING, Block, Function, Op, Value, walk
from ...ir.types import Scalar
from ...ops.core.control import make_undefined

Path = tuple[Value, bool]  # a condition, and which way it went
DEEPEST = 20  # the most branches that hand a value on


def drop_fillers(function: Function) -> None:
    """Replace, in place, constants that branches yield by nothing where nothing reads them."""
    found = facts_by_block(function)
    users: dict[Value, list[tuple[Op | Block, int]]] = {}
    home: dict[Op, Block] = {}
    owner = {inner: op for op in walk(function.block) for inner in op.blocks}
    for block in found:
        for op in block.ops:
            home[op] = block
            for k, x in enumerate(op.inputs):
                users.setdefault(x, []).append((op, k))
        for k, y in enumerate(block.yields):
            users.setdefault(y, []).append((block, k))

    def is_read(y: Value, paths: Sequence[Path], depth: int = 0) -> bool:
        """Test whether `y` may be read where the branches before went these ways."""
        for user, k in users.get(y, ()):
            block = user if isinstance(user, Block) else home[user]
            facts = everything(found[block], paths)
            if facts is None:
                continue
            if isinstance(user, Op):
                if not (k and _is_choice(user)
                        and assume(facts, user.inputs[0], k == 1) is None):
                    return True
            else:
                op = owner.get(user)
                if op is None or op.name != "if" or depth == DEEPEST or is_read(
                        op.outputs[k], [*paths, (op.inputs[0], user is op.blocks[0])], depth + 1):
                    return True
        return False

    for op in home:
        if op.name == "if":
            for k, y in enumerate(op.outputs):
                for arm, block in enumerate(op.blocks):
                    if _is_filler(block.yields[k]) and not is_read(y, [(op.inputs[0], arm == 0)]):
                        with Builder(block):
                            block.yields[k] = make_undefined()


def everything(facts: Facts, paths: Sequence[Path]) -> Facts | None:
    """Return `facts` and these, or None if they contradict one another."""
    for condition, holds in paths:
        if facts is not None:
            facts = assume(facts, condition, holds)
    return facts


def _is_filler(y: Value) -> bool:
    return y.constant is not MISSING and type(y.constant) in (bool, int, float) or (
        y.op is not None and y.op.record.fill is not None)


def _is_choice(op: Op) -> bool:
    """Test whether this prints as `a if c else b`, which evaluates one of the two."""
    return op.record.selects and all(isinstance(x.type, Scalar) for x in op.inputs)
