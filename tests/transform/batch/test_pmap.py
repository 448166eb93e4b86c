"""Lanes that workers share, against vmap: the generated Python in threads, and native code."""

import numpy as np
import pytest
from named_axes import PROGRAMS
from workers_in_threads import Workers

import s2s
from s2s import tree


def all_results(f):
    """`f`, with the sum of all numbers in its result, each weighted by its place."""
    def total(*args):
        return sum(np.sum(y * np.reshape(np.cos(np.arange(1.0 * y.size)), y.shape))
                   if np.ndim(y) else y for y in tree.leaves(f(*args)))

    return total


def forms(over, f, wrt, order):
    """Yield functions of the arguments: the results, and derivatives in lanes and of lanes."""
    yield "value", over(f)
    if not order:
        return
    lane, whole = all_results(f), all_results(over(f))
    yield "grad of lanes", s2s.grad(whole, wrt)
    if order == 2:
        yield "grad in lanes", over(s2s.grad(lane, wrt))
        yield "jvp of lanes", s2s.jvp(over(f))
        yield "hessian of lanes", s2s.hessian(whole)


def lanes_of(transform, in_axes, grid, **options):
    def over(f):
        f = s2s.vmap(f, in_axes, axis_name="j") if grid else f
        return transform(f, in_axes=in_axes, axis_name="i", **options)

    return over


def agree(got, expected, what):
    for a, b in zip(tree.leaves(got), tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b), what
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("name", PROGRAMS)
def test_generated_python_in_threads(name):
    """All workers have the same bits; two workers of three lanes, and more workers than lanes."""
    f, args, in_axes, grid, order = PROGRAMS[name]
    wrt = tuple(range(len(args)))
    ours = forms(lanes_of(s2s.pmap, in_axes, grid), f, wrt, order)
    wanted = forms(lanes_of(s2s.vmap, in_axes, grid), f, wrt, order)
    for (what, t), (_, v) in zip(ours, wanted):
        given = (*args, *args) if what == "jvp of lanes" else args
        expected = v(*given)
        for count in (2, 4) if what == "value" or order == 2 else (2,):
            found = Workers(count).run(t, given)
            agree(found[0], expected, f"{name}: {what}, {count} workers")
            for other in found[1:]:
                for a, b in zip(tree.leaves(other), tree.leaves(found[0]), strict=True):
                    np.testing.assert_array_equal(a, b)
