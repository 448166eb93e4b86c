# ruff: noqa: F821, F841, F842
"""Small programs, one for each construct that the front end reads, and arguments to run them on."""

import functools
import math
from dataclasses import dataclass

import numpy as np

X = np.array([0.5, -1.25, 2.0, 3.5])
M = np.arange(12.0).reshape(3, 4) / 7
SCALE = 1.5
TABLE = np.array([1.0, 2.0, 4.0])
PAIR = (2.0, 3)
CASES = []


def case(*argument_lists, known_only=False):
    """Collect a program with the argument lists it is run on."""

    def collect(function):
        CASES.extend((function, args, known_only) for args in argument_lists)
        return function

    return collect


# -------------------------------------------------------------------------------------- assignments


@case((2.0, 3.0))
def tuple_assignment_and_swap(x, y):
    x, y = y, x
    (a, b), c = (x, y), x + y
    a = d = a * c
    return a - b * d, c


@case((2.0,))
def starred_unpacking(x):
    first, *rest, last = x, x + 1, x * 2, x - 3
    a, b = rest
    return first + a * b - last, len(rest)


@case((X,), known_only=True)
def unpacking_an_array(x):
    a, b, c, d = x
    return a * b - c / d


@case((M,))
def unpacking_a_shape(x):
    m, n = x.shape
    return m * 10 + n + x.shape[0] - x.shape[-1]


@case((2.0,))
def annotated_and_augmented(x):
    y: float = x * 2
    z: float
    y += 3
    y *= x
    y -= 1
    y /= 2
    y **= 2
    return y


@case((2.0,))
def walrus(x):
    y = (z := x * 3) + 1
    return y * z


@case((2.0,))
def deleted_name(x):
    """A docstring, too."""
    y = x
    del x
    pass
    return y


# -------------------------------------------------------------------------------------- expressions


@case((7.5, 2.0), (-7.5, 2.0))
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, x // y, x % y, x ** y, -x, +x


@case((7, 2), (-7, 3))
def integer_arithmetic(a, b):
    return a // b, a % b, a & b, a | b, a ^ b, a << b, ~a, a ** b


@case((1.0, 2.0, 3.0), (2.0, 1.0, 3.0), (1.0, 3.0, 2.0))
def comparison_chain(a, b, c):
    if a < b < c:
        return 1.0
    if a <= b != c > a:
        return 2.0
    return 3.0


@case((0.0, 2.0), (3.0, 0.0), (0.0, 0.0))
def short_circuit_values(a, b):
    return (a or b) + (a and b)


@case((X, 2), (X, 9))
def short_circuit_guards_an_index(x, i):
    if i < 4 and x[i] > 0.0:
        return x[i]
    if i >= 4 or x[i] < 0.0:
        return -1.0
    return 0.0


@case((1.0,), (-1.0,))
def conditional_expression(x):
    return 2 * x if x > 0 else x - 1 if not x < -5 else 0.0


@case((3,), (0,))
def truth_of_a_number(n):
    return 1.0 if n else 2.0


@case((X,))
def constants_fold(x):
    n = 2 + 3 * 4
    if n == 14 and "a" + "b" == "ab":
        return x * n
    return x


@case((X,), (2.0,))
def rank_generic_functions(x):
    return np.sum(np.sin(x) * x) + np.exp(-x).sum()


@case((0.5,))
def functions_of_math(x):
    return math.sin(x) + math.exp(x) * math.pi + math.sqrt(x)


# ------------------------------------------------------------------------------------- control flow


@case((1.0,), (-1.0,), (5.0,))
def elif_chain(x):
    if x > 2:
        y = x * 2
    elif x > 0:
        y = x + 1
        z = y
    else:
        y = -x
    return y


@case((4,), (0,))
def range_with_bounds(n):
    s = 0.0
    for i in range(n):
        s += i * 0.5
    for i in range(1, n):
        s = s - i
    for i in range(n, -1, -2):
        s = s * 1.5 + i
    return s


@case((3,), (0,))
def loop_variable_lives_on(n):
    i = -1
    for i in range(n):
        pass
    return i


@case((X,), known_only=True)
def rows_of_a_vector(x):
    s = 0.0
    for v in x:
        s = s * 0.5 + v
    return s


@case((M,))
def rows_of_a_matrix(x):
    s = 0.0
    for row in x:
        s = s + np.sum(row) * row[0]
    return s


@case((X, X[::-1].copy()))
def enumerate_zip_reversed(x, y):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, y)):
        s = s + i * a - b
    for i, a in enumerate(x, 1):
        s = s + i * a
    for i in reversed(range(4)):
        s = s * 0.5 + x[i]
    for a in reversed(x):
        s = s * 0.5 + a
    for i, a in zip(range(1, 4), x):
        s = s + i * a
    return s


@case((2.0,))
def loop_over_a_tuple(x):
    s = 0.0
    for k, c in enumerate((1.0, x, 3.0)):
        if k == 1:
            continue
        s = s * x + c
    return s


@case((3.0,), (0.5,))
def break_in_unrolled_loop(x):
    s = 0.0
    for c in (1.0, 2.0, 3.0, 4.0):
        if c > x:
            break
        s += c
    else:
        s = -1.0
    return s


@case((100.0,), (0.5,))
def while_loop(x):
    n = 0
    while x > 1.0:
        x = x / 2
        n += 1
    return x, n


@case((10,))
def while_true(n):
    s = 0
    while True:
        s = s + n
        n -= 1
        if n < 3:
            break
    return s


@case((10,), (2,))
def break_and_continue(n):
    s = 0.0
    for i in range(n):
        if i == 7:
            break
        if i % 2 == 0:
            continue
        s = s + i
    return s


@case((6,), (2,))
def nested_breaks(n):
    s = 0.0
    for i in range(n):
        for j in range(n):
            if j > i:
                break
            if (i + j) % 3 == 0:
                continue
            s = s + i * j
        if s > 20:
            break
    return s


@case((X, 1.0), (X, 10.0))
def return_from_a_loop(x, limit):
    s = 0.0
    for i in range(len(x)):
        s = s + abs(x[i])
        if s > limit:
            return s * i
    return -s


@case((M, 0.9), (M, 99.0))
def return_from_nested_loops(x, limit):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > limit:
                return x[i, j], i, j
    return 0.0, -1, -1


@case((1.0,), (-1.0,), (0.0,))
def early_returns(x):
    if x > 0:
        if x > 0.5:
            return x
        x = x + 1
    elif x < 0:
        return -x
    x = x * 3
    return x


@case((7,), (8,))
def loop_else(n):
    for d in range(2, n):
        if n % d == 0:
            r = d
            break
    else:
        r = 0
    while n > 3:
        n -= 2
    else:
        r = r + n
    return r


@case((3,))
def walrus_in_while_test(n):
    s = 0
    while (n := n - 1) > 0:
        s = s + n
    return s


@case((5,))
def carry_that_becomes_float(n):
    s = 0
    for i in range(n):
        s = s + 0.5 * i
    return s


@case((5,))
def carry_swaps(n):
    x, y = 0.0, 1.0
    for _ in range(n):
        x, y = y, x + y
    return x


@case((5,))
def tuple_carried(n):
    state = (1.0, 2.0)
    for _ in range(n):
        a, b = state
        state = (b, a * 0.5)
    return state[0] - state[1]


@case((5,), (1,))
def bound_only_inside(n):
    s = 0.0
    for i in range(n):
        if i > 0:
            s = s + prev
        prev = i * 0.5
    return s + prev


# ------------------------------------------------------------------------------------------- arrays


@case((M,))
def indexing(x):
    return (x[0, 1], x[-1][2], x[1:, ::2], x[..., 0], x[:, None, 1], x[1], x[:2][0, 1:-1])


@case((M, np.array([2, 0])))
def advanced_indexing(x, idx):
    return x[idx], x[idx, 1], x[x > 0.5], x[:, idx]


@case((X,))
def in_place_writes(x):
    y = x.copy()
    y[0] = 3.0
    y[1:3] += 1.0
    y[-1] *= 2
    return y


@case((X,))
def argument_written(x):
    x[0] = x[1] + x[2]
    x[1] += 1
    return x


@case((M,))
def written_in_loops(x):
    y = np.zeros((3, 4))
    for i in range(3):
        for j in range(1, 4):
            y[i, j] = x[i, j] + y[i, j - 1]
    return y


@case((X, np.array([1, 1, 2])))
def repeated_indices(x, idx):
    y = x.copy()
    y[idx] += 1.0
    np.add.at(y, idx, 2.0)
    return y


@case((X,))
def alias_sees_the_write(x):
    y = x.copy()
    z = y
    z[0] = 9.0
    y[1] = 7.0
    return y, z


@case((X,))
def view_writes_to_its_base(x):
    y = x.copy()
    v = y[1:]
    v[0] = 5.0
    y[2] = 6.0
    return y, v


@case((M,))
def transpose_is_a_view(x):
    y = x.copy()
    t = y.T
    t[0, 1] = -1.0
    return y, t


@case((M,))
def rows_are_views(x):
    y = x.copy()
    for row in y:
        row[0] = row[1] * 2
        row[2:] += 1.0
    return y


@case((X,), known_only=True)
def augmented_array_is_seen_by_aliases(x):
    y = x.copy()
    z = y
    y += 1.0
    z *= 2.0
    return y, z


@case((X,), known_only=True)
def alias_made_before_a_loop(x):
    y = x.copy()
    z = y
    for i in range(3):
        z[i] = z[i] + y[i + 1]
    return y


@case((X, 3))
def double_buffer(x, n):
    u = x.copy()
    v = np.zeros(4)
    for _ in range(n):
        for i in range(1, 3):
            v[i] = u[i - 1] + u[i + 1]
        u, v = v, u
    return u


@case((X, 1.0), (X, -1.0))
def branch_writes(x, a):
    y = x.copy()
    if a > 0:
        y[0] = a
    else:
        y = y * 2
    return y


@case((X,))
def a_product_by_one_is_a_copy(x):
    y = x * 1
    y[0] = 8.0
    return x, y


@case((X,))
def tuple_holds_the_array(x):
    y = x.copy()
    t = (y, 1.0)
    y[0] = 4.0
    return t[0]


@case((X,))
def attributes_and_methods(x):
    return x.sum() + x.max() * x.size, x.shape[0] + len(x), x.T, x.reshape(2, 2)


@case((X,), known_only=True)
def ndim_prunes(x):
    if x.ndim == 1:
        return x * 2
    return x.no_such_attribute


@case((2.0,))
def array_of_a_list(x):
    return np.array([x, 2 * x, 3.0]), np.array([[1.0, x], [x, 2.0]])


# -------------------------------------------------------------------------------------------- calls


def cube(t, scale=1.0):
    if t < 0:
        return -scale
    return scale * t ** 3


def both(t, *, shift):
    return t + shift, t - shift


def fill_first(a, v):
    a[0] = v


def same(a):
    return a


@case((2.0,), (-2.0,))
def calls_with_defaults_and_keywords(x):
    p, q = both(x, shift=0.5)
    return cube(x) + cube(x, scale=p) * cube(scale=q, t=x)


@case((X,))
def callee_writes_its_argument(x):
    y = x.copy()
    fill_first(y, 4.0)
    z = same(y)
    z[1] = 3.0
    return y


@case((2.0,))
def lambdas_and_nested_functions(x):
    k = 3.0
    f = lambda t, n=2: t ** n + k  # noqa: E731

    def g(t):
        if t > 1:
            return f(t)
        return t

    k = 4.0
    return f(x) + g(x) * g(0.5) + (lambda a, *b: a + len(b))(x, 1, 2)


def apply_twice(f, x):
    return f(f(x))


@case((2.0,))
def functions_as_arguments(x):
    return apply_twice(lambda t: t * x, x) + apply_twice(cube, x)


@case((2.0,))
def globals_are_read(x):
    return x * SCALE + TABLE[1] + PAIR[0] * PAIR[1] + np.sum(TABLE)


def closure(k, table):
    def inner(x):
        return x * k + table[0]

    return inner


case((2.0,))(closure(3.0, TABLE))
case((2.0,))(closure(3, np.array([[1.0, 2.0]])))
case((2.0,))(functools.partial(cube, scale=3.0))
case((2.0,))(functools.partial(both, shift=3.0))


class Model:
    def __init__(self):
        self.rate = 0.5
        self.weights = TABLE

    def scaled(self, x):
        return x * self.rate

    def predict(self, x):
        return self.scaled(x) + np.sum(self.weights)


@dataclass
class Line:
    slope: float
    offset: float

    def __call__(self, x):
        return self.slope * x + self.offset


MODEL = Model()
case((2.0,))(MODEL.predict)
case((2.0,))(Line(2.0, 0.5))


@case((2.0,))
def objects_are_read(x):
    return MODEL.predict(x) * MODEL.rate


@functools.wraps(cube)
def wrapped(*args, **kwargs):
    return cube(*args, **kwargs)


case((2.0,))(wrapped)
PAIR_OF_LAMBDAS = (lambda x: x + 1.0, lambda x: x * 2.0, lambda x: x * 3.0)
for _each in PAIR_OF_LAMBDAS:
    case((5.0,))(_each)


@case((2.0, 1.0, 2.0), (2.0,))
def star_arguments(x, *rest):
    s = x
    for r in rest:
        s = s * r
    return s + len(rest)


@case((2.0, None), (2.0, 3.0), known_only=True)
def none_is_static(x, y=None):
    if y is None:
        y = 1.0
    return x + y


@case((2.0, "square"), (2.0, "cube"), known_only=True)
def strings_are_static(x, kind):
    if kind == "square":
        return x * x
    return x * x * x


@case((2.0,))
def static_lists(x):
    values = [x * k for k in range(3) if k != 1]
    total = 0.0
    for v in values + [1.0]:
        total = total + v
    return total, sum(values)


@case((np.array([1.0, 2.0]), 1), known_only=True)
def isinstance_is_static(x, n):
    if isinstance(x, np.ndarray) and isinstance(n, int) and not isinstance(n, float):
        return x * n
    return n


@case((2.0, 3))
def nested_function_in_a_loop(x, n):
    def step(t):
        return t * x

    for _ in range(n):
        y = step(x)
        x = x + 0.25 * y
    return x


@case((X,))
def closure_made_inside(x):
    def shifted(by):
        return lambda t: t + by[0]

    y = x.copy()
    g = shifted(y)
    if x[1] < 0:
        y[0] = 7.0
    return g(2.0)


@case((X, 2), (X, 5))
def generator_of_known_length(x, n):
    return sum(x[i] * i for i in range(4)) + max([x[k] for k in (0, 2)])


@case((M,))
def chained_and_nested_targets(x):
    y = np.zeros(4)
    y[0], (y[1], z) = x[0, 1], (x[1, 1], x[2, 2])
    y[2] = w = z * 2
    return y, w


@case((X,))
def fill_and_slices_of_everything(x):
    y = np.empty(4)
    y.fill(2.0)
    y[:] = y * x
    y[...] += 1.0
    return y


@case((3, 2))
def truth_of_calls_and_defaults(n, k=2):
    return bool(n) and int(k) > 1, not (n and k), float(n) or 1.0


@case((X,))
def ellipsis_gives_a_view_of_one_number(x):
    y = x.copy()
    t = y[..., 0]
    y[0] = 5.0
    return t + 1.0


@case((M,))
def two_rows_of_one_array(x):
    y = x.copy()
    top = y[0]
    top[1] = 3.0
    top[2] += y[1, 1]
    return y, top


@case((X, 2), known_only=True)
def element_kept_across_a_write(x, i):
    y = x.copy()
    t = y[i]
    y[i] = y[0]
    y[0] = t
    return y, t


SETTINGS = {"rate": 0.5, "weights": np.array([1.0, 2.0])}
LAYERS = [np.array([1.0, 2.0]), np.array([3.0])]


class Constants:
    GAIN = 3.0


@case((2.0,))
def containers_outside_are_read(x):
    return (
        x * SETTINGS["rate"]
        + SETTINGS["weights"][1]
        + LAYERS[0][0] * LAYERS[-1]
        + Constants.GAIN * len(LAYERS)
    )
