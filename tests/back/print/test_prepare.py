"""What nothing reads is dropped before a function is printed, with all that only it has read."""

from s2s.back.print.prepare import drop_dead
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.types import Array, Extent
from s2s.ops.arrays.index import take
from s2s.ops.core.control import for_loop
from s2s.ops.core.record import value
from s2s.ops.core.shape import length


def test_what_only_an_unused_result_of_a_loop_reads_is_dropped():
    x = Value(Array("float64", (Extent("n", 0, False),)), "x")
    block = Block(params=[x])
    with Builder(block):
        n = length(x, axis=0)
        first, used = for_loop(0, n, 1, [value(0.0), value(0.0)],
                               lambda i, last, total: [take(x, i) * 3.0, total + take(x, i)])
        _, more = for_loop(0, n, 1, [value(0.0), used],
                           lambda i, last, total: [first * 5.0, total - take(x, i)])
        block.yields = [more]
    function = Function("f", block)
    drop_dead(function)
    assert [len(op.outputs) for op in walk(block) if op.name == "for"] == [1, 1]
    assert not any(op.name == "multiply" for op in walk(block))
