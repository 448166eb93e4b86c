"""Outline long instruction sequences that a module repeats into helper functions.

    x = np.empty((n, m))      becomes      memory = s2s_new_2(8, n, m)
                                           if memory is null: leave

In place, a new array took sixty instructions, with a branch for each possible failure, a product a
hundred: a third of the LLVM code of a network of convolutions, with a proportional share of each
pass and of instruction selection. A call takes a nanosecond or two, less than the allocation or the
BLAS routine inside.

A helper reports an exception as Numba's functions do, through a pointer argument in the same
position, and the caller returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ..numba_internals import callconv

ATTRIBUTES = ("nounwind", "noinline", "optsize")
PREFIX = "s2s_"


def outlined(context, builder, name: str, result: ir.Type, args: Sequence[ir.Value],
             write: Callable) -> ir.Value:
    """Call the module's helper function `name` with `args`; `write(builder, *args)` emits its body
    on first use.
    """
    raised = raised_in(builder)
    # the allocator differs there (runtime/debug/sanitizer.py)
    if getattr(context, "has_guards", False):
        name = f"guarded_{name}"
    function = builder.module.globals.get(PREFIX + name)
    if function is None:
        first, *others = (x.type for x in args)
        function = ir.Function(builder.module,
                               ir.FunctionType(result, [first, raised.type, *others]),
                               PREFIX + name)
        function.linkage = "linkonce_odr"  # linked modules share it
        for attribute in ATTRIBUTES:
            function.attributes.add(attribute)
        write(ir.IRBuilder(function.append_basic_block("entry")), function.args[0],
              *function.args[2:])
    return builder.call(function, [args[0], raised, *args[1:]])


def raised_in(builder) -> ir.Value:
    """The pointer through which a Numba function, or a helper, reports its exception."""
    return builder.function.args[1]


def leave_if(builder, has_raised: ir.Value) -> None:
    """Return from the function if a helper has raised."""
    with builder.if_then(has_raised, likely=False):
        caught = getattr(builder, "_in_try_block", False)
        if caught:
            builder.branch(caught["target"])
        else:
            builder.ret(callconv.RETCODE_USEREXC)


def fails(context, builder, condition: ir.Value, error: type, said: str, result: ir.Value) -> None:
    """Inside a helper: raise and return `result` if the condition holds."""
    with builder.if_then(condition, likely=False):
        context.call_conv.set_static_user_exc(builder, error, (said,))
        builder.ret(result)
