"""What many places of a module do, each at some length, as a function of the module that they call.

    x = np.empty((n, m))      becomes      memory = s2s_new_2(8, n, m)
                                           if memory is null: leave

Written where it stands, a new array took sixty instructions, with a branch for each way in which it may fail, a product a hundred: a third of what
LLVM was given of a network of convolutions, of which each of its passes and the selection of instructions took its share.  A call
takes a nanosecond or two, and what is called takes more: memory is asked for, BLAS is entered.

Such a function raises as those of Numba do: it says through a pointer, which stands where it does with Numba, what is raised, and the caller leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba.core import callconv

ATTRIBUTES = ("nounwind", "noinline", "optsize")
PREFIX = "s2s_"


def outlined(context, builder, name: str, result: ir.Type, args: Sequence[ir.Value], write: Callable) -> ir.Value:
    """What the module's function `name` gives for `args`; `write(builder, *args)` writes it where it is wanted first."""
    raised = raised_in(builder)
    if getattr(context, "has_guards", False):  # what allocates is another function there (runtime/debug/sanitizer.py)
        name = f"guarded_{name}"
    function = builder.module.globals.get(PREFIX + name)
    if function is None:
        first, *others = (x.type for x in args)
        function = ir.Function(builder.module, ir.FunctionType(result, [first, raised.type, *others]), PREFIX + name)
        function.linkage = "linkonce_odr"  # those of modules that are linked are one
        for attribute in ATTRIBUTES:
            function.attributes.add(attribute)
        write(ir.IRBuilder(function.append_basic_block("entry")), function.args[0], *function.args[2:])
    return builder.call(function, [args[0], raised, *args[1:]])


def raised_in(builder) -> ir.Value:
    """Where a function of Numba's, or one of these, says what it raises."""
    return builder.function.args[1]


def leave_if(builder, has_raised: ir.Value) -> None:
    """Leave the function where one that it has called has raised."""
    with builder.if_then(has_raised, likely=False):
        caught = getattr(builder, "_in_try_block", False)
        if caught:
            builder.branch(caught["target"])
        else:
            builder.ret(callconv.RETCODE_USEREXC)


def fails(context, builder, condition: ir.Value, error: type, said: str, result: ir.Value) -> None:
    """Inside such a function: where the condition holds, raise, and give `result`."""
    with builder.if_then(condition, likely=False):
        context.call_conv.set_static_user_exc(builder, error, (said,))
        builder.ret(result)
