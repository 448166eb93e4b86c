"""Unwinding: release all live references on the way out of a function that raises.

    y = np.sort(x)                       ...                              failed:
    z = np.linalg.cholesky(A)     ->     table[0] = y                     release table by `held`
    return y @ z                         if failed: held = 0b01; leave    release slots

A caller may catch the error of a factorisation and try again, as long as a search lasts; Numba's
own code leaks everything live at that point. Each bound value is recorded in a table on the stack,
and each raising point sets a bit mask of the live entries, a constant. So there is one unwinding
block for all raising points, and LLVM removes the table from functions that never raise.

Considered: a chain of blocks, from the last bound value to the first. LLVM merged them in ways of
its own, with as many phi nodes as names: a tenth of the code of a network of convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from llvmlite import ir

from ..numba_internals import callconv, cgutils

RETURNS = (callconv.RETCODE_OK.constant, callconv.RETCODE_NONE.constant)
WORD, INT, POINTER = ir.IntType(64), ir.IntType(32), cgutils.voidptr_t
BITS = 64  # bits of the mask: entries of the table


class Unwinding:
    """The unwinding path of a function: call `leave(code)` in place of its builder's `ret`.

    `held()` returns the live references by key, and `pointers(it)` the meminfos of one.
    """

    def __init__(self, builder: ir.IRBuilder, held: Callable[[], Iterable[tuple[object, object]]],
                 pointers: Callable[[object], Sequence[ir.Value]]):
        self.builder, self.held, self.pointers = builder, held, pointers
        self.block: ir.Block | None = None
        # (block, code, live entries) of each raising point
        self.ways: list[tuple[ir.Block, ir.Value, int]] = []
        self.places: dict[object, list[int]] = {}
        self.free: list[int] = []
        self.size = ir.Constant(INT, 1)
        with builder.goto_entry_block():
            self.table = builder.alloca(POINTER, self.size)
        self.count = 0
        self.returned, builder.ret = builder.ret, self.leave

    def keep(self, key: object, given: object) -> None:
        """Register a reference in the table as live."""
        self.places[key] = [self.put(pointer) for pointer in self.pointers(given)]

    def put(self, pointer: ir.Value) -> int:
        if not self.free:
            self.free.append(self.count)
            self.count += 1
        place = self.free.pop()
        self.builder.store(pointer, self.builder.gep(self.table, [INT(place)]))
        return place

    def forget(self, key: object) -> None:
        """Remove a reference from the live ones."""
        self.free += self.places.pop(key, ())

    def leave(self, code: ir.Value) -> None:
        if isinstance(code, ir.Constant) and code.constant in RETURNS:
            self.returned(code)
            return
        if self.block is None:
            self.block = self.builder.append_basic_block("failed")
        passing, mask = [], 0
        for key, given in self.held():
            if key not in self.places:  # temporaries of a call
                self.keep(key, given)
                passing.append(key)
            mask |= sum(1 << place for place in self.places[key])
        for key in passing:
            self.forget(key)
        unmark(self.builder.block)
        self.ways.append((self.builder.block, code, mask))
        self.builder.branch(self.block)

    def finish(self, give_up_slots: Callable[[], None]) -> None:
        """Emit the unwinding block: release live references and slots, then return."""
        del self.builder.ret
        if self.block is None:
            return
        self.size.constant = max(self.count, 1)
        with self.builder.goto_block(self.block):
            code = self.joined([(value, block) for block, value, _ in self.ways])
            masks = [self.joined([(WORD(mask >> first & (1 << BITS) - 1), block)
                                  for block, _, mask in self.ways])
                     for first in range(0, self.count, BITS)]
            for k, mask in enumerate(masks):
                self.builder.call(giving_up(self.builder.module),
                                  [self.builder.gep(self.table, [INT(k * BITS)]), mask])
            give_up_slots()
            self.builder.ret(code)

    def joined(self, ways: Sequence[tuple[ir.Value, ir.Block]]) -> ir.Value:
        found = self.builder.phi(ways[0][0].type)
        for value, block in ways:
            found.add_incoming(value, block)
        return found


def unmark(block: ir.Block) -> None:
    """Hide raising blocks from Numba's reference pruning, which would take live references there as
    leaked, and prune their release.
    """
    for each in block.instructions:
        each.metadata.pop("numba_exception_output", None)


def giving_up(module: ir.Module) -> ir.Function:
    """The module's function that releases the table entries whose bits are set."""
    name = "s2s_give_up"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER.as_pointer(), WORD]),
                           name)
    function.linkage = "linkonce_odr"
    for attribute in ("nounwind", "noinline", "cold", "optsize"):
        function.attributes.add(attribute)
    table, mask = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    with cgutils.for_range(builder, WORD(BITS)) as loop:
        is_held = builder.trunc(builder.lshr(mask, loop.index), ir.IntType(1))
        with builder.if_then(is_held):
            pointer = builder.load(builder.gep(table, [loop.index]))
            builder.call(cgutils.get_or_insert_function(module,
                                                        ir.FunctionType(ir.VoidType(), [POINTER]),
                                                        "NRT_decref"), [pointer])
    builder.ret_void()
    return function
