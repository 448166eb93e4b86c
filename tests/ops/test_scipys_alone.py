"""Functions of scipy.special that neither math nor a few lines compute: interpreted code calls SciPy."""

import numpy as np
import pytest
from scipy import special

import s2s

ALONE = {
    "beta": (0.7, 1.2), "betaln": (0.7, 1.2), "erfcx": (0.4,), "dawsn": (0.4,), "erfinv": (0.3,), "erfcinv": (0.3,), "ndtri": (0.3,),
    "log_ndtr": (-1.2,), "i0": (0.6,), "i1": (0.6,), "i0e": (-0.6,), "i1e": (-0.6,), "j0": (0.6,), "j1": (0.6,),
    "xlog1py": (0.7, 0.3), "rel_entr": (0.7, 0.3), "kl_div": (0.7, 0.3), "entr": (0.7,),
}


@pytest.mark.parametrize("name", ALONE)
def test_functions_that_only_scipy_computes(name):
    """SciPy's bits, of numbers and of arrays; both modes, twice."""
    function, xs = getattr(special, name), ALONE[name]
    f = s2s.from_source(f"def f({', '.join('xy'[:len(xs)])}):\n    return special.{name}({', '.join('xy'[:len(xs)])}) * 1.5\n",
                        {"special": special})
    assert s2s.value_and_grad(f)(*xs)[0] == function(*xs) * 1.5
    s2s.check_grads(f, xs)
    arrays = tuple(np.array([x, 1.1 * x]) for x in xs)
    np.testing.assert_array_equal(s2s.vjp(f, *arrays)[0], function(*arrays) * 1.5)
    s2s.check_grads(lambda *xs: np.sum(f(*xs)), arrays)


def test_bessel_functions_at_zero():
    for f, slope in ((special.i1, 0.5), (special.j1, 0.5), (special.i0, 0.0), (special.i1e, 0.5)):
        assert s2s.grad(lambda x, f=f: f(x))(0.0) == slope


def test_what_only_scipy_computes_is_not_compiled():
    with pytest.raises(s2s.UnsupportedError, match="(?s)special.i0.*scipy.special.i0 in compiled code\nInstead: call it outside"):
        s2s.jit(lambda x: special.i0(x))(1.0)
