"""Products of matrices and einsum as loops and as products that are BLAS's."""

import numpy as np
import pytest

import s2s
from s2s.back.loop_pipeline import lower
from s2s.ir.interpret import interpret

from ..loops.test_scalar_replace import loops_of
from ..test_lowering import call, check, count, program

LENGTHS = dict(zip("abdehijklnst", (2, 3, 4, 5, 2, 3, 4, 5, 3, 6, 4, 7)))
RNG = np.random.default_rng(0)


def operands(subscripts: str, lengths=LENGTHS, dtype=np.float64) -> list[np.ndarray]:
    given = [
        RNG.normal(size=[lengths[name] for name in names])
        for names in subscripts.split("->")[0].split(",")
    ]
    return [(x + 1j * x[::-1] if dtype is np.complex128 else x).astype(dtype) for x in given]


BY_BLAS = {
    "ij,jk->ik": 1,
    "ij,jk->ki": 1,
    "ij,jk": 1,
    "ij,kj->ik": 1,
    "ji,jk->ik": 1,
    "ij,j->i": 1,
    "i,ij->j": 1,
    "ni,ij,nj->n": 1,
    "ij,jk,ki->": 1,
    "ij,j,jk->ik": 1,
    "ij,kj,k->i": 2,
    "td,hde->hte": 1,
    "hte,hed->td": 1,
    "ijk,k->ij": 1,
    "ijk,kj->i": 1,
    "nij,ij->n": 1,
    "nij,n->ij": 1,
}
IN_LOOPS = [
    "i,i->",
    "i,j->ij",
    "i,j->ji",
    "ij,ij->ij",
    "ij,ij->i",
    "ij,ji->",
    "ij->j",
    "ij->",
    "ij->ji",
    "nij,nj->ni",
    "nij,njk->nik",
    "nij,nkj->nik",
    "nji,njk->nik",
    "nki,nkj->nij",
    "hte,hse->hts",
    "hts,hse->hte",
    "nij,nij->ij",
    "ij,kl->ikjl",
    "i,i,i->i",
    "i,i,i->",
    "in,jn->ijn",
    "ijn,n->ijn",
    "ij,k->",
    "ijk->ki",
    "ni,nj,n->nij",
]


@pytest.mark.parametrize("subscripts", [*BY_BLAS, *IN_LOOPS])
def test_einsum_is_loops_and_products(subscripts):
    lowered = check(lambda *xs: call(np.einsum, subscripts, *xs), *operands(subscripts), rtol=1e-12)
    assert count(lowered, "matmul") == BY_BLAS.get(subscripts, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_einsum_of_other_floats(dtype):
    for subscripts in ("ij,jk->ki", "nij,nj->ni", "ij->j"):
        check(
            lambda *xs, s=subscripts: call(np.einsum, s, *xs),
            *operands(subscripts, dtype=dtype),
            rtol=1e-5 if dtype is np.float32 else 1e-12,
        )
    a, b = operands("ij,jk")
    check(lambda x, y: call(np.einsum, "ij,jk", x, y), a.astype(np.float32), b)


@pytest.mark.parametrize("name", "nijk")
@pytest.mark.parametrize("length", [0, 1])
def test_einsum_of_short_and_empty_axes(name, length):
    for subscripts in ("nij,njk->nik", "nij,jk->kin", "nij,jk->n"):
        check(
            lambda *xs, s=subscripts: call(np.einsum, s, *xs),
            *operands(subscripts, {**LENGTHS, name: length}),
            rtol=1e-12,
        )


def test_einsum_spreads_axes_of_length_1():
    for subscripts in ("nij,njk->nik", "nij,nj->n", "ni,ni->ni", "nij,nij->nij"):
        given = operands(subscripts)
        for k in range(given[1].ndim):
            narrow = given[1].take([0], axis=k)
            check(lambda *xs, s=subscripts: call(np.einsum, s, *xs), given[0], narrow, rtol=1e-12)
            check(
                lambda *xs, s=subscripts: call(np.einsum, s, *xs),
                given[0].take([0], axis=0),
                narrow,
                rtol=1e-12,
            )


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "nij,nj->ni", "i,i->", "ij,ij->ij", "nij,ij->n"]
)
def test_lengths_that_differ_are_an_error(subscripts):
    first, second = operands(subscripts)
    function = program(lambda x, y: call(np.einsum, subscripts, x, y), first, second)
    with pytest.raises(ValueError):
        interpret(lower(function), first, np.concatenate([second, second]))


def test_what_adjoints_of_one_einsum_begin_with_is_computed_once():
    def loss(g, a, b, c):
        return np.sum(np.einsum("abc,ia,jb,kc->ijk", g, a, b, c) ** 2)

    args = [RNG.normal(size=shape) for shape in ((3, 4, 5), (9, 3), (10, 4), (11, 5))]
    fast = s2s.jit(s2s.grad(loss, argnums=(0, 1, 2, 3)))
    # 3 forwards, and of 12 for the adjoints, as each would be by itself, 9
    assert fast.lower(*args).loops.count(" @ ") == 12
    for found, expected in zip(
        loops_of(fast, *args)[0](*args), s2s.grad(loss, argnums=(0, 1, 2, 3))(*args), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_einsum_transposes_is_written_into_alone():
    def f(x):
        y = np.einsum("ij->ji", x * 2.0)
        y[0] = 0.0
        z = np.einsum("ij->ji", x)
        return np.sum(y * z) + np.sum(x * x)

    x = RNG.normal(size=(3, 2))
    text = s2s.jit(s2s.grad(f)).lower(x).loops
    names: dict = {}
    exec(text, names)
    np.testing.assert_allclose(names["f_grad"](x), np.where([True, False], 2 * x, 6 * x))


def of_stacks(a, b):
    return a @ b


@pytest.mark.parametrize(
    "left, right",
    [
        ((4, 9, 5), (4, 5, 7)),
        ((4, 9, 5), (1, 5, 7)),
        ((1, 9, 5), (4, 5, 7)),
        ((9, 5), (4, 5, 7)),
        ((3, 1, 9, 5), (4, 5, 7)),
        ((3, 4, 9, 5), (3, 4, 5, 7)),
        ((2, 9, 5), (3, 2, 5, 1)),
        ((0, 9, 5), (0, 5, 7)),
        ((4, 9, 0), (4, 0, 7)),
        ((4, 0, 5), (4, 5, 7)),
        ((1, 1, 9, 5), (1, 5, 7)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_stacks_are_products_in_a_loop(left, right, dtype):
    a, b = (RNG.normal(size=shape).astype(dtype) for shape in (left, right))
    for x, y in (
        (a, b),
        (
            np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
            np.swapaxes(np.ascontiguousarray(np.swapaxes(b, -1, -2)), -1, -2),
        ),
    ):
        loops = s2s.jit(of_stacks).lower(x, y).loops
        assert "@" in loops or 1 in left[:-2] + right[:-2]
        module: dict = {}
        exec(loops, module)
        np.testing.assert_allclose(module["of_stacks"](x, y), x @ y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("right", [(3, 5, 7), (4, 6, 7), (2, 4, 5, 7)])
def test_stacks_that_do_not_match_are_an_error(right):
    a, b = RNG.normal(size=(4, 9, 5) if len(right) == 3 else (3, 4, 9, 5)), RNG.normal(size=right)
    module: dict = {}
    exec(s2s.jit(of_stacks).lower(a, b).loops, module)
    with pytest.raises(ValueError):
        module["of_stacks"](a, b)


def attended(q, k, v):
    s = q @ k.transpose(0, 2, 1)
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return np.sum((e / np.sum(e, axis=-1, keepdims=True) @ v) ** 2)


@pytest.mark.compile
def test_the_gradient_of_attention_is_products():
    q, k, v = (RNG.normal(size=shape) for shape in ((3, 12, 5), (3, 10, 5), (3, 10, 6)))
    gradient = s2s.grad(attended, argnums=(0, 1, 2))
    compiled = s2s.jit(gradient)
    assert compiled.lower(q, k, v).loops.count("] @ ") == 6
    for a, b in zip(compiled(q, k, v), gradient(q, k, v)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_kernels_have_a_stack_of_products_in_one_nest():
    """A kernel cannot call BLAS, and what starts kernels would have to for each matrix."""
    a, b = RNG.normal(size=(4, 9, 5)), RNG.normal(size=(4, 5, 7))
    made = program(lambda a, b: a @ b, a, b)
    assert count(lower(made), "matmul") == 1 and count(lower(made, "cuda"), "matmul") == 0
