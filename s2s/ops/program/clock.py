"""What time it is: `time.perf_counter()` and its like, read where the program reads them.

The time carries no derivative, and reading it is an effect: a program that measures itself measures
the forward sweep of its derivative.
"""

from __future__ import annotations

import ast
import time
from collections.abc import Callable

from ...ir.builder import emit
from ...ir.graph import Value
from ...ir.types import FLOAT, INT
from ..core.dependence_rules import nothing
from ..core.record import define, no_jvp, no_vjp, numpy_function
from .opaque_call import spelled

CLOCKS = (time.time, time.perf_counter, time.monotonic, time.process_time, time.thread_time)
IN_NANOSECONDS = (time.time_ns, time.perf_counter_ns, time.monotonic_ns, time.process_time_ns,
                  time.thread_time_ns)

clock_record = define(
    "clock", evaluate=lambda *, function: function(),
    infer=lambda *, function: INT if function in IN_NANOSECONDS else FLOAT, pure=False,
    syntax=lambda *, function: ast.Call(spelled(function), [], []), vjp=no_vjp, jvp=no_jvp,
    depends=nothing, native="python", contiguous="operands", calls_by_name=True)


def _reader(clock: Callable) -> Callable:
    def read() -> Value:
        return emit(clock_record, function=clock)

    return read


for _clock in (*CLOCKS, *IN_NANOSECONDS):
    numpy_function(_clock)(_reader(_clock))
