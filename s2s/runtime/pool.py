"""The threads that share the trips of large loops, and the native code that hands the trips out.

A parallel loop is a kernel `kernel(context, part, start, stop)` and a number of parts (parts.py).  The thread
that comes to it takes parts, and so do the pool's workers, each the next one that nobody has taken, until none is
left.  Which thread makes which part has no influence on any result.

Three designs were weighed.  Numba's prange takes a second to compile, and its workqueue ends the process when two
threads use it at once, its OpenMP after a fork.  A ThreadPoolExecutor needs Python between any two loops, the lock
for each hand-over (up to 5 ms where another thread computes in Python), and cannot help a loop inside a loop that
must run in order.  So workers are Python threads that wait inside native code, without the lock, on Python's own
thread locks, which every platform has: waking one costs a few microseconds, from wherever compiled code is.

* The pool serves one loop at a time.  Whoever finds it taken, another caller or a loop inside a part, makes all
  its parts itself: nobody ever waits for a worker that is busy elsewhere.
* A worker that wakes after all parts are taken goes back to sleep, and is not waited for: on a machine that does
  other things the loop takes as long as it does on one core, not longer.
* A fork leaves the child without workers, which start again when they are first wanted.

The state is an array of 64-bit words, which native code changes by atomic instructions:

    TAKEN       1 while a loop has the pool
    DOOR        how many workers are in the loop that has it, plus CLOSED once no part is left
    NEXT        the next part;  FAILED: whether some part raised, after which none is begun
    BED[k]      1 while worker k sleeps on its lock, KEY[k]
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import threading
from itertools import product
from pathlib import Path

import numpy as np
from llvmlite import binding, ir

MOST = 128  # threads
CLOSED = 1 << 32
PATIENCE = 4000  # looks at the door before a thread sleeps until the last worker has left: some 10 us
TAKEN, DOOR, NEXT, PARTS, TRIPS, KERNEL, CONTEXT, FAILED, WANTED, WORKERS, ALONE, GET_BLAS, SET_BLAS = range(0, 8 * 13, 8)  # a cache line each
BED, KEY = 8 * 13, 8 * 13 + MOST
WORDS = 8 * 13 + 2 * MOST

_state = np.zeros(WORDS, np.int64)
_python = ctypes.pythonapi
_python.PyThread_allocate_lock.restype = ctypes.c_void_p
_python.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
_kept: list = []  # the native worker, and what native code refers to
_compiling = threading.Lock()

# ------------------------------------------------------------------------------------ how many threads


def usual_threads() -> int:
    """S2S_THREADS, or the number of cores that this process may use."""
    try:
        return max(1, int(os.environ["S2S_THREADS"]))
    except (KeyError, ValueError):
        pass
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def set_threads(n: int | None) -> int:
    """Let compiled loops run on at most `n` threads, the calling one among them; returns how many it was before.

    None means as many as at first: S2S_THREADS, or the cores that this process may use.  It holds for the process,
    from the next loop on.  Results do not depend on it, not in the last bit.  Raises ValueError for n < 1.
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
        raise ValueError(f"set_threads: the number of threads is a positive integer or None, not {n!r}")
    before = threads()
    _state[WANTED] = min(usual_threads() if n is None else int(n), MOST)
    return before


def threads() -> int:
    """On how many threads compiled loops may run."""
    return int(_state[WANTED])


# --------------------------------------------------------------------------------------- native code

WORD, BYTE, INT, VOID = ir.IntType(64), ir.IntType(8), ir.IntType(32), ir.VoidType()
POINTER = BYTE.as_pointer()
KERNEL_TYPE = ir.FunctionType(WORD, [POINTER, WORD, WORD, WORD])


class Code:
    """Emits one native function that works on the words of the pool."""

    def __init__(self, module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]):
        self.function = ir.Function(module, ir.FunctionType(result, arguments), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())

    def word(self, k) -> ir.Value:
        """The address of word `k`."""
        k = ir.Constant(WORD, k) if isinstance(k, int) else k
        place = self.b.add(ir.Constant(WORD, _state.ctypes.data), self.b.mul(k, ir.Constant(WORD, 8)))
        return self.b.inttoptr(place, WORD.as_pointer())

    def load(self, k) -> ir.Value:
        return self.b.load_atomic(self.word(k), "seq_cst", 8)

    def store(self, k, x) -> None:
        self.b.store_atomic(ir.Constant(WORD, x) if isinstance(x, int) else x, self.word(k), "seq_cst", 8)

    def change(self, how: str, k, x: int) -> ir.Value:
        """What the word was before it was changed in one step: "add", "sub", "or", "xchg"."""
        return self.b.atomic_rmw(how, self.word(k), ir.Constant(WORD, x), "seq_cst")

    def is_(self, how: str, x, y) -> ir.Value:
        return self.b.icmp_signed(how, x, ir.Constant(WORD, y) if isinstance(y, int) else y)

    def call(self, address: int | ir.Value, result: ir.Type, *args: ir.Value) -> ir.Value:
        type = ir.FunctionType(result, [a.type for a in args])
        address = ir.Constant(WORD, address) if isinstance(address, int) else address
        return self.b.call(self.b.inttoptr(address, type.as_pointer()), list(args))

    def lock(self, k) -> None:
        """Sleep until the lock whose address is in word `k` is released."""
        self.call(_address("PyThread_acquire_lock"), INT, self.b.inttoptr(self.load(k), POINTER), ir.Constant(INT, 1))

    def unlock(self, k) -> None:
        self.call(_address("PyThread_release_lock"), VOID, self.b.inttoptr(self.load(k), POINTER))

    def forever(self):
        """A block to jump back to."""
        again = self.function.append_basic_block()
        self.b.branch(again)
        self.b.position_at_end(again)
        return again

    def count(self, end: ir.Value):
        """(k, close): what follows is done for k from 0 up to `end`, and `close(leave)` ends it, at once if `leave` holds."""
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
    return ctypes.cast(getattr(_python, name), ctypes.c_void_p).value


def _part(code: Code, kernel: ir.Value, context: ir.Value, part: ir.Value, parts: ir.Value, trips: ir.Value) -> ir.Value:
    """Call the kernel for one part; returns whether it raised."""
    b = code.b
    start = b.sdiv(b.mul(part, trips), parts)
    stop = b.sdiv(b.mul(b.add(part, ir.Constant(WORD, 1)), trips), parts)
    return code.call(kernel, WORD, b.inttoptr(context, POINTER), part, start, stop)


def _take_parts(module: ir.Module) -> ir.Function:
    """Make parts until none is left."""
    code = Code(module, "take_parts", VOID, [])
    again = code.forever()
    part = code.change("add", NEXT, 1)
    is_over = code.b.or_(code.is_(">=", part, code.load(PARTS)), code.is_("!=", code.load(FAILED), 0))
    with code.b.if_then(is_over):
        code.b.ret_void()
    status = _part(code, code.load(KERNEL), code.load(CONTEXT), part, code.load(PARTS), code.load(TRIPS))
    with code.b.if_then(code.is_("!=", status, 0)):
        code.store(FAILED, 1)
    code.b.branch(again)
    return code.function


def _worker(module: ir.Module, take_parts: ir.Function) -> None:
    """The life of worker k."""
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
    with b.if_then(code.is_("==", before, CLOSED + 1)):  # the last one, and somebody waits for it
        code.unlock(ALONE)
    b.branch(sleep)
    b.position_at_end(sleep)
    code.store(bed, 1)
    code.lock(key)
    b.branch(knock)


def _in_parts(module: ir.Module, take_parts: ir.Function, start: int) -> None:
    """in_parts(kernel, context, parts, trips, calls BLAS): whether some part raised."""
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
    for word, x in ((KERNEL, kernel), (CONTEXT, context), (PARTS, parts), (TRIPS, trips), (NEXT, 0), (FAILED, 0), (DOOR, 0)):
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
    """Make the symbol s2s_in_parts known to machine code; the first time compiles it, in milliseconds."""
    with _compiling:
        if _kept:
            return
        start = ctypes.CFUNCTYPE(None)(_start)
        module = ir.Module("s2s_pool")
        take_parts = _take_parts(module)
        _worker(module, take_parts)
        _in_parts(module, take_parts, ctypes.cast(start, ctypes.c_void_p).value)
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(opt=2)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
        engine.finalize_object()
        worker = ctypes.CFUNCTYPE(None, ctypes.c_int64)(engine.get_function_address("worker"))
        _kept.extend([worker, start, engine])
        _state[GET_BLAS], _state[SET_BLAS] = _blas_controls()
        binding.add_symbol("s2s_in_parts", engine.get_function_address("s2s_in_parts"))


# ------------------------------------------------------------------------------------------- workers


def _new_lock() -> int:
    """The address of a lock that is taken."""
    lock = _python.PyThread_allocate_lock()
    _python.PyThread_acquire_lock(lock, 0)
    return lock


def _start() -> None:
    """Start the workers that are wanted and not there; native code calls it, with the pool taken."""
    while _state[WORKERS] < _state[WANTED] - 1:
        k = int(_state[WORKERS])
        _state[KEY + k] = _new_lock()
        thread = threading.Thread(target=_kept[0], args=(k,), name=f"s2s-{k + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the interpreter is ending: go on with those there are
            _state[WANTED] = k + 1
            return
        _state[WORKERS] = k + 1


def _without_workers() -> None:
    """The pool as it is at first, and in the child of a fork."""
    _state[[TAKEN, WORKERS]] = 0
    _state[BED:BED + MOST] = 0
    _state[DOOR] = CLOSED
    _state[ALONE] = _new_lock()


def _blas_controls() -> tuple[int, int]:
    """The addresses of the functions that tell and set how many threads SciPy's OpenBLAS uses; 0 where there is none."""
    found = importlib.util.find_spec("scipy")
    root = Path(found.origin).parent if found is not None and found.origin else None
    folders = [root.parent / "scipy.libs", root / ".dylibs"] if root is not None else []
    for file in sorted(file for folder in folders for file in folder.glob("*openblas*")):
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for prefix, suffix in product(("scipy_", ""), ("", "64_")):
            names = [f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set")]
            if all(hasattr(library, name) for name in names):
                _kept.append(library)
                get, set_ = (ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names)
                return get, set_
    return 0, 0


_without_workers()
set_threads(None)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_without_workers)
