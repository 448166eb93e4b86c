"""Native code of the thread pool (pool.py): the worker loop, and the distribution of parts."""

from __future__ import annotations

import ctypes
import threading

from llvmlite import binding, ir

from .pool import (
    ALONE,
    BED,
    CLOSED,
    CONTEXT,
    DOOR,
    FAILED,
    GET_BLAS,
    KERNEL,
    KEY,
    NEXT,
    PARTS,
    PATIENCE,
    SET_BLAS,
    TAKEN,
    TRIPS,
    WANTED,
    WORKERS,
    blas_controls,
    kept,
    python,
    start_workers,
    state,
)

WORD, BYTE, INT, VOID = ir.IntType(64), ir.IntType(8), ir.IntType(32), ir.VoidType()
POINTER = BYTE.as_pointer()
_compiling = threading.Lock()


class Code:
    """Emits one native function that works on the words of the pool."""

    def __init__(self, module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]):
        self.function = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())

    def word(self, k) -> ir.Value:
        """The address of word `k`."""
        k = ir.Constant(WORD, k) if isinstance(k, int) else k
        place = self.b.add(ir.Constant(WORD, state.ctypes.data),
                           self.b.mul(k, ir.Constant(WORD, 8)))
        return self.b.inttoptr(place, WORD.as_pointer())

    def load(self, k) -> ir.Value:
        return self.b.load_atomic(self.word(k), "seq_cst", 8)

    def store(self, k, x) -> None:
        self.b.store_atomic(ir.Constant(WORD, x) if isinstance(x, int) else x, self.word(k),
                            "seq_cst", 8)

    def change(self, how: str, k, x: int) -> ir.Value:
        """Atomically change a word ("add", "sub", "or", "xchg"); return its previous value."""
        return self.b.atomic_rmw(how, self.word(k), ir.Constant(WORD, x), "seq_cst")

    def is_(self, how: str, x, y) -> ir.Value:
        return self.b.icmp_signed(how, x, ir.Constant(WORD, y) if isinstance(y, int) else y)

    def call(self, address: int | ir.Value, result: ir.Type, *args: ir.Value) -> ir.Value:
        type = ir.FunctionType(result, [a.type for a in args])
        address = ir.Constant(WORD, address) if isinstance(address, int) else address
        return self.b.call(self.b.inttoptr(address, type.as_pointer()), list(args))

    def lock(self, k) -> None:
        """Block until the lock whose address is in word `k` is released."""
        self.call(_address("PyThread_acquire_lock"), INT, self.b.inttoptr(self.load(k), POINTER),
                  ir.Constant(INT, 1))

    def unlock(self, k) -> None:
        self.call(_address("PyThread_release_lock"), VOID, self.b.inttoptr(self.load(k), POINTER))

    def forever(self):
        """An infinite loop: a block to jump back to."""
        again = self.function.append_basic_block()
        self.b.branch(again)
        self.b.position_at_end(again)
        return again

    def count(self, end: ir.Value):
        """(k, close): the code that follows runs for k from 0 up to `end`; `close(leave)` ends the
        loop, early if `leave` holds.
        """
        k = self.b.alloca(WORD)
        self.b.store(ir.Constant(WORD, 0), k)
        again, body, after = (self.function.append_basic_block() for _ in range(3))
        self.b.branch(again)
        self.b.position_at_end(again)
        now = self.b.load(k)
        self.b.cbranch(self.is_("<", now, end), body, after)
        self.b.position_at_end(body)

        def close(leave: ir.Value | None = None) -> None:
            self.b.store(self.b.add(now, ir.Constant(WORD, 1)), k)
            if leave is None:
                self.b.branch(again)
            else:
                self.b.cbranch(leave, after, again)
            self.b.position_at_end(after)

        return now, close


def _address(name: str) -> int:
    return ctypes.cast(getattr(python, name), ctypes.c_void_p).value


def _part(code: Code, kernel: ir.Value, context: ir.Value, part: ir.Value, parts: ir.Value,
          trips: ir.Value) -> ir.Value:
    """Run one part of the kernel; return whether it raised."""
    b = code.b
    start = b.sdiv(b.mul(part, trips), parts)
    stop = b.sdiv(b.mul(b.add(part, ir.Constant(WORD, 1)), trips), parts)
    return code.call(kernel, WORD, b.inttoptr(context, POINTER), part, start, stop)


def _take_parts(module: ir.Module) -> ir.Function:
    """Run parts until none is left."""
    code = Code(module, "take_parts", VOID, [])
    again = code.forever()
    part = code.change("add", NEXT, 1)
    is_over = code.b.or_(code.is_(">=", part, code.load(PARTS)),
                         code.is_("!=", code.load(FAILED), 0))
    with code.b.if_then(is_over):
        code.b.ret_void()
    status = _part(code, code.load(KERNEL), code.load(CONTEXT), part, code.load(PARTS),
                   code.load(TRIPS))
    with code.b.if_then(code.is_("!=", status, 0)):
        code.store(FAILED, 1)
    code.b.branch(again)
    return code.function


def _worker(module: ir.Module, take_parts: ir.Function) -> None:
    """The main loop of worker k."""
    code = Code(module, "worker", VOID, [WORD])
    (k,) = code.function.args
    b = code.b
    bed, key = (b.add(k, ir.Constant(WORD, place)) for place in (BED, KEY))
    knock = code.forever()
    seen = code.load(DOOR)
    sleep, enter, inside = (code.function.append_basic_block() for _ in range(3))
    b.cbranch(code.is_(">=", seen, CLOSED), sleep, enter)
    b.position_at_end(enter)
    entered = b.cmpxchg(code.word(DOOR), seen, b.add(seen, ir.Constant(WORD, 1)), "seq_cst")
    b.cbranch(b.extract_value(entered, 1), inside, knock)
    b.position_at_end(inside)
    b.call(take_parts, [])
    before = code.change("sub", DOOR, 1)
    with b.if_then(code.is_("==", before, CLOSED + 1)):  # the last worker, somebody waits
        code.unlock(ALONE)
    b.branch(sleep)
    b.position_at_end(sleep)
    code.store(bed, 1)
    code.lock(key)
    b.branch(knock)


def _in_parts(module: ir.Module, take_parts: ir.Function, start: int) -> None:
    """in_parts(kernel, context, parts, trips, calls BLAS): return whether some part raised."""
    code = Code(module, "s2s_in_parts", WORD, [WORD] * 5)
    kernel, context, parts, trips, blas = code.function.args
    b = code.b
    zero, one = ir.Constant(WORD, 0), ir.Constant(WORD, 1)
    want = code.load(WANTED)
    several = b.and_(code.is_(">", want, 1), code.is_(">", parts, 1))
    shared, alone = (code.function.append_basic_block() for _ in range(2))
    ask = code.function.append_basic_block()
    b.cbranch(several, ask, alone)
    b.position_at_end(ask)
    b.cbranch(b.extract_value(b.cmpxchg(code.word(TAKEN), zero, one, "seq_cst"), 1), shared, alone)

    b.position_at_end(alone)
    part, close = code.count(parts)
    with b.if_then(code.is_("!=", _part(code, kernel, context, part, parts, trips), 0)):
        b.ret(one)
    close()
    b.ret(zero)

    b.position_at_end(shared)
    with b.if_then(code.is_("<", code.load(WORKERS), b.sub(want, one))):
        code.call(start, VOID)
    old_blas = b.alloca(INT)
    b.store(ir.Constant(INT, 0), old_blas)
    limits = b.and_(code.is_("!=", blas, 0), code.is_("!=", code.load(SET_BLAS), 0))
    with b.if_then(limits):
        b.store(code.call(code.load(GET_BLAS), INT), old_blas)
        code.call(code.load(SET_BLAS), VOID, ir.Constant(INT, 1))
    for word, x in ((KERNEL, kernel), (CONTEXT, context), (PARTS, parts), (TRIPS, trips), (NEXT, 0),
                    (FAILED, 0), (DOOR, 0)):
        code.store(word, x)
    least = b.sub(b.select(code.is_("<", parts, want), parts, want), one)
    workers = code.load(WORKERS)
    k, close = code.count(b.select(code.is_("<", workers, least), workers, least))
    with b.if_then(code.is_("!=", code.change("xchg", b.add(k, ir.Constant(WORD, BED)), 0), 0)):
        code.unlock(b.add(k, ir.Constant(WORD, KEY)))
    close()
    b.call(take_parts, [])
    inside = code.change("or", DOOR, CLOSED)
    with b.if_then(code.is_("!=", inside, 0)):
        _, close = code.count(ir.Constant(WORD, PATIENCE))
        close(code.is_("==", code.load(DOOR), CLOSED))
        code.lock(ALONE)
    with b.if_then(limits):
        code.call(code.load(SET_BLAS), VOID, b.load(old_blas))
    failed = code.load(FAILED)
    code.store(TAKEN, 0)
    b.ret(failed)


def ready() -> None:
    """Define the symbol s2s_in_parts for machine code; the first call compiles it, in milliseconds.
    """
    with _compiling:
        if kept:
            return
        start = ctypes.CFUNCTYPE(None)(start_workers)
        module = ir.Module("s2s_pool")
        take_parts = _take_parts(module)
        _worker(module, take_parts)
        _in_parts(module, take_parts, ctypes.cast(start, ctypes.c_void_p).value)
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        # it waits, most of the time
        machine = binding.Target.from_default_triple().create_target_machine(opt=0)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
        engine.finalize_object()
        worker = ctypes.CFUNCTYPE(None, ctypes.c_int64)(engine.get_function_address("worker"))
        kept.extend([worker, start, engine])
        state[GET_BLAS], state[SET_BLAS] = blas_controls()
        binding.add_symbol("s2s_in_parts", engine.get_function_address("s2s_in_parts"))
