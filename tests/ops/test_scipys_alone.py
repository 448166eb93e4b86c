"""Functions of scipy.special that neither math nor a few lines compute: interpreted code calls
SciPy.
"""

import warnings

import numpy as np
import pytest
from scipy import special

import s2s
from s2s.back.loop_pipeline import lower
from s2s.ir.types import Scalar
from s2s.ops.math.special import OF_ORDER
from s2s.pipeline import build

ALONE = {
    "beta": (0.7, 1.2),
    "betaln": (0.7, 1.2),
    "erfcx": (0.4,),
    "dawsn": (0.4,),
    "erfinv": (0.3,),
    "erfcinv": (0.3,),
    "ndtri": (0.3,),
    "log_ndtr": (-1.2,),
    "i0": (0.6,),
    "i1": (0.6,),
    "i0e": (-0.6,),
    "i1e": (-0.6,),
    "j0": (0.6,),
    "j1": (0.6,),
    "xlog1py": (0.7, 0.3),
    "rel_entr": (0.7, 0.3),
    "kl_div": (0.7, 0.3),
    "entr": (0.7,),
    "erfi": (0.4,),
    "ndtri_exp": (-0.6,),
    "spence": (0.4,),
    "owens_t": (0.4, 0.7),
    "ellipk": (0.3,),
    "ellipe": (0.3,),
    "ellipkm1": (0.3,),
    "poch": (0.7, 1.2),
    "binom": (3.2, 1.4),
    "k0": (0.6,),
    "k1": (0.6,),
    "k0e": (0.6,),
    "k1e": (0.6,),
    "exp10": (0.3,),
    "exprel": (0.3,),
    "cosm1": (0.3,),
    "sindg": (30.0,),
    "cosdg": (30.0,),
    "tandg": (30.0,),
    "boxcox": (0.7, 0.4),
    "boxcox1p": (0.7, 0.4),
    "inv_boxcox": (0.7, 0.4),
    "inv_boxcox1p": (0.7, 0.4),
    "powm1": (0.7, 1.4),
    "huber": (1.2, 0.4),
    "pseudo_huber": (1.2, 0.4),
    "y0": (0.6,),
    "y1": (0.6,),
    "expi": (0.6,),
    "exp1": (0.6,),
    "rgamma": (0.6,),
}


@pytest.mark.lengthy
@pytest.mark.parametrize("name", ALONE)
def test_functions_that_only_scipy_computes(name):
    """SciPy's bits, of numbers and of arrays; both modes, twice."""
    function, xs = getattr(special, name), ALONE[name]
    f = s2s.from_source(f"def f({', '.join('xy'[:len(xs)])}):\n"
                        f"    return special.{name}({', '.join('xy'[:len(xs)])}) * 1.5\n",
                        {"special": special})
    assert s2s.value_and_grad(f)(*xs)[0] == function(*xs) * 1.5
    s2s.check_grads(f, xs)
    arrays = tuple(np.array([x, 1.1 * x]) for x in xs)
    np.testing.assert_array_equal(s2s.vjp(f, *arrays)[0], function(*arrays) * 1.5)
    s2s.check_grads(lambda *xs: np.sum(f(*xs)), arrays)


def test_bessel_functions_at_zero():
    for f, slope in ((special.i1, 0.5), (special.j1, 0.5), (special.i0, 0.0), (special.i1e, 0.5)):
        assert s2s.grad(lambda x, f=f: f(x))(0.0) == slope


def test_limits_of_quotients():
    """At 0, and at 1, where a formula divides by 0."""
    for f, at, slope in (
        (special.ellipk, 0.0, np.pi / 8),
        (special.ellipe, 0.0, -np.pi / 8),
        (special.exprel, 0.0, 0.5),
        (special.spence, 1.0, -1.0),
        (special.ellipkm1, 1.0, -np.pi / 8),
    ):
        np.testing.assert_allclose(s2s.grad(lambda x, f=f: f(x))(at), slope, rtol=1e-14)
    assert s2s.grad(lambda p: special.boxcox(0.7, p))(0.0) == 0.5 * np.log(0.7) ** 2
    np.testing.assert_allclose(
        s2s.grad(lambda p: special.inv_boxcox(0.7, p))(0.0), -0.5 * 0.7**2 * np.exp(0.7), rtol=1e-14
    )


@pytest.mark.compile
@pytest.mark.parametrize("name", [*ALONE, "digamma"])
def test_native_code_has_scipys_bits(name):
    function, xs = getattr(special, name), ALONE.get(name, (0.4,))
    f = s2s.from_source(f"def f({', '.join('xy'[:len(xs)])}):\n"
                        f"    return special.{name}({', '.join('xy'[:len(xs)])}) * 1.5\n",
                        {"special": special})
    arrays = tuple(np.array([x, 1.1 * x, 0.2]) for x in xs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing of it runs in Python
        assert s2s.jit(f)(*xs) == function(*xs) * 1.5
        np.testing.assert_array_equal(s2s.jit(f)(*arrays), function(*arrays) * 1.5)
        single = tuple(x.astype(np.float32) for x in arrays)
        assert s2s.jit(f)(*single).dtype == np.float32
        np.testing.assert_allclose(s2s.jit(f)(*single), f(*single), rtol=3e-7)
        gradient = s2s.grad(lambda *xs: np.sum(f(*xs)))
        np.testing.assert_allclose(s2s.jit(gradient)(*arrays), gradient(*arrays), rtol=1e-13)


@pytest.mark.compile
@pytest.mark.parametrize("name", sorted(OF_ORDER))
def test_native_code_has_functions_of_an_order(name):
    function = getattr(special, name)
    first, other = {
        1: ((2,), (3 if name == "expn" else 0.5,)),
        2: ((2, 1.5), (0.5, 3)),
        3: ((2, 1.5, 2.5), (0.5, 3, 1.2)),
    }[OF_ORDER[name]]

    def f(x):
        return function(*first, x) * function(*other, x)

    x = (
        np.array([0.4, 1.2, 3.0])
        if OF_ORDER[name] == 1 and not name.endswith("inv")
        else np.array([0.2, 0.5, 0.9])
    )
    assert s2s.jit(f)(x[1]) == f(x[1])
    np.testing.assert_array_equal(s2s.jit(f)(x), f(x))
    assert s2s.jit(f)(x.astype(np.float32)).dtype == f(x.astype(np.float32)).dtype
    slope = s2s.grad(lambda x: np.sum(f(x)))
    np.testing.assert_allclose(s2s.jit(slope)(x), slope(x), rtol=1e-13)


@pytest.mark.compile
def test_beside_each_other_and_in_loops():
    def f(x, n):
        total = 0.0
        for k in range(n):
            total = total + np.sum(
                special.log_ndtr(x - k) + special.gammaln(x + k)
            ) * special.erfinv(0.1 * k)
        return total

    x = np.linspace(0.2, 3.0, 9)
    np.testing.assert_allclose(s2s.jit(s2s.grad(f))(x, 4), s2s.grad(f)(x, 4), rtol=1e-13)


def bessel(x):
    return special.i0(x)


@pytest.mark.compile
def test_what_only_scipy_computes_stays_here(tmp_path):
    with pytest.raises(s2s.UnsupportedError, match="(?s)special.i0.*scipy.special.i0 on a GPU\n"
                                                   "Instead: leave target"):
        lower(build(bessel, [Scalar("float64")]), "cuda")
    with pytest.raises(s2s.UnsupportedError, match="(?s)scipy.special.i0 in a compiled file\n"
                                                   "Instead: export what is not compiled"):
        s2s.jit(bessel).export(tmp_path / "f.py", 1.0)
