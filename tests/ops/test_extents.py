"""Every op on arrays whose extents are 0, 1, 2 or 5 in every position, as NumPy has it:
tests/extents.py.

Run by Python here, and compiled, with each access of memory checked; `tools/extents` asks for all
combinations."""

from __future__ import annotations

import numpy as np
import pytest
from extents import FORMS, MANNERS, MEMORY, Form, Judge, functions_named

import s2s  # noqa: F401, fills the tables
from s2s.ops.core.record import FUNCTIONS

NAMES = [f"{k} {each.text}" for k, each in enumerate(FORMS)]

# What is known to differ, by the text of the form: what every line says that tells of it, and why.
ACCEPTED, REFUSED, SHAPE = "and Python raises", ", and Python gives", "has shape"
KNOWN = {
    **dict.fromkeys(
        ["np.cov(x)", "np.corrcoef(x)"],
        (SHAPE, "NumPy's result has no axes where a run finds one row, and ranks are known before"),
    ),
    "np.take(x, i, axis=1)": (REFUSED, "whether an index is outside, where there are no rows"),
    "x[:, i]": (ACCEPTED, "whether an index is outside, where there are no rows"),
    # refused, or with a cotangent as long as the numbers
    "np.bincount(i, weights=x)": ("", "weights of nothing, of which NumPy does not ask how many"),
    "np.cross(x, y)": (REFUSED, "vectors of two numbers, which NumPy warns of"),
    "scipy.special.logsumexp(x, axis=0)": (REFUSED, "of no rows there is no largest"),
    "scipy.linalg.solve(x, y)": (REFUSED, "by a matrix of one number SciPy divides as many as "
                                          "there are"),
}

# Functions of arrays that no form has, and why.
ALIKE = {
    "elementwise, as np.sin and np.arctan2 are": """
        absolute add angle arccos arccosh arcsin arcsinh arctan arctanh around
        bitwise_and bitwise_or bitwise_xor bool cbrt ceil complex128 complex64 conjugate
        copysign cos cosh deg2rad degrees divide equal exp exp2 expm1 fabs float16
        float32 float64 floor floor_divide fmax fmin fmod greater greater_equal
        heaviside i0 imag int16 int32 int64 int8 invert isfinite isinf isnan left_shift
        less less_equal log log10 log1p log2 logaddexp2 logical_and logical_not
        logical_or logical_xor minimum multiply negative nextafter not_equal positive
        power rad2deg radians real reciprocal remainder right_shift rint round sign
        signbit sinc sinh spacing sqrt square subtract tan tanh trunc uint16 uint32
        uint64 uint8""",
    "a copy, or a question about the type": """
        array asanyarray asarray asarray_chkfinite ascontiguousarray copy iscomplexobj isrealobj
        ndim shape size""",
    "an array of a shape that the program gives": """
        arange diag_indices empty empty_like eye full full_like geomspace identity
        linspace logspace ones ones_like tri tril_indices triu_indices zeros zeros_like""",
    "made of one that is there": """
        allclose amax amin argpartition array_split atleast_1d atleast_3d dsplit dstack
        fliplr flipud hsplit intersect1d matmul matrix_transpose nancumprod nancumsum
        nanmin nanprod nanstd setdiff1d transpose union1d vsplit""",
    "decided by eigenvectors, of which there are many": """
        eig eigh eigvals svdvals""",
}


@pytest.mark.parametrize("k", range(len(FORMS)), ids=NAMES)
def test_run_by_python(k):
    """One manner for each form, in turn, and the plainest for all."""
    judge_all(
        FORMS[k],
        {"slices", MANNERS[k % len(MANNERS)]},
        compiled=False,
        most=8,
        ways=("value", "gradient", "vmap"),
    )


@pytest.mark.compile
@pytest.mark.sanitized
@pytest.mark.parametrize("k", range(0, len(FORMS), 12), ids=NAMES[::12])
def test_compiled(k, monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory")
    judge_all(FORMS[k], ["slices"], compiled=True, most=40, ways=("value", "gradient"))


@pytest.mark.compile
@pytest.mark.sanitized
@pytest.mark.slow
@pytest.mark.parametrize("k", range(len(FORMS)), ids=NAMES)
def test_all_compiled(k, monkeypatch):
    monkeypatch.setenv("S2S_CHECK", "memory")
    judge_all(
        FORMS[k],
        ["slices"],
        compiled=True,
        most=100,
        ways=("gradient" if FORMS[k].derivative else "value",),
    )
    if k % 4 == 0:
        judge_all(FORMS[k], ["slices"], compiled=True, most=40, ways=("vmap",))


def judge_all(form: Form, manners, **asked) -> None:
    most = asked.pop("most")
    wrong = [
        each for manner in sorted(manners) for each in Judge(form, manner, **asked).failures(most)
    ]
    said, why = KNOWN.get(form.text, (None, ""))
    if wrong and said is not None and all(said in each and MEMORY not in each for each in wrong):
        pytest.xfail(why)
    assert not wrong, "\n".join(wrong[:5])


def test_no_function_of_arrays_is_left_out():
    named = functions_named() | {name for texts in ALIKE.values() for name in texts.split()}
    numpys = {id(each) for module in (np, np.linalg) for each in vars(module).values()}
    functions = {f.__name__ for f in FUNCTIONS if id(f) in numpys}
    assert sorted(functions - named) == []
    assert sorted({name for texts in ALIKE.values() for name in texts.split()} - functions) == []
