"""vmap of the gradient of a function that calls itself: the gradient of all lanes as one batch.

    vmap(grad(f))(xs)    is    grad(lambda xs: np.sum(vmap(f)(xs)))(xs)

as no lane's result depends on another lane's arguments.  The calls of all lanes are batched where
they are those of the program (transform/batch/recursive_calls.py); those of a derivative in each
lane have tapes, which lanes fill to different lengths.
"""

from __future__ import annotations

from collections.abc import Sequence

from .. import pipeline
from ..ir.builder import Builder
from ..ir.graph import Function
from ..ir.reemit import clone
from ..ir.types import Array, Scalar, Type
from ..ops.arrays.axes import moveaxis
from ..ops.arrays.reduce import sum_
from ..ops.core.record import value
from ..ops.core.stop_gradient import put_aside
from ..ops.program.recursive_callee import recursive_callees
from ..transform.batch.recursive_calls import CallsTogether
from . import assemble


def gradients_of_lanes(function: Function, argnums: int | tuple[int, ...], with_value: bool,
                       axes: Sequence[int | None], out_axes, types: Sequence[Type],
                       **options) -> Function | None:
    """Return vmap(grad(f)), or None where that is no batch of calls: no function that calls itself,
    lanes that share what is differentiated, or containers.

    `function` is f in one lane; `axes` and `types` are those of the arguments, all lanes together.
    """
    wrt = [argnums] if isinstance(argnums, int) else list(argnums)
    if (not recursive_callees(function) or len(function.results) != 1
            or not isinstance(function.results[0].type, Scalar)
            or function.results[0].type.dtype != "float64" or not isinstance(out_axes, int)
            or any(axes[k] is None for k in wrt)
            or not all(isinstance(x, (Scalar, Array)) for x in types)):
        return None
    batch = assemble.batch(function, axes, 0, types, **options)
    if not any(isinstance(callee, CallsTogether) for callee in recursive_callees(batch)):
        return None
    assemble.check_arguments(function, wrt)

    batch = clone(batch)
    with Builder(batch.block):
        (y,) = batch.results
        batch.block.yields = [sum_(y), put_aside(y)]
        batch.tupled = True

    def results(ys, bars):
        found = [moveaxis(bars[k], axes[k], out_axes) for k in wrt]
        bars = found[0] if isinstance(argnums, int) else tuple(found)
        if with_value:
            return [moveaxis(ys[1], 0, out_axes), bars], True
        return ([bars], False) if isinstance(argnums, int) else (found, True)

    subject = " and ".join(function.params[k].name for k in wrt)
    what = "value and the derivative" if with_value else "derivative"
    doc = (f"The {what} of {function.name}{assemble.place(function)} with respect to {subject}, for"
           " many lanes at once.")
    name = f"{function.name}_{'value_and_grad' if with_value else 'grad'}_vmap"
    made = pipeline.in_one_sweep(assemble.reverse(
        batch, wrt, lambda: [value(1.0), value(0.0)], results, name, doc))
    if not with_value:
        assemble.name_results(made, [f"{function.params[k].name}_bar" for k in wrt])
    return made
