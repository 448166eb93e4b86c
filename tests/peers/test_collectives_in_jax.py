"""Collectives over named axes, and their derivatives, against JAX."""

import named_axes
import numpy as np
import pytest
from lanes_in_threads import with_modules
from named_axes import PROGRAMS

import s2s

# JAX 0.10.2 is wrong about an all_to_all of what all lanes share, asserts for negative axes, and
# raises for the gradient in lanes of one with unequal axes or tiled
NOT_IN_JAX = "shared_exchanged", "exchanged_negative"
NO_GRADIENT_IN_LANES = "grid_transposed", *(n for n in PROGRAMS if n.startswith("exchanged_"))


def all_results(numpy, tree, f):
    """`f`, with the sum of all numbers in its result, each weighted by its place."""
    def total(*args):
        found = tree.leaves(f(*args))
        return sum(numpy.sum(y * numpy.reshape(numpy.cos(numpy.arange(1.0 * y.size)), y.shape))
                   if numpy.ndim(y) else y for y in found)

    return total


def forms(m, numpy, tree, f, in_axes, args, grid, order):
    """Yield the results, and the derivatives in all modes, inside and outside of vmap."""
    def lanes(f):
        f = m.vmap(f, in_axes, axis_name="j") if grid else f
        return m.vmap(f, in_axes, axis_name="i")

    yield "value", lambda: lanes(f)(*args)
    if not order:
        return
    wrt = tuple(range(len(args)))
    lane, whole = all_results(numpy, tree, f), all_results(numpy, tree, lanes(f))
    yield "grad in lanes", lambda: lanes(m.grad(lane, wrt))(*args)
    yield "grad of lanes", lambda: m.grad(whole, wrt)(*args)
    yield "jvp in lanes", lambda: lanes(lambda *xs: m.jvp(lane, xs, xs))(*args)
    if order == 2:
        yield "hessian in lanes", lambda: lanes(m.hessian(lane))(*args)
        yield "hessian of lanes", lambda: m.hessian(whole)(*args)
        yield "jacobian in lanes", lambda: lanes(m.jacrev(f))(*args)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_IN_JAX])
def test_as_jax(jax, name):
    f, args, in_axes, grid, order = PROGRAMS[name]
    theirs = with_modules(named_axes.__file__, jax.numpy, jax.lax).PROGRAMS[name][0]
    ours = forms(s2s, np, s2s.tree, f, in_axes, args, grid, order)
    wanted = forms(jax, jax.numpy, jax.tree, theirs, in_axes, args, grid, order)
    for (what, got), (_, expected) in zip(ours, wanted):
        if what == "grad in lanes" and name in NO_GRADIENT_IN_LANES:
            continue
        for a, b in zip(s2s.tree.leaves(got()), jax.tree.leaves(expected()), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10, err_msg=f"{name}: {what}")


def test_names_nobody_binds(jax):
    for m, lax in ((jax, jax.lax), (s2s, s2s.lax)):
        with pytest.raises(NameError):
            m.vmap(lambda x, lax=lax: lax.psum(x, "i"))(np.arange(3.0))
        with pytest.raises(NameError):
            lax.psum(1.0, "i")
