"""Programs that write to what they have captured: once, forwards, as plain Python does."""

from __future__ import annotations

import copy
import math
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

import s2s
from s2s.errors import UnsupportedError

X = np.array([0.5, -1.0, 2.0])


LOSS = SimpleNamespace(weight=3.0)


def weighted(x):
    return LOSS.weight * np.sum(x * x)


class Problem:
    """A test function that counts its evaluations, as those of SciPy's benchmarks do."""

    total = 0

    def __init__(self):
        self.nfev, self.best, self.last, self.loss = 0, math.inf, None, 0.0
        self.history, self.counts, self.seen = [], {"calls": 0}, set()
        self.recent = deque(maxlen=3)
        self.trace, self.stats = np.zeros(4), SimpleNamespace(n=0, worst=-1.0)
        self.scale = 2.0

    def counted(self, x):
        self.nfev += 1
        return self.scale * np.sum(x**2)

    def counted_by_a_helper(self, x):
        return self.counted(x) + self.counted(2 * x) + self.nfev * 0.0

    def remembers(self, x):
        self.last = np.copy(x)
        value = np.sum(np.sin(x))
        self.loss = value
        self.history.append(value)
        self.recent.appendleft(float(value))
        self.seen.add(len(x))
        return value

    def remembers_the_best(self, x):
        value = np.sum((x - 1) ** 2)
        if value < self.best:
            self.best = value
            self.last = x.copy()
        return value

    def in_a_loop(self, x):
        s = 0.0
        for i in range(len(x)):
            s += x[i] ** 3
            self.nfev += 2
            self.history.append((i, s))
            self.trace[i] = s
            if s < 0:
                self.counts["negative"] = i
            self.counts["calls"] += 1
        return s * s

    def reads_back(self, x):
        self.loss = np.sum(x * x)
        self.stats.n += 1
        self.stats.worst = max(self.stats.worst, self.loss)
        return self.loss * x[0] + self.stats.worst

    def reads_back_in_a_loop(self, x):
        for i in range(len(x)):
            self.loss = self.loss * 0.5 + x[i] ** 2
            if self.loss > 1.0:
                self.scale = self.scale + x[i]
        return self.loss * self.scale

    def works_in_a_buffer(self, x):
        self.trace[:3] = x * x
        self.trace[3] += np.sum(x)
        self.trace *= 2.0
        return np.sum(self.trace[1:] ** 2)

    def makes_an_attribute(self, x):
        self.made = x[0] ** 2
        self.counts["made"] = 2 * self.made
        return self.made * x[1] + self.counts["made"]

    def loses_by_a_helper(self, x):
        before = weighted(x)
        LOSS.weight = LOSS.weight * x[0]
        self.scale = x[1]
        return before + weighted(x) * self.scaled(x)

    def scaled(self, x):
        return self.scale * np.sum(x)

    def counts_for_the_class(self, x):
        Problem.total += 1
        return np.prod(x)

    def returns_early(self, x):
        self.nfev += 1
        if x[0] > 0:
            self.last = x[0]
            return x[0] * x[1]
        self.nfev += 10
        return np.sum(x)

    def mixes(self, x):
        self.counts.update(a=x[0], b=len(x))
        self.history.extend([x[1], x[2]])
        self.stats.pair = (x[0] * 2, [1, x[1]], {"k": "text"})
        self.last = self.history
        setattr(self, "loss", x[2])  # noqa: B010 - that is what is tested
        return np.sum(x) ** 2

    def raises(self, x):
        self.nfev += 1
        self.history.append(x[0])
        if x[1] < 0:
            raise ValueError("negative")
        self.nfev += 100
        return x[0]


METHODS = [name for name, f in vars(Problem).items() if callable(f) and name[0] != "_"]


def state(problem) -> dict:
    return {**vars(problem), "total": Problem.total, "stats": vars(problem.stats),
            "weight": LOSS.weight}


def run(make, *args):
    """The result, or exception, and the state after it, of a call of `make(problem)`."""
    problem, Problem.total, LOSS.weight = Problem(), 0, 3.0
    f = make(problem)
    try:
        result = f(*args)
    except ValueError as error:
        result = str(error)
    return result, copy.deepcopy(state(problem))


def same(a, b):
    """Whether two states agree, in their types, too."""
    assert type(a) is type(b) or {type(a), type(b)} <= {float, np.float64, np.ndarray}, (a, b)
    if isinstance(a, dict):
        assert a.keys() == b.keys(), (a, b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, (list, tuple, deque)):
        assert len(a) == len(b), (a, b)
        for x, y in zip(a, b):
            same(x, y)
    elif isinstance(a, (float, np.ndarray)):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    else:
        assert a == b, (a, b)


def slope(name, x):
    """The gradient, by differences of the method on a fresh problem each."""
    def value(z):
        return run(lambda problem: getattr(problem, name), z)[0]

    steps = 1e-6 * np.eye(len(x))
    return [(value(x + e) - value(x - e)) / 2e-6 for e in steps]


@pytest.mark.parametrize("name", METHODS)
def test_what_is_written_is_what_python_writes(name):
    value, expected = run(lambda problem: getattr(problem, name), X)
    for transform in (s2s.grad, s2s.value_and_grad, s2s.jvp):
        tangents = (X,) if transform is s2s.jvp else ()
        got, after = run(lambda problem: transform(getattr(problem, name)), X, *tangents)
        same(after, expected)
        if isinstance(value, str):
            assert got == value
        elif transform is s2s.grad:
            np.testing.assert_allclose(got, slope(name, X), rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_allclose(got[0], value, rtol=1e-14)
            if transform is s2s.jvp:
                np.testing.assert_allclose(got[1], X @ slope(name, X), rtol=1e-6)


@pytest.mark.compile
@pytest.mark.parametrize("name", METHODS)
def test_native_code_writes_what_python_writes(name):
    value, expected = run(lambda problem: getattr(problem, name), X)
    for transform in (lambda f: f, s2s.value_and_grad):
        got, after = run(lambda problem: s2s.jit(transform(getattr(problem, name))), X)
        same(after, expected)
        if isinstance(value, str):
            assert got == value
        else:
            np.testing.assert_allclose(got if transform is not s2s.value_and_grad else got[0],
                                       value, rtol=1e-14)
            if transform is s2s.value_and_grad:
                np.testing.assert_allclose(got[1], slope(name, X), rtol=1e-6, atol=1e-6)


# -------------------------------------------------------------------------------------- variables

CALLS, RATE, BUFFER, TABLE = 0, 0.5, np.zeros(3), {"gain": 2.0, "rows": [[1.0, 2.0], [3.0]]}


def counts_in_a_global(x):
    global CALLS
    CALLS += 1
    return np.sum(x * x)


def reads_back_a_global(x):
    global RATE
    for i in range(len(x)):
        if x[i] > 0:
            RATE = RATE * 0.5 + x[i]
    return RATE * x[0]


def writes_a_global_array(x):
    BUFFER[:] = np.sin(x)
    BUFFER[0] += 1.0
    return np.sum(BUFFER * x)


def writes_items(x):
    TABLE["gain"] = TABLE["gain"] * x[0]
    TABLE["rows"][1][0] = x[1]
    TABLE["rows"][0].append(x[2])
    TABLE["extra"] = {"x": [x[0], "text"]}
    return TABLE["gain"] * x[2]


def reset() -> None:
    global CALLS, RATE, TABLE
    CALLS, RATE = 0, 0.5
    BUFFER[:] = 0.0
    TABLE = {"gain": 2.0, "rows": [[1.0, 2.0], [3.0]]}


def variables():
    return copy.deepcopy({"calls": CALLS, "rate": RATE, "buffer": BUFFER, "table": TABLE})


GLOBAL = [counts_in_a_global, reads_back_a_global, writes_a_global_array, writes_items]


@pytest.mark.parametrize("f", GLOBAL)
def test_variables_of_the_module(f):
    reset()
    value = f(X)
    expected = variables()

    def again(z):
        reset()
        return f(z)

    steps = 1e-6 * np.eye(3)
    wanted = [(again(X + e) - again(X - e)) / 2e-6 for e in steps]
    for compiled in (False, True):
        reset()
        transformed = s2s.value_and_grad(f)
        got, slope = (s2s.jit(transformed) if compiled else transformed)(X)
        same(variables(), expected)
        np.testing.assert_allclose(got, value, rtol=1e-14)
        np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-7)
    reset()


def counters():
    calls, total = 0, 0.0

    def f(x):
        nonlocal calls, total

        def note(value):
            nonlocal total
            total = total + value
            return total

        calls += 1
        return note(np.sum(x * x)) * note(x[0])

    return f, lambda: (calls, total)


def test_variables_of_a_function_that_has_returned():
    def value(z):
        f, _ = counters()
        return f(z)

    f, read = counters()
    result = f(X)
    expected = read()
    steps = 1e-6 * np.eye(3)
    wanted = [(value(X + e) - value(X - e)) / 2e-6 for e in steps]
    f, read = counters()
    got, slope = s2s.value_and_grad(f)(X)
    np.testing.assert_allclose(got, result, rtol=1e-14)
    np.testing.assert_allclose(slope, wanted, rtol=1e-6)
    assert read() == expected
    again, _ = s2s.value_and_grad(f)(X)  # it goes on from there
    assert again != got and read()[0] == 2


# ---------------------------------------------------------------------------------- how it is used


def test_each_call_goes_on_from_the_one_before():
    problem, plain = Problem(), Problem()
    slope = s2s.value_and_grad(problem.reads_back_in_a_loop)
    for k in range(4):
        value, _ = slope(X * k)
        np.testing.assert_allclose(value, plain.reads_back_in_a_loop(X * k), rtol=1e-14)
        same(state(problem), state(plain))
    problem.scale = plain.scale = 7.0
    np.testing.assert_allclose(slope(X)[0], plain.reads_back_in_a_loop(X), rtol=1e-14)


def test_a_minimiser_counts_as_it_does_without():
    optimize = pytest.importorskip("scipy.optimize")
    problem = Problem()
    found = optimize.minimize(problem.counted, X, jac=s2s.grad(problem.counted), method="BFGS")
    assert np.max(np.abs(found.x)) < 1e-5
    assert problem.nfev == found.nfev + found.njev


@pytest.mark.parametrize(
    "transform", [s2s.hessian, lambda f: s2s.jacobian(s2s.grad(f)), s2s.jacfwd]
)
def test_a_derivative_is_one_evaluation(transform):
    problem = Problem()
    transform(problem.counted)(X)
    assert problem.nfev == 1


@pytest.mark.parametrize("name", ["counted", "remembers", "counts_for_the_class", "returns_early"])
@pytest.mark.parametrize("transform", [lambda f: f, s2s.grad])
def test_each_lane_writes(name, transform):
    rows = np.stack([X, 2 * X, -X])

    def one_by_one(problem):
        return lambda rows: [getattr(problem, name)(x) for x in rows]

    _, expected = run(one_by_one, rows)
    _, after = run(lambda problem: s2s.vmap(transform(getattr(problem, name))), rows)
    same(after, expected)


@pytest.mark.parametrize(
    "name", ["remembers_the_best", "reads_back_in_a_loop", "works_in_a_buffer", "in_a_loop"]
)
def test_lanes_that_would_take_turns_are_refused(name):
    with pytest.raises(UnsupportedError, match="each lane would go on from the one before"):
        s2s.vmap(getattr(Problem(), name))(np.stack([X, X]))


def test_the_text_says_what_the_program_says():
    problem = Problem()
    source = s2s.grad(problem.in_a_loop).lower(X).source
    for line in ("problem.nfev += 2", "self_history.append((i, s))", 'self_counts["negative"] = i',
                 'self_counts["calls"] += 1', "problem.trace[...] = "):
        assert source.count(line) == 1, source
    assert "c_cell" not in source
    source = s2s.grad(counters()[0]).lower(X).source
    assert "calls_cell.cell_contents += 1" in source


class Lazy:
    """An object with attributes that its methods make, and properties that read others."""

    def __init__(self):
        self._calls, self.gain, self.grid = 0, 2.0, np.arange(6.0).reshape(2, 3)

    @property
    def calls(self):
        return self._calls

    @property
    def doubled(self):
        return 2 * self.gain * self.calls

    def makes_it_once(self, x):
        if not hasattr(self, "scale"):
            self.scale = np.sum(x**2)
        return self.scale * x[0]

    def counts_from_a_default(self, x):
        self.times = getattr(self, "times", 0) + 1
        return np.sum(x**2) * self.times

    def asks_before_and_after(self, x):
        before = hasattr(self, "mode")
        self.mode = "run"
        return x[0] ** (1 + before + 2 * hasattr(self, "mode"))

    def reads_properties(self, x):
        first = self.doubled
        self._calls += 1
        self.gain = self.gain * x[0]
        return first * x[1] + self.doubled * x[2]

    def reads_a_property_of_what_a_helper_writes(self, x):
        value = self.reads_properties(x)
        return value * self.calls


@pytest.mark.parametrize("name", [name for name, f in vars(Lazy).items() if callable(f)
                                  and name[0] != "_"])
def test_attributes_that_the_program_makes_and_properties(name):
    plain, lazy = Lazy(), Lazy()
    slope = s2s.value_and_grad(getattr(lazy, name))
    for k in (1, 2, 3):
        before = copy.deepcopy(plain)
        value, got = slope(k * X)
        np.testing.assert_allclose(value, getattr(plain, name)(k * X), rtol=1e-14)
        same(vars(lazy), vars(plain))
        wanted = [(getattr(copy.deepcopy(before), name)(k * X + e)
                   - getattr(copy.deepcopy(before), name)(k * X - e)) / 2e-6
                  for e in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


DEPTH, STEPS = 0, []


def power(v, n):
    global DEPTH
    DEPTH += 1
    return v if n < 1 else v * power(v, n - 1)


def to_the_fourth(x):
    return power(x, 3)


@pytest.mark.compile
@pytest.mark.parametrize("f, expected", [
    (to_the_fourth, 16.0),
    (s2s.grad(to_the_fourth), 32.0),
    (s2s.value_and_grad(to_the_fourth), (16.0, 32.0)),
    (s2s.jvp(lambda x: to_the_fourth(x) * x), None),
])
def test_native_recursion_writes(f, expected):
    global DEPTH
    DEPTH = 0
    given = (2.0,) if expected is not None else (2.0, 1.0)
    assert s2s.jit(f)(*given) == (expected if expected is not None else (32.0, 80.0))
    assert DEPTH == 4


@s2s.checkpoint
def noted_step(x):
    STEPS.append(x[0])
    return np.sin(x)


def two_noted_steps(x):
    return np.sum(noted_step(noted_step(x)) ** 2)


def test_linear_maps_are_those_of_the_state_before():
    for half in (lambda f: s2s.linearize(f, X)[1](np.ones(3)),
                 lambda f: np.sum(s2s.vjp(f, X)[1](1.0)[0])):
        for name in ("reads_back_in_a_loop", "works_in_a_buffer", "loses_by_a_helper"):
            _, expected = run(lambda problem, name=name: getattr(problem, name), X)
            got, after = run(lambda problem, name=name, half=half:
                             lambda x: half(getattr(problem, name)), X)
            np.testing.assert_allclose(got, np.sum(slope(name, X)), rtol=1e-6)
            same(after, expected)
        STEPS.clear()
        half(two_noted_steps)
        same(STEPS, [X[0], np.sin(X[0])])


def test_a_nested_transformation_writes():
    problem, plain = Problem(), Problem()

    def descends(x):
        for _ in range(3):
            x = x - 0.1 * s2s.grad(problem.counted)(x)
        return np.sum(x)

    slope = s2s.grad(descends)(X)
    np.testing.assert_allclose(slope, np.full(3, 0.6**3), rtol=1e-14)
    plain.nfev = 3
    same(state(problem), state(plain))
    STORE.gain = 1.0
    assert s2s.value_and_grad(lambda x: s2s.grad(goes_on)(x))(3.0) == (6.0, 2.0)
    assert STORE.gain == 3.0


class Counted:
    def __init__(self):
        self.calls, self.seen = 0, []

    def cost(self, x):
        self.calls += 1
        return np.sum(x**2)


class Penalised(Counted):
    def cost(self, x):
        self.seen.append(len(x))
        return super().cost(x) + 3.0 * np.abs(x[0]) * self.calls


class Twice(Penalised):
    def cost(self, x):
        return super().cost(x) + super().cost(2 * x)


def test_methods_that_extend_those_of_the_class_above():
    plain, problem = Twice(), Twice()
    value, got = s2s.value_and_grad(problem.cost)(X)
    np.testing.assert_allclose(value, plain.cost(X), rtol=1e-14)
    same(vars(problem), vars(plain))
    wanted = [(Twice().cost(X + e) - Twice().cost(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


class Guarded:
    def __init__(self):
        self._size = 1.0

    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, value):
        self._size = value

    def f(self, x):
        self.size = x
        return x * x


XS: list = []


def reads_what_it_appends(x):
    XS.append(x)
    return XS[-1] * x


def knows_it_by_two_names():
    a = np.zeros(3)
    b = a[1:]

    def f(x):
        a[1] = x
        return b[0] * x

    return f


STORE = SimpleNamespace(last=None, gain=1.0, log=[], a=np.zeros(3), b=np.zeros((2, 3)), parts={})


def writes_after_it_has_stored(x):
    y = np.zeros(3) * x
    STORE.last = y
    y[0] = x
    return y[0]


def writes_through_what_it_has_stored(x):
    STORE.last = STORE.a * x
    STORE.last[0] = 0.0
    return np.sum(STORE.last)


def fills_a_dict_that_it_has_stored(x):
    STORE.parts = {}
    STORE.parts["x"] = x
    return x


def stores_in_each_trip(x):
    y = np.zeros(3) * x
    for i in range(3):
        y[i] = x
        STORE.log.append(y)
    return np.sum(y)


def stores_a_view(x):
    y = np.ones((2, 3)) * x
    STORE.log.append((1, y[0]))
    y[0, 1] = 2.0
    return np.sum(y)


def stores_a_buffer(x):
    STORE.a[0] = x
    STORE.log.append(STORE.a)
    return x


def binds_what_it_writes(x):
    STORE.a, old = STORE.a * x, STORE.a
    old[0] = x
    return np.sum(STORE.a)


def writes_a_flat_view(x):
    flat = STORE.b.ravel()
    flat[0] = x
    return np.sum(STORE.b) * x


def makes_it_on_one_path(x):
    if x > 1:
        STORE.made = x
    return x * x if hasattr(STORE, "made") else x


def transforms_what_goes_on(x):
    def scaled(v):
        STORE.gain = STORE.gain * v
        return STORE.gain * v

    return np.sum(s2s.vmap(scaled)(np.array([x, 2 * x])))


def jits_what_it_reads(x):
    @s2s.jit
    def scaled(v):
        STORE.gain = STORE.gain * v
        return v * v

    return scaled(x) * STORE.gain


def fills_in_a_local_function(x):
    def filled(v):
        STORE.a[0] = v * v
        return np.sum(STORE.a)

    return s2s.grad(filled)(x)


def goes_on(v):
    STORE.gain = STORE.gain * v
    return STORE.gain * v


def goes_on_twice(x):
    return s2s.grad(goes_on)(x) + s2s.grad(goes_on)(x)


def reads_after_its_callee(x):
    return s2s.grad(goes_on)(x) * STORE.gain


def goes_on_in_a_loop(x):
    for _ in range(3):
        x = x - 0.1 * s2s.grad(goes_on)(x)
    return x


def reads_from_the_end_what_it_writes(x):
    ENDS[2] = x * x
    return ENDS[-1] * x


def writes_from_the_end_what_it_reads(x):
    RECENT[-1] = x * x
    return RECENT[2] * x


def counts_what_it_adds(x):
    SEEN.add(7)
    return len(SEEN) * x


SEEN = {1}
ENDS, RECENT = [1.0, 2.0, 3.0], deque([1.0, 2.0, 3.0])
REFUSED = [
    (reads_from_the_end_what_it_writes, "is read in a call that writes into it"),
    (counts_what_it_adds, "is read in a call that writes into it"),
    (writes_from_the_end_what_it_reads, "is read in a call that writes into it"),
    (fills_in_a_local_function, "which the program transforms, writes to what lies around it"),
    (goes_on_twice, "is read in a call that writes into it"),
    (reads_after_its_callee, "is read in a call that writes into it"),
    (goes_on_in_a_loop, "is read in a call that writes into it"),
    (transforms_what_goes_on, "which the program transforms, writes to what lies around it"),
    (jits_what_it_reads, "which the program transforms, writes to what lies around it"),
    (writes_after_it_has_stored, "writes into this array, and stores it outside"),
    (writes_through_what_it_has_stored, "writes into this array, and stores it outside"),
    (fills_a_dict_that_it_has_stored, "writes into this dict, and stores it outside"),
    (stores_in_each_trip, "writes into this array, and stores it outside"),
    (stores_a_view, "writes into this array, and stores it outside"),
    (stores_a_buffer, "writes into this array, and stores it outside"),
    (binds_what_it_writes, "outside, and binds its name to another"),
    (writes_a_flat_view, "may or may not share memory with STORE_b"),
    (makes_it_on_one_path, "has a value on some paths only"),
    (Guarded().f, "whose class says what that does"),
    (reads_what_it_appends, "is read in a call that writes into it"),
    (knows_it_by_two_names(), "knows by two names"),
]


def test_what_is_stored_when_it_is_finished_is_read():
    kept = SimpleNamespace(last=None, log=[])

    def f(x):
        for i in range(3):
            y = np.zeros(3)
            y[i] = x
            kept.log.append(y)
        z = y * x
        z[0] = 1.0
        kept.last = z.copy()
        z[1] = x
        return np.sum(z**2)

    value = f(2.0)
    expected, kept.log = copy.deepcopy(vars(kept)), []
    assert s2s.value_and_grad(f)(2.0) == (value, 4.0 + 4 * 2.0**3)
    same(vars(kept), expected)


@pytest.mark.parametrize("f, words", REFUSED)
def test_what_cannot_be_followed_is_refused(f, words):
    with pytest.raises(UnsupportedError, match=words):
        s2s.grad(f)(2.0)


def test_a_file_cannot_write_outside(tmp_path):
    with pytest.raises(UnsupportedError):
        s2s.grad(Problem().counted).export(tmp_path / "slope.py", X)


# ---------------------------------------------------------------------------- keys of dicts outside

COUNTS: dict = {}


def counted(x):
    COUNTS["calls"] = COUNTS.get("calls", 0) + 1
    COUNTS["both"] = COUNTS.get("both", 0) + COUNTS["calls"]
    return np.sum(x**2) * COUNTS["both"]


def counted_by_branches(x):
    if "calls" in COUNTS:
        COUNTS["calls"] += 1
    else:
        COUNTS["calls"] = 1
    return np.sum(x**2)


def best_so_far(x):
    value = np.sum(x**2)
    if "best" not in COUNTS or value < COUNTS["best"]:
        COUNTS["best"] = value
    return value * COUNTS["best"]


def stored_and_asked(x):
    COUNTS[1] = np.sum(x)
    y = COUNTS.get(1, 0.0) * 2 + COUNTS.get(2, 1.0)
    return y * x[0] if 1 in COUNTS and 2 not in COUNTS else y


def counted_in_a_loop(x):
    COUNTS["n"] = COUNTS.get("n", 0)
    for i in range(len(x)):
        COUNTS["n"] = COUNTS.get("n", 0) + x[i]
    return np.sum(x**2) * COUNTS["n"]


BY_KEYS = [counted, counted_by_branches, best_so_far, stored_and_asked, counted_in_a_loop]


def called(f, times: int):
    """What several calls of `f` give, with what they leave in COUNTS."""
    COUNTS.clear()
    found = []
    for k in range(times):
        given = f(np.array([0.7, -0.4, 1.3]) / (k + 1))
        found.append((given, dict(COUNTS)))
    return found


@pytest.mark.parametrize("f", BY_KEYS)
@pytest.mark.parametrize(
    "through", [lambda f: f, pytest.param(s2s.jit, marks=pytest.mark.compile)], ids=["", "jit"])
def test_keys_of_dicts_outside(f, through):
    right = called(f, 3)
    transformed = through(s2s.value_and_grad(f))
    found = called(transformed, 3)
    for (value, counts), ((own, _), own_counts) in zip(right, found):
        assert np.isclose(own, value, rtol=1e-13) and counts.keys() == own_counts.keys()
        assert all(np.isclose(counts[key], own_counts[key], rtol=1e-13) for key in counts)

    def alone(x):
        COUNTS.clear()
        return f(x)

    x = np.array([0.7, -0.4, 1.3])
    near = [(alone(x + d) - alone(x - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(found[0][0][1], near, rtol=1e-6, atol=1e-7)


def made_in_a_loop(x):
    for i in range(len(x)):
        COUNTS["n"] = COUNTS.get("n", 0) + i
    return np.sum(x**2) * COUNTS["n"]


def made_in_a_long_loop(x):
    for i in range(1000):
        COUNTS["n"] = COUNTS.get("n", 0) + i
    return np.sum(x**2) * COUNTS["n"]


def asked_after_a_branch(x):
    if x[0] > 0:
        COUNTS["n"] = 1.0
    return np.sum(x**2) if "n" in COUNTS else np.sum(x)


@pytest.mark.parametrize("f, message", [
    (made_in_a_loop, "COUNTS_n, which lives outside the function, has a value on some paths only"),
    (made_in_a_long_loop, "COUNTS_n, which lives outside the function, has a value on some paths "
                          "only"),
    (asked_after_a_branch, "has a value on some paths only"),
    (s2s.vmap(counted), "each lane would go on from the one before"),
])
def test_keys_that_only_a_run_knows_are_refused(f, message):
    COUNTS.clear()
    x = np.array([0.7, -0.4, 1.3])
    with pytest.raises(UnsupportedError, match=message):
        f(np.stack([x, x])) if isinstance(f, type(s2s.vmap(counted))) else s2s.grad(f)(x)


def asked_for(x):
    return np.sum(x) if "calls" in COUNTS else np.sum(x**2)


def transforms_twice(x):
    return s2s.grad(counted)(x) + s2s.grad(counted)(x)


def writes_before_it_transforms(x):
    COUNTS["calls"] = 1
    return s2s.grad(asked_for)(x)


def transforms_in_a_loop(x):
    total = 0.0
    for _ in range(30):
        total = total + s2s.grad(asked_for)(x)
        COUNTS["calls"] = 1
    return total


@pytest.mark.parametrize("f", [transforms_twice, writes_before_it_transforms, transforms_in_a_loop])
def test_keys_that_a_called_function_asks_for_are_not_taken_from_before(f):
    COUNTS.clear()
    with pytest.raises(UnsupportedError, match="is read in a call that writes into it"):
        s2s.jit(f).lower(np.ones(2))


FORTH, BACK = 0.04, 30.0


def reaction(c):
    return np.array([BACK * c[1] - FORTH * c[0], FORTH * c[0] - BACK * c[1]])


def kinetics(p):
    global FORTH, BACK
    FORTH, BACK = p
    c, t = np.array([1.0, 0.0]), 0.0
    while t < 0.5:
        c = c + 0.1 * reaction(c)
        t += 0.1
    return c[1] ** 2


def test_the_source_is_printed_after_globals_have_become_of_numpy():
    """What followed the arguments of a call had been taken for more of them."""
    gradient = s2s.grad(kinetics)
    gradient(np.array([0.4, 3.0]))
    assert "def kinetics_grad" in gradient.source
