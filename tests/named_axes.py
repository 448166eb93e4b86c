"""Programs with collectives, for one lane each; `PROGRAMS` says with which arguments to run them.

Three tests share them, with other modules as `np` and `lax`: s2s, JAX (tests/peers), and threads
that meet (tests/lanes_in_threads.py).
"""

import numpy as np

from s2s import lax

PROGRAMS: dict = {}
N, M = 3, 4
ROWS = np.linspace(0.3, 1.9, N * M).reshape(N, M) ** 1.5
SQUARE, CUBE = np.sin(np.arange(9.0)).reshape(3, 3), np.cos(np.arange(36.0)).reshape(3, 3, 2, 2)
WIDE = np.sin(1.0 + np.arange(54.0)).reshape(3, 6, 3)
X = np.array([0.7, -1.2, 2.1])


def program(*args, in_axes=0, grid=False, order=1):
    """Register a program over the axis "i", or with `grid` over "i" and "j" of its argument.

    `order` is that of the derivatives to test, 0 where its results are no numbers to differentiate.
    """
    def register(f):
        PROGRAMS[f.__name__] = f, args, in_axes, grid, order
        return f

    return register


@program(X, order=2)
def sum_of_lanes(x):
    return x * lax.psum(np.sin(x), "i")


@program(X)
def sum_of_squares(x):
    return lax.psum(x ** 2, "i")


@program(ROWS)
def centred(x):
    return np.tanh(x - lax.pmean(x, "i"))


@program(ROWS)
def normalised(x):
    mean = lax.pmean(x, "i")
    variance = lax.pmean((x - mean) ** 2, "i")
    return (x - mean) / np.sqrt(variance + 1e-3)


@program(ROWS)
def softmax(x):
    e = np.exp(x)
    return e / lax.psum(e, "i")


@program(ROWS)
def over_both(x):
    return x / np.sqrt(lax.psum(np.sum(x * x), "i"))


@program(X, order=0)
def largest(x):
    return lax.pmax(x, "i") - x


@program(ROWS, order=0)
def smallest(x):
    return lax.pmin(x, "i") * 2


@program(X, order=0)
def how_many(x):
    return lax.psum(x > 0, "i")


@program(np.array([3, 1, 2]), order=0)
def integers(k):
    return lax.psum(k, "i"), lax.pmean(k, "i"), lax.pmax(k, "i")


@program(X)
def constant_sum(x):
    return x * lax.psum(2.0, "i")


@program(X, order=0)
def number_of_lanes(x):
    return lax.psum(1, "i") + lax.axis_size("i")


@program(X)
def constant_mean(x):
    return x + lax.pmean(3.0, "i")


@program(X, order=0)
def constant_max(x):
    return x + lax.pmax(3.0, "i")


@program(X)
def constant_gathered(x):
    return x * lax.all_gather(3.0, "i")


@program(X, 2.0, in_axes=(0, None))
def shared_sum(x, w):
    return x * lax.psum(w, "i")


@program(X, 2.0, in_axes=(0, None))
def shared_weight(x, w):
    return lax.psum(np.sin(w * x), "i")


@program(ROWS, SQUARE[0], in_axes=(0, None))
def shared_scattered(x, w):
    return np.sum(x) * lax.psum_scatter(w, "i")


@program(ROWS, SQUARE[0], in_axes=(0, None))
def shared_exchanged(x, w):
    return np.sum(x) * lax.all_to_all(w, "i", 0, 0)


@program(X, 2.0, in_axes=(0, None))
def shared_permuted(x, w):
    return x * lax.ppermute(w, "i", [(0, 1), (1, 2), (2, 0)])


@program(X)
def index(x):
    return x * lax.axis_index("i")


@program(X)
def fraction(x):
    return x ** 2 * (lax.axis_index("i") + 1) / lax.axis_size("i")


@program(X, order=2)
def gathered(x):
    return np.sum(lax.all_gather(np.sin(x), "i") * np.arange(3.0))


@program(ROWS)
def gathered_rows(x):
    return lax.all_gather(x, "i") * np.sum(x)


@program(ROWS)
def gathered_columns(x):
    return lax.all_gather(x, "i", axis=1) @ np.arange(1.0, 4.0)


@program(ROWS)
def gathered_last(x):
    return lax.all_gather(x, "i", axis=-1) ** 2


@program(ROWS)
def gathered_tiled(x):
    return np.cumsum(lax.all_gather(x * x, "i", tiled=True))


@program(CUBE)
def gathered_tiled_columns(x):
    return lax.all_gather(x, "i", axis=1, tiled=True) * 2.0


@program(ROWS)
def matrix_of_products(x):
    return lax.all_gather(x, "i") @ x


@program(SQUARE, order=2)
def scattered(x):
    return lax.psum_scatter(np.sin(x), "i") * x[0]


@program(CUBE)
def scattered_rows(x):
    return lax.psum_scatter(x ** 2, "i")


@program(CUBE.transpose(0, 2, 1, 3))
def scattered_columns(x):
    return lax.psum_scatter(x, "i", scatter_dimension=1)


@program(WIDE)
def scattered_tiled(x):
    return lax.psum_scatter(x * x, "i", tiled=True)


@program(WIDE)
def scattered_tiled_columns(x):
    return lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True)


@program(SQUARE)
def reduced_and_gathered(x):
    return lax.all_gather(lax.psum_scatter(np.exp(x), "i"), "i")


@program(X, order=2)
def ring(x):
    return x * np.sin(lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]))


@program(ROWS)
def ring_back(x):
    return lax.ppermute(x, "i", [(1, 0), (2, 1), (0, 2)]) - x


@program(X)
def ring_of_any_length(x):
    n = lax.axis_size("i")
    return x + 0.5 * lax.ppermute(x ** 2, "i", [(k, (k + 1) % n) for k in range(n)])


@program(ROWS)
def laplacian(x):
    n = lax.psum(1, "i")
    left = lax.ppermute(x, "i", [(k, (k - 1) % n) for k in range(n)])
    right = lax.ppermute(x, "i", [(k, (k + 1) % n) for k in range(n)])
    return left + right - 2 * x


@program(X)
def shuffled(x):
    return x * lax.pshuffle(x, "i", [2, 0, 1])


@program(SQUARE)
def exchanged(x):
    return lax.all_to_all(x, "i", 0, 0) * x


@program(CUBE)
def exchanged_to_last(x):
    return np.sin(lax.all_to_all(x, "i", 0, 2))


@program(CUBE.transpose(0, 2, 3, 1))
def exchanged_to_first(x):
    return lax.all_to_all(x, "i", 2, 0) ** 2


@program(CUBE)
def exchanged_negative(x):
    return lax.all_to_all(x, "i", split_axis=-3, concat_axis=-1)


@program(WIDE)
def exchanged_tiled(x):
    return lax.all_to_all(np.sin(x), "i", 0, 1, tiled=True)


@program(WIDE)
def exchanged_tiled_back(x):
    return lax.all_to_all(x * x, "i", 1, 0, tiled=True)


@program(WIDE)
def exchanged_tiled_in_place(x):
    return lax.all_to_all(x, "i", 0, 0, tiled=True) * 3.0


@program(ROWS)
def tree_of_sums(x):
    found = lax.psum({"a": x, "b": (x[0], 2.0)}, "i")
    return found["a"] * found["b"][0] + found["b"][1]


@program(ROWS)
def tree_of_means(x):
    a, b = lax.pmean((x, np.sum(x)), "i")
    return a * b


@program(ROWS)
def tree_gathered(x):
    found = lax.all_gather([x, x[0]], "i")
    return found[1] @ found[0]


@program(X)
def permuted_tree(x):
    a, b = lax.ppermute((x, x * x), "i", [(0, 2), (1, 0), (2, 1)])
    return a * b


@program(X)
def no_names(x):
    return lax.psum(x * x, ())


@program(X)
def in_a_loop(x):
    for k in range(3):
        x = np.sin(x) + 0.1 * k * lax.pmean(x, "i")
    return x


@program(ROWS)
def power_iteration(x):
    def step(k, v):
        v = v + 0.1 * x * np.sum(x * v)
        return v / np.sqrt(lax.psum(np.sum(v * v), "i"))

    return lax.fori_loop(0, 4, step, x)


@program(X)
def in_a_scan(x):
    def step(c, u):
        c = np.tanh(c + u * lax.psum(c, "i"))
        return c, c * u

    last, all_ = lax.scan(step, x, np.array([0.3, -0.2, 0.5]))
    return last + np.sum(all_)


@program(X, order=0)
def until_all_are_small(x):
    return lax.while_loop(lambda s: lax.pmax(np.abs(s), "i") > 0.5, lambda s: s * 0.7, x)


@program(X)
def in_a_branch_of_all(x):
    total = lax.psum(x, "i")
    return lax.cond(total > 0, lambda v: v * lax.pmean(v, "i"), lambda v: v, x)


@program(X)
def before_a_branch(x):
    total = lax.psum(x * x, "i")
    return lax.cond(x > 0, lambda v: v * total, lambda v: np.sin(v) - total, x)


@program(X)
def between_branches(x):
    y = lax.cond(x > 0, lambda v: v * v, lambda v: np.exp(v), x)
    y = y / lax.psum(y, "i")
    return lax.cond(y > 0.3, lambda v: v, lambda v: 2 * v, y)


def mean_square(x):
    return lax.pmean(np.sum(x * x), "i")


def scaled(x):
    y = np.sin(x) / np.sqrt(mean_square(x) + 1.0)
    for _ in range(2):
        y = y + 0.1 * np.cos(y) * mean_square(y)
    return y


@program(ROWS)
def in_called_functions(x):
    return scaled(x) * scaled(x + 1.0)


@program(ROWS)
def matrix_in_lanes(x):
    a = np.outer(x, x) + np.eye(4)
    return np.linalg.solve(lax.pmean(a, "i"), x)


@program(ROWS, np.arange(8.0).reshape(4, 2), in_axes=(0, None))
def data_parallel_loss(x, w):
    return lax.pmean(np.sum(np.tanh(x @ w) ** 2), "i")


@program(ROWS.T, in_axes=1)
def lanes_in_columns(x):
    return x * lax.psum(np.sum(x), "i")


@program(ROWS, grid=True, order=2)
def grid_sum(x):
    return x * lax.psum(x * x, ("i", "j"))


@program(ROWS, grid=True)
def grid_rows_and_columns(x):
    return lax.psum(x, "i") * lax.pmean(np.sin(x), "j")


@program(ROWS, grid=True)
def grid_mean(x):
    return np.exp(x - lax.pmean(x, ("j", "i")))


@program(ROWS, grid=True, order=0)
def grid_index(x):
    return lax.axis_index(("i", "j")) * 100 + lax.axis_index(("j", "i"))


@program(ROWS, grid=True, order=0)
def grid_extremes(x):
    return lax.pmax(x, ("i", "j")) - lax.pmin(x, "j") + lax.axis_size(("i", "j"))


@program(ROWS, grid=True)
def grid_gather(x):
    return np.sum(lax.all_gather(x, "i") * np.arange(3.0)) * lax.all_gather(x, "j")


@program(ROWS, grid=True)
def grid_gather_twice(x):
    return lax.all_gather(lax.all_gather(x * x, "j"), "i", axis=1)


@program(ROWS, grid=True)
def grid_shift(x):
    return x * lax.ppermute(x, "j", [(0, 1), (1, 2), (2, 3), (3, 0)]) - lax.pshuffle(
        x, "i", [1, 2, 0])


@program(np.sin(np.arange(144.0)).reshape(3, 4, 4, 3), grid=True)
def grid_transposed(x):
    return lax.all_to_all(x, "j", 0, 1) @ lax.psum_scatter(x * x, "i", scatter_dimension=1)
