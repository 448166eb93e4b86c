"""Sink loop-invariant factors out of an adjoint's sums, to be multiplied once after the loop.

    for k in range(n):                              d_bar_1 = 0.0
        d_bar += r * (p[k] * f) + b * q[k]          for k in range(n):
                                        becomes         d_bar += b * q[k]
                                                        d_bar_1 += p[k] * f
                                                    if n > 0:
                                                        d_bar += r * d_bar_1

    for j in range(m):                              for j in range(m):
        c_bar_i += u[j] * v[j] / c[i]   becomes         c_bar_i += u[j] * v[j]
                                                    if m > 0:
                                                        c_bar_i /= c[i]

Each trip saves a product or a quotient: the adjoint of `s -= p[k] * f * d`, where d is
loop-invariant, multiplies by the cotangent of s, which is invariant, too. That of a Newton
iteration over payments, which fills the processor's arithmetic units, took 1.08 times as long.

What is left of a term must still be a product: it and the addition are one instruction. A quotient
costs as much as ten of them. An element at an invariant index of an array that the loop does not
write is invariant, too; it is read again after the loop, if there was a trip. Where all terms have
the factor no second sum is needed. A loop without trips adds nothing; without the test, an infinite
factor would make NaN of an empty sum.

As in shorten_recurrences.py, only an adjoint's sums are reassociated; the user's own sums stay as
they are written. The pass runs after factor.py has factored common terms. Considered: one sum,
without the factor that all terms but one have, that one divided by it: not legal where it may be
zero.
"""

from __future__ import annotations

from ....ir.builder import Builder, at, emit
from ....ir.graph import MISSING, OPERATORS, Block, Function, Op, Value, blocks_of
from ....ir.substitute import substitute
from ....ops.arrays.index import getitem
from ....ops.core.control import if_
from ....ops.core.identities import base_offset
from ....ops.core.record import value
from ...loopir.loop_builder import op_named
from ...loopir.reductions import sum_step, zero_of
from ...loopir.vector_support import is_short
from .factor import is_product
from .shorten_recurrences import is_float, is_of_adjoint, is_sum, terms_of, uses_in

Product = tuple[tuple[str, Value], ...]  # "multiply" or "divide", and the operand
MOST = 2  # sums added to a loop: registers are few


def sink_factors(function: Function) -> Function:
    """Sink factors out of the adjoint's sums in the innermost loops of `function`, in place."""
    same: dict[Value, Value] = {}
    for block in list(blocks_of(function.block)):
        for op in list(block.ops):
            if (op.name == "for" and not op.attrs["breaks"] and op.inputs[2].constant in (1, -1)
                    and not is_short(op) and any(map(is_adjoint, op.blocks[0].ops))
                    and not any(each.name in ("for", "while") for each in op.blocks[0].ops)):
                same.update(_Sums(op).split_sums(block))
    if same:
        substitute(function.block, same)
    return function


def is_adjoint(op: Op) -> bool:
    """Whether `op` accumulates for an adjoint, in program order or in any."""
    return is_sum(op) or op.record is sum_step and is_of_adjoint(op)


def is_quotient(op: Op) -> bool:
    """Whether `op` divides floats, of one dtype, as NumPy does."""
    return (op.name == "divide" and is_float(op.output)
            and all(is_float(x) and x.type.dtype == op.output.type.dtype for x in op.inputs))


class _Sums:
    """The sums of one loop, while factors are sunk out of them."""

    def __init__(self, loop: Op):
        self.loop, self.body = loop, loop.blocks[0]
        self.uses = uses_in(self.body)
        self.inside = {*self.body.params, *(y for op in self.body.ops for y in op.outputs)}
        self.products = {op for op in self.body.ops if (is_product(op) or is_quotient(op))
                         and self.uses.get(op.output) == 1}
        sums = {op for op in self.body.ops if is_adjoint(op)}
        summed = {x for op in sums for x in op.inputs}
        self.inner = {op for op in sums if self.uses.get(op.output) == 1 and op.output in summed}
        self.roots = sums - self.inner
        # each sum that is split, without the terms split off
        self.before: dict[Value, Value] = {}
        # and those terms: invariant factors, and the loop output that they multiply
        self.terms: dict[Value, list[tuple[Product, Value]]] = {}
        self.more = 0  # sums added to the loop

    def split_sums(self, block: Block) -> dict[Value, Value]:
        """Split the sums of the loop, an op of `block`; return replacements of its outputs."""
        lines = [op.line for k in range(len(self.loop.outputs))
                 if (op := self.split_carry(k, block)) is not None]
        if not lines:
            return {}
        with Builder(Block()) as after, at(lines[0]):
            totals = if_(self.makes_a_trip(), self.totals,
                         lambda: list(self.before.values()), [old.name for old in self.before])
        place = block.ops.index(self.loop) + 1
        block.ops[place:place] = after.block.ops
        return dict(zip(self.before, totals))

    def makes_a_trip(self) -> Value:
        """Whether the loop makes a trip."""
        lo, hi, step = self.loop.inputs[:3]
        high, low = (hi, lo) if step.constant == 1 else (lo, hi)
        base, offset = base_offset(high)
        return OPERATORS["greater"](*((high, low) if base is None or low.constant is MISSING
                                      else (base, value(low.constant - offset))))

    def totals(self) -> list[Value]:
        """The sums, after the loop."""
        found = []
        for old, total in self.before.items():
            for factors, x in self.terms[old]:
                is_first = x is total
                for name, factor in factors:
                    factor = self.reload(factor) if factor in self.inside else factor
                    x = op_named(name, *((factor, x) if name == "multiply" else (x, factor)))
                total = x if is_first else op_named("add", total, x)
            found.append(total)
        return found

    def split_carry(self, k: int, block: Block) -> Op | None:
        """Split terms with invariant factors off carry `k`; return its former sum, if any."""
        param, end = self.body.params[1 + k], self.body.yields[k]
        root = end.op
        if (root not in self.roots or self.uses[end] != 1 or self.uses.get(param) != 1
                or param.type.dtype != end.type.dtype):
            return None
        terms = terms_of(root, self.inner)
        if not any(t.x is param and t.added for t in terms):
            return None
        with Builder(Block()) as inside, at(root.line):
            found = [(t, *self.split_factors(t.x)) for t in terms if t.x is not param]
        found = [each for each in found if each[1] and self.is_worth_it(*each[1:])
                 and each[2].type.dtype == param.type.dtype]
        groups = dict.fromkeys(factors for _, factors, _ in found)
        is_whole = len(groups) == 1 and len(found) == len(terms) - 1
        if not found or not is_whole and self.more + len(groups) > MOST:
            return None
        with Builder(inside.block), at(root.line):
            carries = {factors: k if is_whole else self.add_sum(param, block) for factors in groups}
            for factors, carry in carries.items():
                total = self.body.params[1 + carry]
                for t, its, x in found:
                    if its == factors and root.record is sum_step:
                        total = emit(sum_step, total, x if t.added else op_named("negative", x))
                    elif its == factors:
                        total = op_named("add" if t.added else "subtract", total, x)
                self.body.yields[carry] = total
            if not is_whole:
                self.body.yields[k] = self.remaining_terms(root.output, {t.x for t, _, _ in found})
        place = self.body.ops.index(root)
        self.body.ops[place:place] = inside.block.ops
        old, init = self.loop.outputs[k], self.loop.inputs[3 + k]
        self.loop.outputs[k] = Value(old.type, old.name, self.loop)
        if is_whole:
            self.loop.inputs[3 + k] = self.zero(param, block)
        self.before[old] = init if is_whole and init.constant != 0.0 else self.loop.outputs[k]
        self.terms[old] = [(factors, self.loop.outputs[carry])
                           for factors, carry in carries.items()]
        return root

    def split_factors(self, x: Value) -> tuple[Product, Value | None]:
        """Split `x` into its loop-invariant factors and the product of the others, in order."""
        if self.is_outside(x):
            return ((("multiply", x),), None) if is_float(x) else ((), x)
        if x.op not in self.products:
            return (), x
        if is_quotient(x.op):
            above, below = x.op.inputs
            factors, left = self.split_factors(above)
            if not self.is_outside(below) or left is None:
                return (), x
            return (*factors, ("divide", below)), left
        parts = [self.split_factors(y) for y in x.op.inputs]
        factors, left = tuple(y for its, _ in parts
                              for y in its), [y for _, y in parts if y is not None]
        if not factors:
            return (), x
        return factors, op_named(x.op.name,
                                 *left) if len(left) == len(parts) else left[0] if left else None

    def is_outside(self, x: Value) -> bool:
        """Whether `x` is loop-invariant."""
        return x not in self.inside or x.op is not None and x.op.name == "getitem" and all(
            y not in self.inside or y.constant is not MISSING for y in x.op.inputs)

    @staticmethod
    def reload(element: Value) -> Value:
        """Load an invariant element again, after the loop."""
        return getitem(*(y if y.constant is MISSING else value(y.constant)
                         for y in element.op.inputs), **element.op.attrs)

    def is_worth_it(self, factors: Product, x: Value | None) -> bool:
        """Whether the split shortens a trip: a product with no other use, or a quotient."""
        if x is None or not is_float(x):
            return False
        return (any(name == "divide" for name, _ in factors) or x.op is not None
                and x.op.name == "multiply" and (x.op in self.products or x not in self.inside))

    def add_sum(self, param: Value, block: Block) -> int:
        """Add a sum that starts from zero to the loop; return its carry number."""
        self.loop.inputs.append(self.zero(param, block))
        self.loop.outputs.append(Value(param.type, param.name, self.loop))
        self.body.params.append(Value(param.type, param.name))
        self.body.yields.append(self.body.params[-1])
        self.more += 1
        return len(self.loop.outputs) - 1

    def zero(self, like: Value, block: Block) -> Value:
        """Zero, before the loop."""
        with Builder(Block(), self.loop.line) as before:
            zero = zero_of(like.type.dtype)
        place = block.ops.index(self.loop)
        block.ops[place:place] = before.block.ops
        return zero

    def remaining_terms(self, x: Value, taken: set[Value]) -> Value | None:
        """The sum `x` without the terms `taken` from it."""
        if x in taken:
            return None
        if x.op not in self.inner | self.roots:
            return x
        a, b = (self.remaining_terms(y, taken) for y in x.op.inputs)
        if a is None or b is None:
            return (b if x.op.name == "add" and a is None else op_named("negative", b) if a is None
                    and b is not None else a)
        return op_named(x.op.name, a, b)
