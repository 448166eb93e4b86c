"""NumPy's legacy random states in native code, which hands them to Python for each draw; and the
states of generators of both kinds.

Numba has functions of the names of `np.random`, but they draw from a state of Numba's own.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import NativeValue, box, models, register_model, typeof_impl, unbox

from ..numba_internals import cgutils


class RandomStateType(types.Type):
    """The type of a `np.random.RandomState`: the object, and what keeps it alive."""

    def __init__(self):
        super().__init__("RandomState")


random_state_type = RandomStateType()


@register_model(RandomStateType)
class RandomStateModel(models.StructModel):
    """The object in native code."""

    def __init__(self, manager, kind):
        super().__init__(manager, kind, [("parent", types.pyobject),
                                         ("meminfo", types.MemInfoPointer(types.voidptr))])


@typeof_impl.register(np.random.RandomState)
def _(x, context):
    return random_state_type


@unbox(RandomStateType)
def _unboxed(kind, x, c):
    made = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    made.parent = x
    made.meminfo = c.pyapi.nrt_meminfo_new_from_pyobject(cgutils.voidptr_t(None), x)
    return NativeValue(made._getvalue())


@box(RandomStateType)
def _boxed(kind, x, c):
    parent = c.context.make_helper(c.builder, kind, x).parent
    c.pyapi.incref(parent)
    c.context.nrt.decref(c.builder, kind, x)
    return parent


def state_of(rng: np.random.Generator | np.random.RandomState):
    """The state of a generator, which `restore` brings back."""
    return (rng.get_state() if isinstance(rng, np.random.RandomState)
            else rng.bit_generator.state)


def restore(rng: np.random.Generator | np.random.RandomState, state) -> None:
    """Bring a generator back into a state."""
    if isinstance(rng, np.random.RandomState):
        rng.set_state(state)
    else:
        rng.bit_generator.state = state
