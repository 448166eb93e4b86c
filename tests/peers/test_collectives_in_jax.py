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


def forms(m, numpy, tree, f, in_axes, wrt, grid, order):
    """Yield functions of the arguments: the results, and derivatives in all modes, inside and
    outside of vmap.
    """
    def lanes(f):
        f = m.vmap(f, in_axes, axis_name="j") if grid else f
        return m.vmap(f, in_axes, axis_name="i")

    yield "value", lanes(f)
    if not order:
        return
    lane, whole = all_results(numpy, tree, f), all_results(numpy, tree, lanes(f))
    yield "grad in lanes", lanes(m.grad(lane, wrt))
    yield "grad of lanes", m.grad(whole, wrt)
    yield "jvp in lanes", lanes(lambda *xs: m.jvp(lane, xs, xs))
    if order == 2:
        yield "hessian in lanes", lanes(m.hessian(lane))
        yield "hessian of lanes", m.hessian(whole)
        yield "jacobian in lanes", lanes(m.jacrev(f))


def agree(jax, got, expected, what):
    for a, b in zip(s2s.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10, err_msg=what)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NOT_IN_JAX])
def test_as_jax(jax, name):
    f, args, in_axes, grid, order = PROGRAMS[name]
    theirs = with_modules(named_axes.__file__, jax.numpy, jax.lax).PROGRAMS[name][0]
    wrt = tuple(range(len(args)))
    ours = forms(s2s, np, s2s.tree, f, in_axes, wrt, grid, order)
    wanted = forms(jax, jax.numpy, jax.tree, theirs, in_axes, wrt, grid, order)
    pairs = [(what, t, other) for (what, t), (_, other) in zip(ours, wanted)
             if what != "grad in lanes" or name not in NO_GRADIENT_IN_LANES]
    expected = jax.jit(lambda *xs: [other(*xs) for _, _, other in pairs])(*args)
    for (what, t, _), found in zip(pairs, expected, strict=True):
        agree(jax, t(*args), found, f"{name}: {what}")


def test_names_nobody_binds(jax):
    for m, lax in ((jax, jax.lax), (s2s, s2s.lax)):
        with pytest.raises(NameError):
            m.vmap(lambda x, lax=lax: lax.psum(x, "i"))(np.arange(3.0))
        with pytest.raises(NameError):
            lax.psum(1.0, "i")


VECTORIZED = {
    "dot": ("(n),(n)->()", "x @ y", (4, 3), (2, 1, 3)),
    "matvec": ("(n,m),(m)->(n)", "x @ np.tanh(y)", (2, 1, 4, 3), (5, 3)),
    "outer": ("(n),(m)->(n,m)", "np.outer(x, y) + np.sum(x)", (4, 2), (3,)),
    "two results": ("(n),()->(n),()", "(x * y, np.sum(x) - y)", (4, 3), (4,)),
    "solve": ("(n,n),(n)->(n)", "np.linalg.solve(x + 4.0 * np.eye(3), y)", (2, 3, 3), (3,)),
    "convolution": ("(n),(m)->(k)", "np.convolve(x, y)", (4, 3), (2,)),
    "numbers": (None, "np.sin(x) * y", (4, 3), (3,)),
}


@pytest.mark.parametrize("name", VECTORIZED)
def test_vectorize_as_jax(jax, name):
    signature, text, *shapes = VECTORIZED[name]
    args = [np.cos(np.arange(np.prod(shape))).reshape(shape) for shape in shapes]
    source = f"def f(x, y):\n    return {text}\n"
    ours = s2s.vectorize(s2s.from_source(source, {"np": np}), signature=signature)
    namespace = {"np": jax.numpy}
    exec(source, namespace)
    theirs = jax.numpy.vectorize(namespace["f"], signature=signature)
    agree(jax, ours(*args), jax.jit(theirs)(*args), name)
    gradient = s2s.grad(all_results(np, s2s.tree, ours), (0, 1))
    expected = jax.jit(jax.grad(all_results(jax.numpy, jax.tree, theirs), (0, 1)))
    agree(jax, gradient(*args), expected(*args), name)
