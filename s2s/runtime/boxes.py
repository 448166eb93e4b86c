"""How arrays that native code returns become Python's.

Numba's wrapper makes an ndarray of each, and asks for the class ndarray by unpickling it, with a function of Python's: 0.3
microseconds for each array that is returned, half of a call that returns a hundred.  Here the class stands among the
constants of the wrapper, as the dtype does.  Considered: arrays that Python makes, and hands in to be written (`out=`
does that), which is slower for small ones; a type of arrays of our own, boxed by a rule of our own, to which each
function would have to cast what it returns.
"""

from __future__ import annotations

import copy
import functools

from numba.core.pythonapi import PythonAPI


class Boxes(PythonAPI):
    """What Numba writes into a wrapper to talk to Python."""

    constants = None  # those of the wrapper, while its result is boxed
    array_class = None  # ndarray, while an array is boxed

    def from_native_value(self, typ, val, env_manager=None):
        before, self.constants = self.constants, env_manager
        try:
            return super().from_native_value(typ, val, env_manager)
        finally:
            self.constants = before

    def nrt_adapt_ndarray_to_python(self, aryty, ary, dtypeptr):
        if self.constants is not None:
            self.array_class = self.constants.read_const(self.constants.add_const(aryty.box_type))
        try:
            return super().nrt_adapt_ndarray_to_python(aryty, ary, dtypeptr)
        finally:
            self.array_class = None

    def unserialize(self, structptr):
        return super().unserialize(structptr) if self.array_class is None else self.array_class


def with_boxes(context):
    """A target context of Numba's like `context`, whose wrappers box arrays as said above."""
    context = copy.copy(context)
    context.get_python_api = functools.partial(Boxes, context)
    return context
