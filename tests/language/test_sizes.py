"""Shapes that depend on data: what is masked, found, counted, cut out, grown; one piece of code for
all sizes.
"""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.array([0.5, -1.2, 2.0, -0.3, 1.5, 0.7, -2.2, 3.1])
M = np.arange(12.0).reshape(3, 4) / 5 - 1
T = np.arange(24.0).reshape(2, 3, 4) / 7 - 1.5
LABELS = np.array([2, 0, 1, 1, 2, 0, 2, 2])

# -------------------------------------------------------------------------------------------- masks


def outliers_left_out(x):
    """Clip twice at 1.2 standard deviations, then weigh what is left."""
    kept = x
    for _ in range(2):
        middle, width = np.mean(kept), np.std(kept)
        kept = kept[np.abs(kept - middle) < 1.2 * width]
    return np.mean(kept) ** 2 + np.var(kept) * len(kept)


def rectified(x):
    y = x**2
    y[x > 0.6] *= 3.0 * x[0]
    low = x < 0
    y[low] += x[1]
    y[low & (x > -2)] = np.exp(x[low & (x > -2)])
    return np.sum(y * x)


def rows_and_columns(x):
    rows = x[x[:, 1] > -0.5]
    columns = x[:, x[0] > -0.7]
    y = x * 2
    y[x[:, 0] < 0, 1:] *= x[2, 2]
    y[y > 0.4] = x[0, 0]
    return np.sum(rows**3) * columns.shape[1] + np.sum(columns**2) + np.sum(y * x)


def leading_axes(x):
    m = x[:, :, 0] > -0.5
    return np.sum(x[m] ** 3) + x[m].shape[0] * x[0, 0, 0]


def masks_in_loops(x):
    s = 0.0
    for t in np.linspace(-2, 2, 5):
        y = positive(x - t)
        if len(y) > 2:
            s += np.mean(y**2)
        elif y.size:
            s -= y[0]
    return s


def positive(v):
    return v[v > 0]


def one_of_two_masks(x):
    if np.sum(x) > 4:
        y = x[x > 0]
    else:
        y = x[:2]
    return np.sum(y**3) * len(y)


# ------------------------------------------------------------------------------------ found in data


def found(x):
    i = np.nonzero(x > 0)[0]
    j = np.flatnonzero(x < 0)
    (k,) = np.where(np.abs(x) > 1)
    return np.sum(x[i] ** 3 * x[x > 0]) + np.sum(x[j]) ** 2 + np.sum(x[k] * np.arange(len(k)))


def found_in_matrix(x):
    rows, columns = np.nonzero(x > 0)
    s = np.sum(x[rows, columns] ** 3)
    for i, j in np.argwhere(x < 0):
        s += x[i, j] ** 2 * x[2, 3]
    return s + np.sum(x[np.where(x > 0.5)])


def runs(x):
    """Sums between changes of sign."""
    positive = x > 0
    ends = np.concatenate(
        [np.array([0]), np.flatnonzero(positive[1:] != positive[:-1]) + 1, np.array([len(x)])]
    )
    total = 0.0
    for k in range(len(ends) - 1):
        total += np.sum(x[ends[k] : ends[k + 1]]) ** 2
    return total


def means_of_groups(x, labels):
    groups, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)
    sums = np.zeros(len(groups))
    np.add.at(sums, inverse, x)
    means = sums / counts
    return np.sum((x - means[inverse]) ** 2)


def one_group_after_the_other(x, labels):
    s = 0.0
    for k in np.unique(labels):
        s += np.prod(x[labels == k]) * k
    return s


def distinct(x):
    u, first, inverse, counts = np.unique(
        np.round(x * 2) * x, return_index=True, return_inverse=True, return_counts=True
    )
    return np.sum(u**3 * counts) + np.sum(x[first] * np.arange(len(first))) + np.sum(u[inverse] * x)


def in_sets(x, labels):
    rest = np.setdiff1d(np.arange(len(x)), labels)
    both = np.intersect1d(labels, np.array([1, 2, 9]))
    all_of_them = np.union1d(labels, np.array([5]))
    return (
        np.sum(x[rest] ** 2)
        + np.sum(x[both] ** 3) * len(all_of_them)
        + np.sum(x[np.isin(labels, both)])
    )


def weighted_histogram(x, labels):
    t = np.bincount(labels, weights=x * x, minlength=6)
    h, edges = np.histogram(labels, bins=3, range=(0, 3))
    g, _ = np.histogram(x, np.array([-3.0, -1.0, 0.5, 4.0]), weights=x**3)
    return np.sum(t**2) * len(t) + np.sum(h * edges[1:]) * x[0] + np.sum(g**2)


def looked_up(x):
    """Linear interpolation in a table."""
    grid = np.linspace(-3.0, 4.0, 15)
    table = np.sin(grid)
    s = 0.0
    for v in x:
        k = np.searchsorted(grid, v) - 1
        t = (v - grid[k]) / (grid[k + 1] - grid[k])
        s += (1 - t) * table[k] + t * table[k + 1]
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    return s * s + np.sum(weights[np.digitize(x, np.array([-1.0, 0.0, 1.0]))] * x**2)


# ------------------------------------------------------------------------------- cut out and put in


def left_out(x):
    """Lagrange weights: one of the points left out at a time."""
    s = 0.0
    for i in range(len(x)):
        s += x[i] / np.prod(x[i] - np.delete(x, i))
    return s


def taken_out(x):
    a = np.delete(x, 1, axis=0) ** 2
    b = np.delete(x[0], np.array([0, 2]))
    c = np.compress(x[0] > -0.7, x, axis=1)
    d = np.extract(x > 0, x)
    return np.sum(a) * b[0] + np.sum(b**2) + np.sum(c**3) + np.prod(d)


def put_in(x):
    k = np.argmax(x)
    y = np.insert(x, k, x[0] * x[1])
    z = np.insert(y, 1, x[:2] ** 2)
    return np.sum(z**2 * np.arange(len(z)))


def computed_bounds(x):
    n = int(np.sum(x > 0))
    k = np.argmax(x > 1.0)
    a, b = np.split(x, [k])
    return (
        np.sum(x[:n] ** 3) * np.sum(x[n:][::2])
        + np.sum(a**2) * np.sum(b**3)
        + np.sum(np.arange(n) * x[:n])
    )


def ragged_rows(x, starts):
    total = 0.0
    for k in range(len(starts) - 1):
        row = x[starts[k] : starts[k + 1]]
        total += np.prod(row) + np.max(row) * len(row)
    return total


def repeated(x, counts):
    n = np.count_nonzero(counts)
    y = np.repeat(x, counts) * np.arange(counts.sum())
    return (
        np.sum(y**2) + np.sum(np.tile(x, n) ** 3) + np.sum(np.repeat(x, n) * np.repeat(x[::-1], n))
    )


def allocated(x):
    y = np.zeros(int((x > 0).sum()))
    j = 0
    for i in range(len(x)):
        if x[i] > 0:
            y[j] = x[i] * x[i]
            j += 1
    return np.sum(y * y)


# ------------------------------------------------------------------------------------ grown, shrunk


def grown_by_append(x):
    y = x[:1]
    for i in range(1, len(x)):
        if x[i] > -1:
            y = np.append(y, x[i] * y[-1] + y[0])
    return np.sum(y)


def grown_from_nothing(x):
    y = np.array([])
    z = np.zeros(0)
    for v in x:
        y = np.append(y, v**2)
        z = np.concatenate([z, np.array([v, v * y[0]])])
    return np.sum(y**2 * np.arange(len(y))) + np.prod(z[:4])


def rows_added(x):
    y = x[:1]
    for i in range(1, x.shape[0]):
        y = np.vstack([y, x[i] * y[i - 1]])
    z = x[0]
    for row in x[1:]:
        z = np.hstack((z, row * z[0]))
    return np.sum(y**2) + np.sum(z**2)


def binomial(x):
    """A while loop that allocates: the coefficients of (1 + x)^n, until their sum is large."""
    y = np.ones(1)
    while np.sum(y) < 20.0:
        t = np.zeros(len(y) + 1)
        t[:-1] = y * x
        t[1:] += y
        y = t
    return np.sum(y**2)


def pyramid(x):
    s = 0.0
    while len(x) > 1:
        x = 0.5 * (x[1:] + x[:-1]) * x[0]
        s += np.sum(x)
    return s * x[0]


def tree_of_sums(x):
    while len(x) > 1:
        x = x[::2] * x[1::2] + x[::2]
    return x[0]


def sieve(x):
    s = 0.0
    for k in range(4):
        x = x[x > -1.0 + 0.5 * k]
        s += np.sum(x**2) / (len(x) + 1)
    return s


COUNTS = np.array([1, 0, 2, 3, 1, 1, 0, 2])
PROGRAMS = {
    "outliers_left_out": (outliers_left_out, X),
    "rectified": (rectified, X),
    "rows_and_columns": (rows_and_columns, M),
    "leading_axes": (leading_axes, T),
    "masks_in_loops": (masks_in_loops, X),
    "one_of_two_masks": (one_of_two_masks, X),
    "found": (found, X),
    "found_in_matrix": (found_in_matrix, M),
    "runs": (runs, X),
    "means_of_groups": (means_of_groups, X, LABELS),
    "one_group_after_the_other": (one_group_after_the_other, X, LABELS),
    "distinct": (distinct, X),
    "in_sets": (in_sets, X, LABELS),
    "weighted_histogram": (weighted_histogram, X, LABELS),
    "looked_up": (looked_up, X),
    "left_out": (left_out, X),
    "taken_out": (taken_out, M),
    "put_in": (put_in, X),
    "computed_bounds": (computed_bounds, X),
    "ragged_rows": (ragged_rows, X, np.array([0, 3, 5, 8])),
    "repeated": (repeated, X, COUNTS),
    "allocated": (allocated, X),
    "grown_by_append": (grown_by_append, X),
    "grown_from_nothing": (grown_from_nothing, X),
    "rows_added": (rows_added, M),
    "binomial": (binomial, 2.0),
    "pyramid": (pyramid, X),
    "tree_of_sums": (tree_of_sums, X),
    "sieve": (sieve, X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    f, *args = PROGRAMS[name]
    judge(f, *args)


@pytest.mark.compile
@pytest.mark.parametrize(
    "name",
    [
        "leading_axes",
        "found_in_matrix",
        "in_sets",
        "weighted_histogram",
        "left_out",
        "put_in",
        "repeated",
        "grown_by_append",
    ],
)
def test_compiled(name):
    f, *args = PROGRAMS[name]
    judge(f, *args, compiled=True, second=name in ("leading_axes", "grown_by_append"))


def test_one_derivative_for_all_sizes():
    """Neither lengths nor what a mask lets through is in the code."""
    t = s2s.value_and_grad(outliers_left_out)
    rng = np.random.default_rng(0)
    texts = set()
    for n in (5, 8, 30):
        t(rng.normal(size=n))
        texts.add(t.source)
    assert len(texts) == 1


def test_appending_saves_no_arrays():
    """What an array that grows is made of is saved, not the array in each trip."""

    def grown(x):
        y = x[:1]
        for i in range(1, len(x)):
            y = np.append(y, x[i] * y[-1])
        return np.sum(y)

    source = s2s.value_and_grad(grown).lower(X).source
    assert "y_tape" not in source
    assert "y = np.append(y, x[i] * y[-1])" in source
    assert "y_bar = y_bar[:-1]" in source


def test_the_user_s_own_words_are_printed():
    source = s2s.value_and_grad(found_in_matrix).lower(M).source
    assert "rows, columns = np.nonzero(x > 0)" in source
    source = s2s.value_and_grad(means_of_groups).lower(X, LABELS).source
    assert (
        "groups, inverse, counts = np.unique(labels, return_inverse=True, return_counts=True)"
        in source
    )
    assert "np.delete(x, i)" in s2s.grad(left_out).lower(X).source


# ---------------------------------------------------------------------------------------- mistakes


def written_through_mask(x, v):
    y = x * 1.0
    y[x > 0] = v
    return np.sum(y * y)


def counted(x, counts):
    return np.sum(np.repeat(x, counts) ** 2)


def deleted(x, i):
    return np.sum(np.delete(x, i) ** 2)


MISTAKES = [
    (written_through_mask, (X, np.ones(3)), ValueError),
    (written_through_mask, (X, np.ones(9)), ValueError),
    (counted, (X, -COUNTS), ValueError),
    (counted, (X, COUNTS[:3]), ValueError),
    (counted, (X, -1), ValueError),
    (deleted, (X, 8), IndexError),
    (deleted, (X, -9), IndexError),
]


@pytest.mark.parametrize("f, args, error", MISTAKES)
def test_mistakes_raise_as_in_numpy(f, args, error):
    with pytest.raises(error):
        f(*args)
    with pytest.raises(error):
        s2s.value_and_grad(f)(*args)


@pytest.mark.compile
@pytest.mark.parametrize("f, args, error", MISTAKES)
def test_mistakes_raise_compiled(f, args, error):
    with pytest.raises(error):
        s2s.jit(f)(*args)


def rank_by_nonzero(x):
    return np.sum(np.nonzero(x))


def partly_unique(x):
    return np.sum(np.unique(x, axis=0))


def sliced_out(x):
    return np.sum(np.delete(x, slice(1, 3)))


def auto_bins(x):
    h, edges = np.histogram(x, bins="auto")
    return np.sum(h * edges[1:])


def found_with_sorter(x):
    return x[np.searchsorted(x, 0.5, sorter=np.argsort(x))]


def one_sided(x):
    return np.sum(np.where(x > 0, x))


def counted_floats(x):
    return x[0] * np.sum(np.bincount(x))


REFUSED = [
    (rank_by_nonzero, 2.0, "np.nonzero of a number", "give it an array"),
    (partly_unique, M, "np.unique with axis= or equal_nan=False", "compare the rows in a loop"),
    (sliced_out, X, "np.delete of a slice", "put together what stays with np.concatenate"),
    (auto_bins, X, "np.histogram whose number of bins NumPy chooses", "say how many there are"),
    (found_with_sorter, X, "np.searchsorted with sorter=", "search in a[sorter]"),
    (one_sided, X, "np.where of two arguments", "say what both sides are, or neither"),
    (counted_floats, X, "np.bincount of float64", "count integers"),
]


@pytest.mark.parametrize("f, x, message, remedy", REFUSED)
def test_refused(f, x, message, remedy):
    with pytest.raises(s2s.S2SError) as refusal:
        s2s.grad(f)(x)
    text = str(refusal.value)
    assert message in text and remedy in text and "^" in text and "test_sizes.py" in text


def test_remedies():
    def rows(x):
        return np.sum(np.concatenate((x[:1], x[3:])) ** 2)

    def bins(x):
        h, edges = np.histogram(x, bins=4, range=(x.min(), x.max()))
        return np.sum(h * edges[1:]) + np.sum(x)

    def order(x):
        sorter = np.argsort(x)
        return x[sorter][np.searchsorted(x[sorter], 0.5)] ** 2

    for f in (rows, bins, order):
        judge(f, X)
