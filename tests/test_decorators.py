"""Transformations as decorators of functions and methods, which arguments they mean, and what can
be copied and pickled.
"""

import copy
import functools
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

import s2s

X = np.array([0.3, -0.7, 1.2])
W = np.array([1.0, 2.0, 3.0])


def loss(x, k=2.0):
    return np.sum(x**2) * k


@s2s.grad
def slope(x, k=2.0):
    return np.sum(x**2) * k


@s2s.grad
@partial(s2s.grad, argnums="k")
def twice(x, k):
    return np.sum(x) ** 2 * k * k * x[0]


@s2s.grad(argnums=-1)
def in_the_last(x, k):
    return np.sum(x**2) * k


class Model:
    scale = 3.0

    def __init__(self, w):
        self.w = w

    @s2s.grad
    def slope(self, x):
        return np.sum(self.w * x**2)

    @partial(s2s.grad, argnums=(1, 2))
    def slopes(self, x, y):
        return np.sum(self.w * x**2 * y)

    @s2s.value_and_grad(has_aux=True)
    def both(self, x):
        return np.sum(self.w * x**2), x[0]

    @classmethod
    @s2s.grad
    def inside_class(cls, x):
        return np.sum(x**2) * cls.scale

    @s2s.grad
    @classmethod
    def around_class(cls, x):
        return np.sum(x**2) * cls.scale

    @staticmethod
    @s2s.grad
    def inside_static(x):
        return np.sum(x**2)

    @s2s.grad
    @staticmethod
    def around_static(x):
        return np.sum(x**2)

    @s2s.vmap
    def lanes(self, x):
        return x * self.w[0]

    def energy(self, x):
        return np.sum(self.w * x) ** 2 + np.sum(self.slope(x))


model = Model(W)


def test_bare_and_with_arguments():
    assert np.allclose(slope(X), 4 * X)
    assert np.allclose(in_the_last(X, 2.0), np.sum(X**2))
    assert np.allclose(twice(X, 2.0), s2s.grad(lambda x, k: np.sum(x) ** 2 * 2 * k * x[0])(X, 2.0))


def test_methods():
    assert np.allclose(model.slope(X), 2 * W * X)
    assert np.allclose(model.slopes(X, 2.0)[0], 4 * W * X)
    assert np.allclose(Model.slopes(model, X, 2.0)[1], np.sum(W * X**2))
    (value, aux), bar = model.both(X)
    assert (value, aux) == (np.sum(W * X**2), X[0]) and np.allclose(bar, 2 * W * X)
    assert np.allclose(model.lanes(X), X)
    for owner in (model, Model):
        assert np.allclose(owner.inside_class(X), 6 * X) and np.allclose(
            owner.around_class(X), 6 * X
        )
        assert np.allclose(owner.inside_static(X), 2 * X) and np.allclose(
            owner.around_static(X), 2 * X
        )


def test_a_method_sees_its_object_as_it_is():
    other = Model(W)
    assert np.allclose(other.slope(X), 2 * W * X)
    other.w = other.w * 2
    assert np.allclose(other.slope(X), 4 * W * X)
    assert np.allclose(model.slope(X), 2 * W * X)


def test_a_transformed_method_inside_a_program():
    assert np.allclose(s2s.grad(model.energy)(X), 2 * np.sum(W * X) * W + 2 * W)
    assert np.allclose(s2s.jacrev(model.slope)(X), np.diag(2 * W))


def test_a_property_is_refused():
    with pytest.raises(s2s.UnsupportedError, match="grad of a property\n"
                                                   "Instead: write @property above @s2s.grad"):
        s2s.grad(property(lambda self: self.w))

    class Fixed:
        w = 2.0

        @property
        @s2s.value_and_grad
        def right(self, x=1.0):
            return x * x

    assert Fixed().right == (1.0, 2.0)


def test_partials_of_transformed_functions():
    product = s2s.grad(lambda a, b: np.sin(a * b))
    assert np.isclose(s2s.grad(partial(product, 2.0))(0.3), np.cos(0.6) - 0.6 * np.sin(0.6))


def test_functions_without_python_are_differentiated_by_their_rules():
    assert s2s.grad(np.sin)(1.0) == np.cos(1.0)
    assert s2s.grad(np.multiply, argnums=1)(2.0, 3.0) == 2.0


def test_a_wrapper_is_the_wrapper():
    @functools.wraps(loss)
    def halved(*args, **kwargs):
        return loss(*args, **kwargs) / (2 if "k" in kwargs else 4)

    assert np.allclose(s2s.grad(halved)(X), X)
    assert np.allclose(s2s.grad(halved)(X, k=3.0), 3 * X)
    assert np.allclose(s2s.grad(halved)(X, 3.0), 1.5 * X)
    assert "def loss_grad(x):" in s2s.grad(halved).lower(X).source
    assert np.allclose(s2s.hessian(halved)(X, k=3.0), 3 * np.eye(3))


def test_keywords_are_named_in_generated_code():
    def model(x, **options):
        return np.sum(x**2) * options["scale"] + options.get("shift", 0.0)

    gradient = s2s.grad(model)
    assert np.allclose(gradient(X, scale=2.0), 4 * X)
    assert "def model_grad(x, scale):" in gradient.source
    assert np.allclose(gradient(X, shift=1.0, scale=3.0), 6 * X)


# ---------------------------------------------------------------------------------- which arguments


def test_arguments_by_number_from_the_end_and_by_name():
    for argnums in (0, -2, "x", np.int64(0)):
        assert np.allclose(s2s.grad(loss, argnums=argnums)(X, 2.0), 4 * X)
    bars = s2s.grad(loss, argnums=("k", -2))(X, 2.0)
    assert np.isclose(bars[0], np.sum(X**2)) and np.allclose(bars[1], 4 * X)
    assert np.isclose(s2s.jacfwd(loss, argnums="k")(X, 2.0), np.sum(X**2))
    assert s2s.grad(lambda x, *, k: x * k, argnums="k")(2.0, k=3.0) == 2.0


@pytest.mark.parametrize(
    "argnums, message, remedy",
    [
        ("y", "loss is given no argument y, which argnums names", "name one of x, k"),
        (
            -3,
            "loss has 2 arguments, and argnums names argument -3",
            "number them from 0, or from -1 backwards",
        ),
        (2, "loss has 2 arguments, and argnums names argument 2", "number them from 0"),
    ],
)
def test_arguments_that_are_not_there(argnums, message, remedy):
    with pytest.raises(s2s.TypeMismatchError) as caught:
        s2s.grad(loss, argnums=argnums)(X, 2.0)
    assert message in str(caught.value) and f"Instead: {remedy}" in str(caught.value)


@pytest.mark.parametrize(
    "static", [{"static_argnums": 1}, {"static_argnums": (-1,)}, {"static_argnames": "n"}]
)
def test_static_arguments_decide_the_code(static):
    def powers(x, n):
        return sum([x**k for k in range(n)])

    # interpreted: what is inside a jit is transformed, not called
    f = s2s.grad(s2s.jit(powers, **static))
    assert f(2.0, 3) == 5.0 and f(2.0, n=4) == 17.0 and f(2.0, 3) == 5.0


def test_static_arguments_of_equal_value_and_other_type_are_told_apart():
    f = s2s.grad(
        s2s.jit(
            lambda x, n: x * (2 if isinstance(n, bool) else 3 if isinstance(n, int) else 4),
            static_argnums=1,
        )
    )
    assert [f(1.0, n) for n in (True, 1, 1.0)] == [2.0, 3.0, 4.0]
    g = s2s.grad(
        s2s.jit(lambda x, pair: x * (2 if isinstance(pair[0], int) else 3), static_argnums=1)
    )
    assert [g(1.0, pair) for pair in ((1,), (1.0,))] == [2.0, 3.0]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "make, message, remedy",
    [
        (
            lambda: s2s.jit(loss, static_argnames="n"),
            "static_argnames names n, and loss has no such argument",
            "name one of x, k",
        ),
        (
            lambda: s2s.jit(loss, static_argnums=5),
            "static_argnums names argument 5, and loss takes 2",
            "number them from 0",
        ),
        (
            lambda: s2s.jit(loss, static_argnums=1)(X, [1]),
            "the static argument k is a list, which cannot be hashed",
            "pass numbers, strings, tuples or functions there, or do not make it static",
        ),
    ],
)
def test_static_arguments_that_cannot_be(make, message, remedy):
    with pytest.raises(s2s.TypeMismatchError) as caught:
        make()
    assert message in str(caught.value) and f"Instead: {remedy}" in str(caught.value)


@pytest.mark.compile
def test_static_arguments_compiled():
    class Grid:
        def __init__(self, n):
            self.n = n

        @partial(s2s.jit, static_argnums=0, static_argnames="make")
        def fill(self, x, make=np.zeros):
            return make(self.n) + x

    assert np.array_equal(Grid(3).fill(2.0), [2.0, 2.0, 2.0])
    assert np.array_equal(Grid(2).fill(2.0, make=np.ones), [3.0, 3.0])
    f = s2s.jit(
        s2s.grad(lambda x, mode, n: np.sum(np.ones(n) * (np.sin(x) if mode == "sin" else x))),
        static_argnames=("mode", "n"),
    )
    assert np.isclose(f(0.5, "sin", 3), 3 * np.cos(0.5)) and f(0.5, "id", n=2) == 2.0


# ------------------------------------------------------------------------------- copies and pickles


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_transformed_functions_are_copied_and_pickled(again):
    for t in (slope, s2s.grad(loss), s2s.grad(partial(loss, k=2.0))):
        t(X)
        assert np.allclose(again(t)(X), 4 * X)
    assert np.allclose(again(model.slope)(X), 2 * W * X)
    assert np.allclose(again(s2s.grad(model.energy))(X), s2s.grad(model.energy)(X))


@pytest.mark.slow
def test_a_lambda_in_another_process(tmp_path):
    cloudpickle = pytest.importorskip("cloudpickle")
    scale = 3.0
    f = s2s.from_source(
        "def f(x):\n    return x**2 * scale\n",
        {"scale": scale, "__name__": "__main__"},
        "<nowhere>",
    )
    (tmp_path / "f.pickle").write_bytes(cloudpickle.dumps(s2s.grad(f)))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'f.pickle')!r}, 'rb'))(2.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "12.0", done.stderr


def test_objects_that_say_they_are_equal_are_told_apart():
    class Named:
        def __init__(self, name, w):
            self.name, self.w = name, w

        def __eq__(self, other):
            return self.name == other.name

        def __hash__(self):
            return hash(self.name)

    gradient = s2s.grad(lambda x, m: x * m.w)
    assert [gradient(1.0, Named("a", w)) for w in (2.0, 7.0)] == [2.0, 7.0]


# --------------------------------------------------------------------- whole derivatives of methods


class Spring:
    def __init__(self, w):
        self.w = w

    @s2s.jacfwd
    def by_columns(self, x):
        return self.w * x**2

    @s2s.jacrev
    def by_rows(self, x):
        return self.w * x**2

    @s2s.hessian
    def stiffness(self, x):
        return np.sum(self.w * x**3)

    @s2s.jacfwd
    @s2s.grad
    def of_slope(self, x):
        return np.sum(self.w * x**3)

    @partial(s2s.jacrev, argnums=(1, "k"))
    def of_both(self, x, k):
        return self.w * x**2 * k

    @s2s.hessian(argnums="k")
    def in_the_last(self, x, k):
        return np.sum(self.w * x**2) * k**3

    @s2s.value_and_grad
    def energy(self, x):
        return np.sum(self.w * x**2)

    @s2s.vmap
    def lanes(self, x):
        return self.w[0] * x

    @s2s.vmap
    @s2s.grad
    def slopes(self, x):
        return self.w[0] * x**2

    @s2s.jacrev
    @classmethod
    def around_class(cls, x):
        return x**2

    @classmethod
    @s2s.jacfwd
    def inside_class(cls, x):
        return x**2

    @s2s.hessian
    @staticmethod
    def of_static(x):
        return np.sum(x**3)


@dataclass(eq=False)
class SpringData(Spring):
    w: np.ndarray


@pytest.mark.parametrize("spring", [Spring(W), SpringData(W)], ids=["object", "dataclass"])
def test_methods_count_arguments_after_the_object(spring):
    for method in (spring.by_columns, spring.by_rows):
        assert np.allclose(method(X), np.diag(2 * W * X))
        assert np.allclose(method(x=X), np.diag(2 * W * X))
    for method in (spring.stiffness, spring.of_slope):
        assert np.allclose(method(X), np.diag(6 * W * X))
    in_x, in_k = spring.of_both(X, 2.0)
    assert np.allclose(in_x, np.diag(4 * W * X)) and np.allclose(in_k, W * X**2)
    assert np.isclose(spring.in_the_last(X, 2.0), 12 * np.sum(W * X**2))
    value, slope = spring.energy(X)
    assert value == np.sum(W * X**2) and np.allclose(slope, 2 * W * X)
    assert np.allclose(spring.lanes(X), W[0] * X) and np.allclose(spring.slopes(X), 2 * W[0] * X)
    for owner in (spring, type(spring)):
        assert np.allclose(owner.around_class(X), np.diag(2 * X)) and np.allclose(
            owner.inside_class(X), np.diag(2 * X)
        )
        assert np.allclose(owner.of_static(X), np.diag(6 * X))
    before = spring.by_columns(X)
    spring.w = spring.w * 2
    assert np.allclose(spring.by_columns(X), 2 * before) and np.allclose(
        spring.by_rows(X), 2 * before
    )
    spring.w = W


def test_methods_taken_from_their_class():
    assert np.allclose(Spring.by_columns(Spring(W), X), np.diag(2 * W * X))
    assert np.allclose(Spring.stiffness(Spring(W), X), np.diag(6 * W * X))


@s2s.hessian
def curvature(x):
    return np.sum(x**3)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))]
)
def test_whole_derivatives_are_copied_and_pickled(again):
    for t in (
        curvature,
        Spring(W).stiffness,
        s2s.jacfwd(s2s.grad(loss)),
        s2s.jacrev(partial(loss, k=2.0)),
    ):
        assert np.array_equal(again(t)(X), t(X))
    assert again(curvature) is curvature


def test_a_cotangent_of_what_is_no_data_is_none():
    y, pull = s2s.vjp(
        lambda spring, how, x: spring.w[0] * np.sin(x) if how == "sin" else x, Spring(W), "sin", 0.5
    )
    assert pull(1.0) == (None, None, np.cos(0.5))


def test_whole_derivatives_are_transformed_like_any_function():
    j = s2s.jacrev(lambda x: x**3)
    curved = np.zeros((len(X),) * 3)
    np.einsum("iii->i", curved)[:] = 6 * X
    assert np.allclose(s2s.jacfwd(j)(X), curved) and np.allclose(s2s.jacrev(j)(X), curved)
    assert np.allclose(s2s.vmap(j)(X), 3 * X**2)
    assert np.allclose(s2s.jvp(j, (X,), (X,))[1], np.diag(6 * X**2))
    assert np.allclose(s2s.grad(lambda x: np.sum(j(x)))(X), 6 * X)
    assert np.allclose(s2s.jacfwd(s2s.grad(lambda x: np.sum(x**3)))(X), np.diag(6 * X))
    assert "y_bar = np.eye(" in s2s.jacrev(lambda x: np.sin(x) * x[0]).lower(X).source


@pytest.mark.compile
def test_whole_derivatives_are_compiled():
    j = s2s.jacrev(lambda x: np.sin(x) * x[0])
    assert np.allclose(s2s.jit(j)(X), j(X), rtol=1e-14)


class Weighted:
    def __init__(self, w):
        self.w = w

    def loss(self, x):
        return np.sum(self.w * x**2)


def test_what_is_kept_with_a_function_is_not_taken_for_another():
    first, second = Weighted(1.0), Weighted(2.0)
    for model in (first, second, first):
        assert np.allclose(s2s.vjp(model.loss, X)[1](1.0)[0], 2 * model.w * X)
        assert np.isclose(s2s.jvp(model.loss, (X,), (X,))[1], 2 * model.w * X @ X)
        assert np.isclose(s2s.linearize(model.loss, X)[1](X), 2 * model.w * X @ X)
        assert np.allclose(s2s.hvp(model.loss, (X,), (X,)), 2 * model.w * X)

    def square(x):
        return x * x

    assert s2s.jvp(square, (3.0,), (1.0,)) == (9.0, 6.0)

    @functools.wraps(square)
    def fourth(x):
        return square(x) ** 2

    assert s2s.jvp(fourth, (3.0,), (1.0,)) == (81.0, 108.0) and s2s.jvp(square, (3.0,), (1.0,)) == (
        9.0,
        6.0,
    )
