"""vmap of vmap against loops over lanes: indexed reads and writes, whatever of array, value and
index is batched, and where.
"""

import itertools

import numpy as np
import pytest

import s2s

rng = np.random.default_rng(11)
SHAPES = {
    "a": (3, 4),
    "t": (2, 3, 4),
    "v": (4,),
    "w": (3,),
    "s": (),
    "i": (),
    "k": (2,),
    "rows": (3,),
    "mask": (3, 4),
}
LANES = (2, 3)


def made(name, flags):
    shape = *(n for n, flag in zip(LANES, flags) if flag), *SHAPES[name]
    if name in ("rows", "mask"):
        return rng.random(shape) > 0.5
    x = rng.integers(0, 3, shape) if name in "ik" else rng.normal(size=shape)
    return x if shape else x.item() if isinstance(x, np.ndarray) else x


def one_by_one(f, flags, args):
    """What the nested vmaps of f mean; `flags[level][argument]`, the outermost level first."""
    if not flags:
        return f(*args)
    count = next(len(x) for x, flag in zip(args, flags[0]) if flag)
    return np.stack(
        [
            one_by_one(f, flags[1:], [x[lane] if flag else x for x, flag in zip(args, flags[0])])
            for lane in range(count)
        ]
    )


def check(f, names, flags, through=lambda t: t):
    args = [made(name, [level[k] for level in flags]) for k, name in enumerate(names)]
    batched = f
    for level in reversed(flags):
        batched = s2s.vmap(batched, tuple(0 if flag else None for flag in level))
    np.testing.assert_allclose(
        through(batched)(*args),
        one_by_one(f, flags, args),
        rtol=1e-12,
        atol=1e-14,
        err_msg=str(flags),
    )


def written(index):
    """x[index] = v, of the arguments (x, v, *rest of the index)."""
    def f(x, v, *rest):
        x = x.copy()
        x[index(*rest)] = v
        return x
    return f


READ = [
    (lambda t, i: t[:, 1:, i], "ti"),
    (lambda t, i: t[i % 2, :, 1:], "ti"),
    (lambda t, k: t[:, k], "tk"),
    (lambda t, k: t[..., k], "tk"),
    (lambda t, k: t[:, k, 1:], "tk"),
    (lambda t, k: t[k % 2, :, k], "tk"),
    (lambda t, i, k: t[i % 2][k, 1:], "tik"),
    (lambda t, i, k: t[:, i, None, k], "tik"),
    (lambda t, i, k: t[i % 2, :, k], "tik"),
    (lambda t, k: t[:, k[:, None], k], "tk"),
    (lambda a, i: a[[0, 2], i], "ai"),
    (lambda t, i: t[[0, 1], :, i], "ti"),
    (lambda a: np.diagonal(a), "a"),
    (lambda a: np.diag(a, -1), "a"),
    (lambda v, i: np.sum(v[i:]), "vi"),
    (lambda v, i: np.prod(v[: i + 1]), "vi"),
    (lambda a, i: np.sum(a[i:, :i]), "ai"),
    (lambda a, i: np.sum(a[:, i] * a[0, :3]), "ai"),
]


@pytest.mark.parametrize("f, names", READ, ids=[f"{k}-{n}" for k, (_, n) in enumerate(READ)])
def test_parts_that_are_read(f, names):
    levels = [level for level in itertools.product((True, False), repeat=len(names)) if any(level)]
    for flags in list(itertools.product(levels, repeat=2))[::1 if len(names) < 3 else 5]:
        check(f, names, flags)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, names",
    [
        (lambda a, rows: np.sum(a[rows]), ("a", "rows")),
        (lambda a, mask: np.sum(a[mask]), ("a", "mask")),
        (lambda a, rows: np.sum(a[rows, 1:]), ("a", "rows")),
    ],
    ids=["rows", "elements", "parts of rows"],
)
def test_masks_of_each_lane(f, names):
    levels = [(True, True), (True, False), (False, True)]
    for flags in itertools.product(levels, repeat=2):
        check(f, names, flags)


def from_there(x, v, i):
    x = x.copy()
    x[i:, 0] = v
    return x


def up_to_there(x, v, i):
    x = x.copy()
    x[:i] = v
    return x


WRITTEN = [
    (written(lambda: 0), "av"),
    (written(lambda: (slice(None), 1)), "aw"),
    (written(lambda: (slice(None), slice(1, 3))), "as"),
    (written(lambda i: i), "avi"),
    (written(lambda i: (slice(None), i)), "awi"),
    (written(lambda k: (slice(None), k)), "ask"),
    (written(lambda k: (slice(None), k)), "tvk"),
    (written(lambda k: (slice(None), slice(None), k)), "tsk"),
    (written(lambda k: (slice(None), [0, 2], k)), "tsk"),
    (from_there, "asi"),
    (up_to_there, "avi"),
    (written(lambda i: ([0, 1], slice(None), i)), "twi"),
]


@pytest.mark.parametrize("f, names", WRITTEN, ids=[f"{k}-{n}" for k, (_, n) in enumerate(WRITTEN)])
def test_parts_that_are_written(f, names):
    levels = [level for level in itertools.product((True, False), repeat=len(names)) if any(level)]
    for flags in list(itertools.product(levels, repeat=2))[::2 if len(names) < 3 else 7]:
        check(f, names, flags)


def columns(t, a, k):
    t = t.copy()
    t[:, :, k] = a[:, :2]
    t[:, k, :2] += a[:2, None, 1:3]
    return t


@pytest.mark.parametrize("f, names", [(columns, "tak")])
def test_values_that_have_the_axes_of_the_index(f, names):
    for flags in [
        ((1, 0, 0), (0, 1, 1)),
        ((0, 0, 1), (1, 1, 0)),
        ((0, 1, 0), (0, 0, 1)),
        ((1, 1, 1), (0, 0, 1)),
        ((0, 0, 1), (0, 1, 0)),
    ]:
        check(f, names, flags)


def row_or_column(a, s, v, w):
    a = a.copy()
    if s > 0.0:
        a[0] = v
    else:
        a[:, 0] = w
    return a


def test_branches_that_make_of_one_batched_argument_or_another():
    levels = [level for level in itertools.product((True, False), repeat=4) if any(level)]
    for flags in [*itertools.product(levels, repeat=2)][::17]:
        check(row_or_column, "asvw", flags)


def test_lanes_of_arguments_are_as_many_though_their_types_do_not_say():
    def f(s, a, b):
        if s > 0.0:
            y = a * 2.0
        else:
            y = b + s
        return y

    t = s2s.vmap(s2s.vmap(f, (None, 0, 0)), (0, None, None))
    np.testing.assert_array_equal(
        t(np.array([1.0, -1.0]), np.arange(3.0), np.full(3, 5.0)),
        [[0.0, 2.0, 4.0], [4.0, 4.0, 4.0]],
    )
    assert "t = " not in t.source
    with pytest.raises(s2s.errors.ShapeMismatchError, match="equally many lanes"):
        t(np.array([1.0]), np.arange(3.0), np.ones(4))


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, names, flags",
    [
        (lambda t, k: t[:, k, 1:], "tk", ((1, 0), (0, 1))),
        (lambda v, i: np.sum(v[i:] ** 2), "vi", ((1, 0), (1, 1))),
        (columns, "tak", ((0, 0, 1), (1, 1, 0))),
        (row_or_column, "asvw", ((0, 1, 0, 0), (0, 0, 1, 1))),
        (lambda a, rows: np.sum(a[rows]), ("a", "rows"), ((0, 1), (1, 0))),
        (lambda a: np.diagonal(a, 1), "a", ((1,), (1,))),
    ],
    ids=["apart", "slices", "values", "branches", "masks", "diagonals"],
)
def test_compiled(f, names, flags):
    check(f, names, flags, s2s.jit)


def test_lanes_of_a_function_that_is_called():
    """Which function a call in the text means, its arguments' types say: where one is known to have
    the lanes of another, too.
    """
    def chosen(p, x):
        return s2s.cond(p, lambda y: y * 2, lambda y: y * y, x)

    def outer(p, x):
        return chosen(p, x)

    for f in (outer, s2s.grad(outer, argnums=1)):
        found = s2s.vmap(f)(np.array([True, False]), np.array([3.0, 4.0]))
        np.testing.assert_array_equal(found, [f(True, 3.0), f(False, 4.0)])
