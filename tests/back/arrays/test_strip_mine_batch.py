"""Patches of large batches and their products are computed in strips of the batch, and come to the
same.
"""

import numpy as np
import optree
import pytest
from split import modules

import s2s
from s2s.back.arrays import strip_mine_batch


@pytest.fixture(autouse=True)
def short_strips(monkeypatch):
    """Strips of one or two members, so that few members are several strips."""
    monkeypatch.setattr(strip_mine_batch, "TARGET", 1 << 12)
    monkeypatch.setattr(strip_mine_batch, "FEW", 0)


def convolved(x, W, b, stride=1):
    k, _, c, o = W.shape
    rows = np.arange(0, x.shape[1] - k + 1, stride)[:, None] + np.arange(k)
    columns = np.arange(0, x.shape[2] - k + 1, stride)[:, None] + np.arange(k)
    patches = x[:, rows[:, None, :, None], columns[None, :, None, :]]
    y = patches.reshape(-1, k * k * c) @ W.reshape(k * k * c, o) + b
    return y.reshape(len(x), len(rows), len(columns), o)


def classified(W, b, V, c, x, labels):
    h = np.tanh(convolved(x, W, b, 2))
    scores = np.mean(convolved(h, V, c), axis=(1, 2))
    scores = scores - np.max(scores, axis=1, keepdims=True)
    return -np.sum(labels * (scores - np.log(np.sum(np.exp(scores), axis=1, keepdims=True)))) / len(
        x
    )


def padded(W, b, x, y):
    h = np.tanh(convolved(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), W, b))
    return np.sum((np.mean(h, axis=(1, 2)) - y) ** 2)


def framed(W, b, x, y):
    n, height, width, c = x.shape
    inside = np.zeros((n, height + 2, width + 2, c))
    inside[:, 1:-1, 1:-1] = x
    return np.sum((np.mean(np.tanh(convolved(inside, W, b)), axis=(1, 2)) - y) ** 2)


def pooled(W, b, x, y):
    h = np.maximum(convolved(x, W, b), 0.0)
    n, height, width, o = h.shape
    h = (
        h[:, : height // 2 * 2, : width // 2 * 2]
        .reshape(n, height // 2, 2, width // 2, 2, o)
        .max(axis=(2, 4))
    )
    return np.sum((np.mean(h, axis=(1, 2)) - y) ** 2)


def along_a_line(W, b, x, y):
    k, c, o = W.shape
    windows = np.arange(x.shape[1] - k + 1)[:, None] + np.arange(k)
    h = x[:, windows].reshape(len(x) * len(windows), k * c) @ W.reshape(k * c, o) + b
    return np.sum((np.sin(h).reshape(len(x), len(windows), o).sum(axis=1) - y) ** 2)


def contracted(W, b, x, y):
    k = len(W)
    rows = np.arange(x.shape[1] - k + 1)[:, None] + np.arange(k)
    patches = x[:, rows[:, None, :, None], rows[None, :, None, :]]
    return np.sum((np.mean(np.tanh(np.tensordot(patches, W, axes=3) + b), axis=(1, 2)) - y) ** 2)


def weighted(W, b, V, x, y, weights):
    h = np.tanh(convolved(x, W, b, 2)).reshape(len(x), -1)
    return np.sum(weights * np.sum((h @ V - y) ** 2, axis=1)) / np.sum(weights)


def as_many_columns(W, b, x, y):
    """Arrays with a row and a column for each member: only rows belong to members."""
    n = len(x)
    h = np.mean(np.tanh(convolved(x, W, b)), axis=(1, 2))
    table = np.zeros((n, n))
    table[:, :] += h[:, :1]
    return np.sum(np.sin(table) * y[0, 0]) + np.sum(np.reshape(h @ np.ones((2, n)), (n, n)) ** 2)


def one_by_one(W, b, x, y):
    """For one image, and then for many."""
    def one(image, target):
        rows = np.arange(image.shape[0] - 2)[:, None] + np.arange(3)
        patches = image[rows[:, None, :, None], rows[None, :, None, :]]
        return np.sum(
            (np.mean(np.tanh(patches.reshape(-1, 18) @ W.reshape(18, -1) + b), axis=0) - target)
            ** 2
        )

    return np.mean(s2s.vmap(one)(x, y))


def read_in_a_loop(W, b, V, c, x, labels):
    """Loops and branches after the strips read what they have made, and one before them what they
    take.
    """
    decayed = 0.0
    for i in range(len(labels)):
        decayed = 0.5 * decayed + labels[i, 0]
    scores = np.mean(convolved(np.tanh(convolved(x, W, b, 2)), V, c), axis=(1, 2))
    total, sums = 0.0, np.sum(scores, axis=0)
    for i in range(len(scores)):
        total += scores[i] @ labels[i] + sums[i % 3]
    if total > decayed:
        total += np.sum(scores[0])
    return total * decayed


def features(W, b, V, c, x, labels):
    h = np.maximum(convolved(x, W, b, 2), 0.0)
    return convolved(h, V, c).sum(axis=(1, 2)), np.sum(h**2)


def wave(*shape):
    return np.sin(1.7 * np.arange(np.prod(shape, dtype=int)) ** 1.1).reshape(shape)


def images(n):
    return wave(n, 7, 7, 2)


def network(n):
    return (
        wave(3, 3, 2, 2),
        wave(2),
        wave(2, 2, 2, 3),
        wave(3),
        images(n),
        np.eye(3)[np.arange(n) % 3],
    )


def layer(n):
    return wave(3, 3, 2, 2), wave(2), images(n), wave(n, 2)


CASES = {
    "every parameter": (classified, (0, 1, 2, 3), network),
    "the batch too": (classified, (0, 4), network),
    "padded": (padded, (0, 1), layer),
    "framed": (framed, (0, 2), layer),
    "pooled": (pooled, (0, 1), layer),
    "a line": (
        along_a_line,
        (0, 1, 2),
        lambda n: (wave(3, 2, 3), wave(3), wave(n, 8, 2), wave(n, 3)),
    ),
    "tensordot": (contracted, (0, 1), layer),
    "as many columns": (as_many_columns, (0, 1), layer),
    "vmap": (one_by_one, (0, 1), layer),
    "weights": (
        weighted,
        (0, 1, 2, 5),
        lambda n: (wave(3, 3, 2, 2), wave(2), wave(18, 2), images(n), wave(n, 2), wave(n) + 2),
    ),
}


def agree(found, expected):
    for a, b in zip(optree.tree_leaves(found), optree.tree_leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def loops_of(transformed, args):
    """The loop form as text and as a function that Python runs."""
    text, space = transformed.lower(*args).loops, {}
    exec(text, space)
    return text, next(
        x
        for name, x in reversed(space.items())
        if callable(x) and name.startswith(transformed.__name__)
    )


@pytest.mark.lengthy
def test_what_a_loop_reads_leaves_the_strips():
    text, run = loops_of(s2s.jit(read_in_a_loop), network(9))
    assert "for s in range(" in text
    for n in (1, 2, 5):
        agree(run(*network(n)), read_in_a_loop(*network(n)))
    gradient = s2s.value_and_grad(read_in_a_loop, argnums=(0, 2, 4))
    value, gradients = gradient(*network(5))
    agree(loops_of(gradient, network(3))[1](*network(5)), (value, *gradients))


@pytest.mark.parametrize("name", CASES)
def test_strips_come_to_the_same(name):
    f, argnums, arguments = CASES[name]
    gradient = s2s.value_and_grad(f, argnums=argnums)
    text, run = loops_of(gradient, arguments(3))
    assert "for s in range(" in text
    for n in (2, 5):
        value, gradients = gradient(*arguments(n))
        agree(run(*arguments(n)), (value, *gradients))


def test_what_leaves_the_loop_is_put_together():
    text, run = loops_of(s2s.jit(features), network(9))
    assert "for s in range(" in text
    for n in (0, 2, 7, 12):
        agree(run(*network(n)), features(*network(n)))


@pytest.mark.lengthy
def test_one_strip_where_the_batch_fits(monkeypatch):
    counted = []

    def counting(*args):
        counted.append(range(*args))
        return counted[-1]

    for target, strips in ((1 << 12, 5), (1 << 30, 1)):
        monkeypatch.setattr(strip_mine_batch, "TARGET", target)
        text, space = s2s.value_and_grad(classified).lower(*network(5)).loops, {"range": counting}
        exec(text, space)
        counted.clear()
        space["classified_value_and_grad"](*network(5))
        assert (
            len(
                next(
                    r
                    for line in text.splitlines()
                    if "for s in range" in line
                    for r in counted
                    if len(r) == strips
                )
            )
            == strips
        )


def test_rows_of_several_members_are_not_cut():
    def f(K, x):
        # of each member 4 numbers, in rows of 3
        patches = x[:, np.arange(2)[:, None] + np.arange(2)]
        return np.sum(np.tanh(patches.reshape(-1, len(K)) @ K) ** 2)

    gradient = s2s.value_and_grad(f)
    text, run = loops_of(gradient, (wave(3, 2), wave(9, 3)))
    assert "whole_rows" in text
    for n in (3, 9):
        agree(run(wave(3, 2), wave(n, 3)), gradient(wave(3, 2), wave(n, 3)))


def test_numbers_in_single_precision_add_up_as_others_do():
    def f(K, x):
        return np.sum(x[:, np.arange(2)[:, None] + np.arange(2)].reshape(-1, len(K)) @ K)

    K, x = np.full((2, 1), 0.1, np.float32), np.ones((3000, 3), np.float32)
    text, run = loops_of(s2s.jit(f), (K, x))
    assert "for s in range(" in text
    np.testing.assert_allclose(run(K, x), 3000 * 4 * np.float64(np.float32(0.1)), rtol=2e-7)


def normalised(W, b, x, y):
    h = convolved(x, W, b)
    h = (h - np.mean(h, axis=(0, 1, 2))) / np.sqrt(np.var(h, axis=(0, 1, 2)) + 1e-3)
    return np.sum((np.mean(np.tanh(h), axis=(1, 2)) - y) ** 2)


def neighbours(W, b, x, y):
    """Members meet: each is added to the next."""
    h = np.tanh(convolved(x, W, b))
    return np.sum((np.mean(h + h[::-1], axis=(1, 2)) - y) ** 2)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [normalised, neighbours])
def test_members_that_need_one_another_stay_in_one_piece(f):
    gradient = s2s.value_and_grad(f)
    text, run = loops_of(gradient, layer(3))
    assert "for s in range(" not in text
    agree(run(*layer(4)), gradient(*layer(4)))


def test_products_without_patches_stay_one_product():
    def mlp(W, V, x, y):
        return np.sum((np.tanh(x @ W) @ V - y) ** 2)

    assert (
        "for s in range("
        not in s2s.grad(mlp, argnums=(0, 1))
        .lower(wave(3, 4), wave(4, 2), wave(9, 3), wave(9, 2))
        .loops
    )


def test_batches_of_different_lengths_are_refused():
    args = (*network(4)[:5], network(3)[5])
    text, run = loops_of(s2s.value_and_grad(classified), network(3))
    with pytest.raises(ValueError):
        run(*args)


@pytest.mark.compile
def test_compiled_strips():
    f = s2s.value_and_grad(classified, argnums=(0, 1, 2, 3, 4))
    for options in ({}, {"parallel": True}):
        compiled = s2s.jit(f, **options)
        for args in (
            network(2),
            network(9),
            (*network(9)[:4], np.asfortranarray(images(9)), network(9)[5]),
            (*network(9)[:4], images(18)[::-2], network(9)[5]),
        ):
            agree(compiled(*args), f(*args))


@pytest.mark.compile
def test_compiled_second_derivatives():
    def along(W, b, V, c, x, labels, v):
        return s2s.jvp(s2s.grad(lambda W: classified(W, b, V, c, x, labels)), (W,), (v,))[1]

    args = (*network(5), wave(3, 3, 2, 2))
    agree(s2s.jit(along)(*args), along(*args))


@pytest.mark.parametrize("name", ["pooled", "tensordot"])
def test_threads_share_strips_whose_lengths_are_checked(name):
    """A check that nothing but raises keeps no trip from running out of order."""
    f, argnums, arguments = CASES[name]
    text = modules(s2s.jit(s2s.value_and_grad(f, argnums=argnums)), *arguments(3))[1].text
    assert text.count("in_parts(") == 1


def test_strips_of_whole_rows():
    """Six members in rows of three may be taken four at a time only if no row is cut."""
    assert strip_mine_batch.whole_rows(4, 100, own=6, row=3) == 4
    assert (
        strip_mine_batch.whole_rows(4, 100, own=7, row=3)
        == strip_mine_batch.whole_rows(4, 100, own=6, row=0)
        == 100
    )
    assert strip_mine_batch.whole_rows(4, 0, own=7, row=3) == 1
