"""Derivatives of derivatives, in every combination: pairs, triples, fourth derivatives
(`tools/compose` runs them all).
"""

import compositions
import pytest
from compositions import PAIRS, PROGRAMS, TRIPLES, check

import s2s


def cases(combinations, start, step):
    """Every `step`th of the combinations, each with another program."""
    return [
        pytest.param(
            PROGRAMS[k % len(PROGRAMS)],
            names,
            id=f"{'-'.join(names)}-{PROGRAMS[k % len(PROGRAMS)].__name__}",
        )
        for k, names in enumerate(combinations)
        if k % step == start and names[0] != "jit"
    ]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_oracle_and_s2s_agree_on_first_and_second_derivatives(f):
    check(f, ("grad",))
    check(f, ("jvp", "grad"))


@pytest.mark.parametrize("f, names", cases(PAIRS, 1, 4))
def test_pairs(f, names):
    check(f, names, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("f, names", cases(PAIRS, 0, 1))
def test_all_pairs(f, names):
    check(f, names, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("f, names", cases(TRIPLES, 5, 8))
def test_triples(f, names):
    check(f, names, seed=3)


FOURTH = [
    ("grad",) * 4,
    ("jvp",) * 4,
    ("hessian", "hessian"),
    ("vjp", "jvp", "grad", "jvp"),
    ("jacfwd", "jacrev", "jacfwd", "jacrev"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "f, names",
    [
        pytest.param(
            f,
            FOURTH[(k + n) % len(FOURTH)],
            id=f"{f.__name__}-{'-'.join(FOURTH[(k + n) % len(FOURTH)])}",
        )
        for k, f in enumerate(PROGRAMS[:10:3] + PROGRAMS[10::2])
        for n in (0, 1, 3)
    ],
)
def test_fourth_derivatives(f, names):
    check(f, names, seed=4)


DEEPEST = [
    (compositions.parameters, ("hessian", "hessian", "jacfwd")),
    (compositions.through_a_view, ("hessian", "grad", "hessian")),
    (compositions.skipping, ("jacrev", "hessian", "hessian")),
    (compositions.horner, ("hessian", "hessian", "hessian")),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "f, names", DEEPEST, ids=[f"{f.__name__}-{'-'.join(names)}" for f, names in DEEPEST]
)
def test_fifth_and_sixth_derivatives(f, names):
    check(f, names, seed=19)


@pytest.mark.compile
@pytest.mark.parametrize(
    "k, inner",
    list(
        enumerate(
            [
                ("grad",),
                ("jvp", "grad"),
                ("hessian",),
                ("jacrev",),
                ("vjp", "checkpoint"),
                ("grad", "custom_vjp"),
                ("grad", "grad"),
                ("jacfwd", "jacrev"),
            ]
        )
    ),
    ids=str,
)
def test_compiled(k, inner):
    """The compiled function is the outermost: a transformation of compiled code is that of the
    function inside.
    """
    f = PROGRAMS[(3 * k + 2) % len(PROGRAMS)]
    check(f, ("jit", *inner), seed=5)


def test_the_oracle_notices_a_wrong_derivative(monkeypatch):
    monkeypatch.setitem(
        compositions.TRANSFORMATIONS,
        "jvp",
        (lambda f, d: lambda x: 1.0001 * s2s.jvp(f, (x,), (d,))[1], 1),
    )
    with pytest.raises(AssertionError, match="jvp of grad of horner"):
        check(compositions.horner, ("jvp", "grad"))
