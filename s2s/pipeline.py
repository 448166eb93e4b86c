"""The pass pipeline from a Python function to the result: the passes, their order, and the reason
for each position.

    front.build -> PREPARE -> vjp | jvp | vmap -> FINISH -> render | lower -> render

What a pass is, and how every stage is verified and dumped, is said in passes.py; the passes of
`lower` are in back/loop_pipeline.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .analysis.divergence import lanes_are_threads
from .back.arrays.assume_equal_lengths import has_assumptions
from .back.arrays.contractions import expand_einsums
from .back.arrays.specialise_lengths import specialise_lengths
from .back.cuda.host import render_cuda
from .back.loop_pipeline import lower
from .back.print.printer import Draft, Module, render
from .call.flatten import Compiled, has_containers, spread, taking_apart
from .check_flags import wants_public_numba
from .errors import UnsupportedError
from .front import build as front_build
from .front.syntax.dependencies import note_dependency
from .ir.graph import Function, Recalled, walk
from .ir.reemit import clone
from .ir.types import Type
from .lazy_import import later
from .ops.math.special import SCIPYS_ALONE
from .ops.program.collectives import require_bound
from .ops.program.opaque_call import called, foreign
from .ops.program.recursive_callee import calls_itself, recursive_callees, with_callees
from .passes import Pass, dump, ordered, run, stage
from .runtime.cuda import compiled as cuda_code
from .runtime.debug.load_source import load
from .transform.batch import recursive_calls, vmap
from .transform.cleanup.cse import cse
from .transform.cleanup.dce import dce
from .transform.cleanup.dead_stores import drop_dead_stores
from .transform.cleanup.erase_classes import erase_classes
from .transform.cleanup.inline import drop_rerun_barriers, inline_ruled
from .transform.cleanup.licm import licm_of_values
from .transform.cleanup.merge_branches import merge_branches
from .transform.cleanup.share_callees import share_callees
from .transform.cleanup.simplify import simplify
from .transform.cleanup.sink_stores import sink_stores
from .transform.cleanup.split_aggregates import split_aggregates
from .transform.cleanup.strong_products import lower_strong_products
from .transform.cleanup.tables import FINISH, PREPARE
from .transform.forward import jvp
from .transform.forward.linearize import linearize as linear
from .transform.reverse import vjp
from .transform.reverse.custom_rule_calls import lift_captures
from .transform.reverse.fuse_sweeps import fuse_sweeps, has_ii_loops
from .transform.reverse.tape_limit import limit_tapes

numba = later("numba")
numba_code, plain_code, texts, worth, lengths, internals = (
    later(f"s2s.runtime.{name}")
    for name in ("call.native_function", "call.plain_function", "numba.njit_text",
                 "threads.parallel_threshold", "entry.length_versions", "numba_internals"))

ONE_SWEEP = ordered(  # of a gradient, whose two sweeps stay one function
    Pass(fuse_sweeps, "it is known by now what the reverse sweep needs and reads from tapes"),
    Pass(simplify, "reads of elements now meet the writes to them in the same trip",
         after=fuse_sweeps),
    Pass(merge_branches, "both sweeps of a trip branch on the same conditions", after=simplify),
    Pass(cse, "the reverse sweep repeats values of the same trip", after=merge_branches),
    Pass(merge_branches, "cse has found which nested branches test the same condition", after=cse),
    Pass(cse, "and both sweeps meet in the arms", after=merge_branches),
    Pass(drop_dead_stores, "tapes were the only readers of elements after their trip",
         after=fuse_sweeps),
    Pass(dce, "tapes that nothing reads are dead", after=simplify),
)


def in_one_sweep(function: Function) -> Function:
    """Clean up `function` and fuse the two sweeps of its independent loops: for a gradient, which
    is called as a whole.
    """
    return run(ONE_SWEEP, function) if has_ii_loops(function) else function


COMPILE = ordered(
    Pass(inline_ruled, "loop nests fuse only within one function"),
    Pass(erase_classes, "native code has no classes; after inlining no call boundary has to agree",
         after=inline_ruled),
    Pass(simplify, "inlined bodies meet their arguments, and tuple members their values",
         after=erase_classes),
    Pass(lower_strong_products, "no more derivatives are taken, and loops compute np.where",
         after=erase_classes),
    Pass(expand_einsums, "contractions of many factors become pairwise products, some of them "
         "common",
         after=simplify),
    Pass(cse, "two calls often compute the same, and so do contractions", after=expand_einsums),
    Pass(dce, "inlined bodies return more than is used", after=cse),
    Pass(in_one_sweep, "both sweeps of an inlined derivative are in one function now", after=dce),
    Pass(licm_of_values, "bodies of calls in loops are ops of the loop now", after=inline_ruled),
    Pass(cse, "hoisted ops repeat ops before the loop", after=licm_of_values),
    Pass(drop_rerun_barriers, "they have kept checkpointed reruns from cse, and are not needed any "
         "more", after=cse),
)


def build(function: Callable, types: Sequence[Type]) -> Function:
    """Build the IR of a Python function for arguments of these types, and clean it up."""
    return prepared(stage(front_build(function, types), "front"))


def prepared(function: Function) -> Function:
    """Clean up a function from the front end, with the recursive functions that it calls."""
    run_on_callees(PREPARE, function)
    return run(PREPARE, function)


def run_on_callees(passes: Sequence[Pass], function: Function) -> None:
    """Clean up the recursive functions that `function` calls, each once."""
    for callee in recursive_callees(function):
        if not callee.cleaned:
            callee.cleaned = True
            callee.function = run(passes, callee.function)


def with_captures_of_rules(function: Function, wrt: Sequence[int], mode: str) -> Function:
    """Add parameters to `function` for the data that rules capture and its derivative ("jvp" or
    "vjp") in `wrt` reads.
    """
    return stage(lift_captures(function, wrt, mode), "rules")


def differentiate(function: Function, wrt: Sequence[int],
                  tape_limit: int | None = None) -> Function:
    """Transform f(*xs) -> *ys to f_vjp(*xs, *y_bars) -> (*ys, *x_bars); its loops save at most
    `tape_limit` bytes each.
    """
    function = share_callees(clone(function))
    function = stage(split_aggregates(function), "split_aggregates")
    if tape_limit is not None:
        function = stage(limit_tapes(function, wrt, tape_limit), "limit_tapes")
    return stage(vjp.vjp(function, wrt), "vjp")


def push_forward(function: Function, wrt: Sequence[int]) -> Function:
    """Transform f(*xs) -> *ys to f_jvp(*xs, *x_dots) -> (*ys, *y_dots)."""
    return stage(jvp.jvp(function, wrt), "jvp")


def linearize(function: Function, wrt: Sequence[int]) -> Function:
    """Transform f(*xs) -> *ys to f_jvp(*xs, *x_dots) -> (*ys, *y_dots), the primal first and then
    its tangents.
    """
    return stage(linear(function, wrt), "linearize")


def batch(function: Function, in_axes: Sequence[int | None], out_axes,
          types: Sequence[Type] | None = None, each_writes: bool = False,
          together: bool | None = None, **axis) -> Function:
    """Transform f(*xs) -> *ys for one lane to f_vmap(*xs) -> *ys for many; `axis_name` and
    `axis_size` are in `axis`.  `together` says whether calls of recursive functions run as batches;
    None: if that pays.
    """
    note_dependency(lanes_are_threads, lanes_are_threads())
    calls = None if lanes_are_threads() else recursive_calls.Policy(together)
    return stage(vmap.vmap(function, in_axes, out_axes, types, each_writes, calls=calls, **axis),
                 "vmap")


def finish(function: Function) -> Function:
    """Clean up a transformed function: only once, where a transformation, such as `jit`, returns
    another's result unchanged.
    """
    run_on_callees(FINISH, function)
    found = clone(function) if function.is_finished else sink_stores(run(FINISH, function))
    found.is_finished = True
    return found


def flatten_calls(function: Function, target: str = "cpu") -> Function:
    """Inline all calls but those of recursive functions, as compiled code needs it."""
    require_bound(function)
    for callee in recursive_callees(function) if target == "cuda" else ():
        if calls_itself(callee):
            raise UnsupportedError(f"{callee.name} calls itself, which the threads of a GPU do not",
                                   None, 'write a loop, or leave target="cuda" away')
    flat = run(COMPILE, with_callees(function, lambda callee: run(COMPILE, callee)))
    for op in walk(flat.block) if target == "cuda" else ():
        if op.record is foreign:
            raise UnsupportedError(f"{called(op.attrs['function'])}, which s2s does not read, on a "
                                   "GPU", op.line, 'write it in Python that s2s reads, or leave '
                                   'target="cuda" away')
    return flat


# ------------------------------------------------------------------------------------------- output


def text(function: Function) -> str:
    """Return `function` as the Python that users read."""
    require_bound(function)
    return render(function).text


def readable(function: Function) -> Module:
    """Print `function` as the Python that users read, and that runs."""
    require_bound(function)
    module = render(function)
    dump(lambda: module.text, f"{function.name}_source")
    return module


def loops_of(function: Function, target: str = "cpu", args: Sequence | None = None) -> Function:
    """Lower `function` to the fused scalar loops that are compiled: for any arguments, or for the
    given ones.
    """
    flat = flatten_calls(spread(function), target)
    if target != "cpu":
        return lower(flat, target)
    if args is None:
        return lower(specialise_lengths(flat))
    known = partial(lengths.function_for, flat)
    flat = (taking_apart(known, function) if has_containers(function) else known)(*args)
    return lower(flat, supposes=has_assumptions(flat))


def loaded(module: Module) -> Callable:
    """Load `module` and return its entry function, run by Python."""
    return load(module.text, module.entry, module.lines, given=module.given)


def flattened(function: Function) -> Function:
    """Flatten `function` for compilation: leaves as parameters, calls inlined."""
    return flatten_calls(spread(function))


def compiled(function: Function | Recalled, options: dict, kept=None) -> Callable:
    """Compile `function`, as a function of its parameters; run by Python where NUMBA_DISABLE_JIT
    disables compilation.

    `kept` is what an earlier process has kept of it, or what this one will keep (s2s/persist).
    """
    if kept is not None:
        return Compiled(numba_code.compiled(kept.flat,
                                            **{k: v for k, v in options.items() if k != "target"},
                                            kept=kept), function)
    options = dict(options)
    target = options.pop("target", "cpu")
    if target not in TARGETS:
        raise UnsupportedError(f"the target {target!r}", None, "use one of "
                               f"{', '.join(map(repr, TARGETS))}")
    if target == "cpu" and numba.config.DISABLE_JIT:
        return loaded(readable(function))
    return Compiled(TARGETS[target](flatten_calls(spread(function), target), **options), function)


def is_plain() -> bool:
    """Test whether native code is compiled by Numba's documented interface alone."""
    return wants_public_numba() or bool(internals.MISSING)


def has_workers() -> bool:
    """Test whether native code can be run by several workers: what only Numba's documented
    interface compiles, and Python, are for one.
    """
    return not (is_plain() or numba.config.DISABLE_JIT)


def native_code(function: Function, **options) -> Callable:
    """Compile `function` for the CPU."""
    return (plain_code if is_plain() else numba_code).compiled(function, **options)


TARGETS = {"cpu": native_code, "cuda": cuda_code}


def loops_text(function: Function, target: str = "cpu", args: Sequence | None = None,
               parallel: bool | None = False) -> str:
    """Return what is compiled, as Python: fused scalar loops, or the kernels that they are for a
    GPU.

    With `args` it is what runs for them: loops that are worth it are in parts, unless `parallel` is
    False.
    """
    if target == "cpu" and is_plain():  # which has no versions
        args = None
    lowered = loops_of(function, target, args)
    if target == "cuda":
        return render_cuda(lowered).text
    drafted = Draft(lowered, native=True)
    loops = None if args is None else worth.chooser(drafted.sizes, len(lowered.params), parallel)
    if loops is not None and has_containers(function):
        loops = taking_apart(loops, function)
    return drafted.module(frozenset() if loops is None else loops(*args)).text


def export_text(function: Function, compiled: bool = False, target: str = "cpu") -> str:
    """Return a self-contained module that defines `function`, plain or compiled by Numba."""
    if function.captures:
        names = ", ".join(function.captures)
        raise UnsupportedError(f"{function.name} reads {names} at each call, which a file cannot "
                               "hold", None, "make them arguments of the function")
    if not compiled:
        require_bound(function)
        return importable(render(function), function)
    if target == "cuda":
        return loops_text(function, target)
    lowered = loops_of(function)
    for op in walk(lowered.block):
        if op.name in SCIPYS_ALONE:
            raise UnsupportedError(f"scipy.special.{op.name} in a compiled file", op.line,
                                   "export what is not compiled, which calls SciPy")
    return importable(texts.njit_text(render(lowered, native=True)), function)


def importable(module: Module, function: Function) -> str:
    """Return the text of `module`, if a file can import all that it needs."""
    for name, x in module.given.items():
        if f"import {name}\n" not in module.text:
            verb = "raises" if isinstance(x, type) and issubclass(x, BaseException) else "uses"
            raise UnsupportedError(f"{function.name} {verb} {name}, which a file cannot import",
                                   None, "define it at the top of a module")
    return module.text
