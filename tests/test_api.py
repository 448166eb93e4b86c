"""What users call: conventions, structures, sources, errors that say what to do."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys

import numpy as np
import pytest
import scipy.optimize

import s2s
from s2s import passes, pipeline

K = 3.0
WEIGHTS = np.array([1.0, 2.0, 3.0])


def f(x, y):
    a = np.sin(x) * y
    return a + np.exp(-x)


def loss(w, b, X, y):
    p = 1 / (1 + np.exp(-(X @ w + b)))
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


def relax(u, k, sweeps):
    u = u.copy()
    for s in range(sweeps):
        for i in range(1, len(u) - 1):
            u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u)


def settle(x, rate):
    n = 0
    while abs(x) > 1e-3:
        if x > 1.0:
            x = x * rate
        else:
            x = np.sin(x) * rate
        n += 1
    return x + n


def with_global(x):
    return K * np.sum(WEIGHTS * x)


def squares(x):
    return np.sum(x * x)


def overwrite(x):
    x[0] = x[0] * 2.0
    return np.sum(x)


def pair(x, scale=2.0):
    return scale * x * x, x + 1.0


def nested(params, x):
    w, b = params
    return np.sum(w * x) + b


class Model:
    def __init__(self, k):
        self.k = k

    def energy(self, x):
        return self.k * x * x


EXAMPLES = [
    (f, (0, 1), (0.3, 2.0)),
    (
        loss,
        (0, 1),
        (np.array([0.1, -0.2]), 0.3, np.arange(6.0).reshape(3, 2), np.array([0.0, 1.0, 1.0])),
    ),
    (relax, (0, 1), (np.array([0.0, 1.0, 4.0, 2.0, 1.0]), 0.1, 3)),
    (settle, (0, 1), (2.5, 0.7)),
]


def central(function, args, k):
    """Central differences in argument `k`."""
    x = np.asarray(args[k], float)
    result = np.zeros(x.size)
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = 1e-6
        a, b = (
            function(*args[:k], (x + s * step.reshape(x.shape))[()], *args[k + 1 :])
            for s in (1, -1)
        )
        result[i] = (a - b) / 2e-6
    return result.reshape(x.shape)


@pytest.mark.parametrize(
    "function, argnums, args", EXAMPLES, ids=lambda x: getattr(x, "__name__", "")
)
def test_gallery_gradients(function, argnums, args):
    with passes.checked():
        value, bars = s2s.value_and_grad(function, argnums)(*args)
        assert value == pytest.approx(function(*args), rel=1e-14)
        for k, bar in zip(argnums, bars):
            np.testing.assert_allclose(bar, central(function, args, k), rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(bar, s2s.grad(function, k)(*args), rtol=1e-12)


@pytest.mark.parametrize(
    "function, argnums, args", EXAMPLES, ids=lambda x: getattr(x, "__name__", "")
)
def test_gallery_second_order(function, argnums, args):
    s2s.check_grads(function, args, order=1)
    s2s.check_grads(s2s.grad(function), args, order=1)


@pytest.mark.parametrize(
    "function, argnums, args", EXAMPLES, ids=lambda x: getattr(x, "__name__", "")
)
def test_source_before_any_call_runs(function, argnums, args):
    namespace = {}
    exec(s2s.grad(function, argnums).source, namespace)
    got = namespace[f"{function.__name__}_grad"](*args)
    for k, bar in zip(argnums, got):
        np.testing.assert_allclose(bar, central(function, args, k), rtol=1e-6, atol=1e-8)


def test_source_before_any_call_reads_as_in_the_gallery():
    text = s2s.grad(f, (0, 1)).source
    assert "y_bar = np.sin(x)" in text and "np.exp(-x)" in text and "sum_to_shape" not in text
    text = s2s.grad(settle, (0, 1)).source
    assert (
        "for x in reversed(x_tape):" in text
        and "sum_to_shape" not in text
        and "n" not in text.split("def")[1].split()
    )


# -------------------------------------------------------------------------------------- conventions


@pytest.mark.lengthy
def test_argnums_decides_the_structure():
    assert isinstance(s2s.grad(f)(0.3, 2.0), float)
    assert isinstance(s2s.grad(f, (1,))(0.3, 2.0), tuple)
    assert s2s.grad(f, (0, 1))(0.3, 2.0) == (s2s.grad(f, 0)(0.3, 2.0), s2s.grad(f, 1)(0.3, 2.0))


def test_keywords_and_defaults():
    def g(x, y=3.0, *, z=2.0):
        return x * y * z

    assert s2s.grad(g)(1.0) == 6.0
    assert s2s.grad(g)(x=1.0, z=5.0) == 15.0


def test_has_aux():
    def g(x):
        return x * x, x + 1.0

    assert s2s.grad(g, has_aux=True)(3.0) == (6.0, 4.0)
    assert s2s.value_and_grad(g, has_aux=True)(3.0) == ((9.0, 4.0), 6.0)


def test_jvp_gives_value_and_tangent():
    y, y_dot = s2s.jvp(f, (0.3, 2.0), (1.0, 0.5))
    assert y == pytest.approx(f(0.3, 2.0))
    x_bar, y_bar = s2s.grad(f, (0, 1))(0.3, 2.0)
    assert y_dot == pytest.approx(x_bar + 0.5 * y_bar)


def test_vjp_gives_value_and_pullback():
    (a, b), pull = s2s.vjp(pair, 3.0)
    assert (a, b) == (18.0, 4.0)
    assert pull((1.0, 0.5)) == (12.5,)


def test_linearize():
    y, push = s2s.linearize(f, 0.3, 2.0)
    assert y == f(0.3, 2.0) and push(1.0, 0.0) == pytest.approx(s2s.grad(f)(0.3, 2.0))


def test_jacobians_and_hessian():
    def g(x):
        return x * x * x

    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(s2s.jacrev(g)(x), np.diag(3 * x * x))
    np.testing.assert_allclose(s2s.jacfwd(g)(x), np.diag(3 * x * x))
    np.testing.assert_allclose(s2s.hessian(squares)(x), 2 * np.eye(3))
    np.testing.assert_allclose(s2s.hvp(squares, (x,), (np.ones(3),)), 2 * np.ones(3))


def test_tuple_argument_has_a_tuple_of_derivatives():
    w, x = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    w_bar, b_bar = s2s.grad(nested)((w, 0.5), x)
    np.testing.assert_allclose(w_bar, x)
    assert b_bar == 1.0


def test_list_argument_has_a_list_of_derivatives():
    def g(p):
        return p[0] * p[1][0]

    assert s2s.grad(g)([2.0, (3.0,)]) == [3.0, (2.0,)]
    assert s2s.value_and_grad(g, (0,))([2.0, (3.0,)]) == (6.0, ([3.0, (2.0,)],))
    assert s2s.vjp(g, [2.0, (3.0,)])[1](1.0) == ([3.0, (2.0,)],)
    assert s2s.jit(s2s.grad(g))([2.0, (3.0,)]) == [3.0, (2.0,)]


def helper(p, x):
    return np.sum(p["w"] * x)


@pytest.mark.lengthy
def test_dict_argument_has_a_dict_of_derivatives():
    def g(params, x):
        s = 0.0
        for p in params["layers"]:
            s = s + helper(p, x) + p["b"]
        for key, value in params["layers"][0].items():
            s = s + np.sum(value)
        return s * params["scale"]

    x = np.array([1.0, 2.0])
    params = {"scale": 2.0, "layers": [{"w": np.ones(2), "b": 0.5}, {"w": np.ones(2), "b": 0.1}]}
    for dg in (s2s.grad(g), s2s.jit(s2s.grad(g))):
        got = dg(params, x)
        assert [list(p) for p in got["layers"]] == [["w", "b"], ["w", "b"]]
        np.testing.assert_allclose(got["layers"][0]["w"], 2 * (x + 1))
        np.testing.assert_allclose(got["layers"][1]["w"], 2 * x)
        np.testing.assert_allclose(got["scale"], g(params, x) / 2)
    s2s.check_grads(g, (params, x))


def test_what_kinds_of_callable():
    assert s2s.grad(lambda x: x * x)(3.0) == 6.0
    assert s2s.grad(Model(2.0).energy)(3.0) == 12.0
    assert s2s.grad(functools.partial(f, y=2.0))(0.3) == s2s.grad(f)(0.3, 2.0)
    assert s2s.grad(functools.partial(f, 0.3))(2.0) == pytest.approx(np.sin(0.3))


def test_nests():
    def cube(x):
        return x * x * x

    assert s2s.grad(s2s.grad(cube))(2.0) == 12.0
    assert s2s.grad(s2s.grad(s2s.grad(cube)))(2.0) == 6.0
    assert s2s.jvp(s2s.grad(cube), (2.0,), (1.0,)) == (12.0, 12.0)
    assert s2s.grad(s2s.grad(cube)).__name__ == "cube"
    assert "def cube_grad_grad(x):" in s2s.grad(s2s.grad(cube)).source


def test_inside_a_program():
    df = s2s.grad(f)

    def newton(x, y):
        return x - df(x, y)

    assert s2s.grad(newton)(0.3, 2.0) == pytest.approx(1 - s2s.grad(s2s.grad(f))(0.3, 2.0))


def test_arguments_are_not_written_into():
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(s2s.grad(overwrite)(x), [2.0, 1.0])
    s2s.jvp(overwrite, (x,), (np.ones(2),))
    s2s.vjp(overwrite, x)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_captured_values_are_read_at_each_call(monkeypatch):
    df = s2s.grad(with_global)
    x = np.ones(3)
    np.testing.assert_allclose(df(x), 3 * WEIGHTS)
    monkeypatch.setitem(globals(), "K", 5.0)
    np.testing.assert_allclose(df(x), 5 * WEIGHTS)
    monkeypatch.setitem(globals(), "K", np.array([1.0, 2.0, 3.0]))
    with pytest.raises(s2s.TypeMismatchError):
        df(x)


def step(x):
    return x * x


def calls_step(x):
    return step(x) + 1.0


def test_function_that_is_bound_again_is_looked_into_again(monkeypatch):
    df, ddf = s2s.grad(calls_step), s2s.grad(s2s.grad(calls_step))
    assert (df(3.0), ddf(3.0)) == (6.0, 2.0)
    monkeypatch.setitem(globals(), "step", lambda x: x * x * x)
    assert (df(3.0), ddf(3.0)) == (27.0, 18.0)


def test_lengths_share_generated_code(monkeypatch):
    made = []
    monkeypatch.setattr(
        pipeline, "front_build", lambda *a, build=pipeline.front_build: made.append(a) or build(*a)
    )
    df = s2s.grad(squares)
    for n in range(2, 30):
        np.testing.assert_allclose(df(np.ones(n)), 2 * np.ones(n))
    assert len(made) == 1
    df(np.ones(1))
    df(np.ones((2, 2)))
    assert len(made) == 3


def test_rank_0_arrays_are_numbers():
    assert s2s.grad(f)(np.array(0.3), 2.0) == s2s.grad(f)(0.3, 2.0)


# ------------------------------------------------------------------------------------------ looking


def test_docstring_says_what_it_computes():
    df = s2s.grad(squares)
    df(np.ones(3))
    assert (
        "The derivative of squares (test_api.py, line" in df.source and "x: float64[:]" in df.source
    )


def test_wraps_metadata():
    df = s2s.grad(f)
    assert df.__name__ == "f" and df.__wrapped__ is f and repr(df) == "<s2s.grad of 'f'>"


def test_lower_shows_the_stages():
    lowered = s2s.grad(relax).lower(np.ones(5), 0.1, 3)
    assert "def relax_grad" in lowered.source
    assert "float64" in lowered.ssa
    assert "for i in range" in lowered.loops
    assert lowered.memory == 0
    assert s2s.grad(relax, 1).lower(np.ones(5), 0.1, 3).memory == 3 * 3 * 8


def test_export_runs_without_s2s(tmp_path):
    path = s2s.grad(relax, (0, 1)).export(tmp_path / "relax_grad.py", np.ones(5), 0.1, 3)
    assert "s2s" not in path.read_text()
    code = "import relax_grad, numpy as np; print(relax_grad.relax_grad(np.arange(5.0), 0.1, 2)[1])"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert float(out.stdout) == pytest.approx(s2s.grad(relax, 1)(np.arange(5.0), 0.1, 2))


@pytest.mark.compile
@pytest.mark.parametrize(
    "function, argnums, args", EXAMPLES, ids=lambda x: getattr(x, "__name__", "")
)
def test_compiled_export_runs_without_s2s(function, argnums, args, tmp_path):
    path = s2s.jit(s2s.grad(function, argnums)).export(tmp_path / "exported.py", *args)
    assert "s2s" not in path.read_text().replace("s2s.grad", "")
    namespace = {}
    exec(path.read_text(), namespace)
    for got, wanted in zip(
        namespace[f"{function.__name__}_grad"](*args), s2s.grad(function, argnums)(*args)
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_export_refuses_captured_values(tmp_path):
    with pytest.raises(s2s.UnsupportedError, match="reads .*K.*\nInstead: make them arguments"):
        s2s.grad(with_global).export(tmp_path / "g.py", np.ones(3))


def test_dump_writes_files_that_run(tmp_path):
    s2s.dump(s2s.grad(f), tmp_path, 0.3, 2.0)
    files = sorted(tmp_path.glob("*.py"))
    assert files[0].name == "001_f_front.py" and files[-1].name.endswith("_f_grad_source.py")
    for path in files:
        exec(path.read_text(), {})


def test_stages_are_named_after_their_passes():
    names = [name for name, _ in s2s.stages(s2s.grad(f), 0.3, 2.0)]
    assert names[0] == "front" and "vjp" in names and names[-1] == "dce"


def test_html_links_lines():
    df = s2s.grad(f)
    df(0.3, 2.0)
    page = df._repr_html_()
    assert page.count("data-line") > 3 and "def f_grad" in page and "a = np.sin(x) * y" in page


@pytest.mark.slow
def test_command_line(tmp_path):
    (tmp_path / "model.py").write_text("import numpy as np\n\ndef g(x):\n"
                                       "    return np.sin(x) * x\n")
    command = [sys.executable, "-m", "s2s", "source", "model:g", "--grad"]
    out = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "def g_grad(x):" in out.stdout


def test_check_grads_knows_two_modes():
    s2s.check_grads(f, (0.3, 2.0), modes="fwd")
    for modes in (("sideways",), "reverse", ()):
        with pytest.raises(ValueError, match="there are 'fwd' and 'rev'"):
            s2s.check_grads(f, (0.3, 2.0), modes=modes)


def test_check_grads_notices_a_wrong_derivative():
    s2s.check_grads(f, (0.3, 2.0))

    def wrong(x):
        return s2s.stop_gradient(x) * x

    with pytest.raises(AssertionError, match="of wrong gives"):
        s2s.check_grads(wrong, (2.0,), order=1)


# ----------------------------------------------------------------------------------------- refusing


def test_integer_argument_is_refused():
    with pytest.raises(
        s2s.TypeMismatchError,
        match=r"x, which is an integer: it has no derivative\n"
        r"Instead: pass a float, e.g. `x = 2.0`",
    ):
        s2s.grad(f)(2, 2.0)


def test_result_that_is_no_number_is_refused():
    def g(x):
        return x * 2.0

    with pytest.raises(
        s2s.TypeMismatchError,
        match=r"return x \* 2.0(.|\n)*returns an array float64\[:\](.|\n)*np.sum",
    ):
        s2s.grad(g)(np.ones(3))
    with pytest.raises(s2s.TypeMismatchError, match="returns a tuple"):
        s2s.grad(pair)(1.0)


@pytest.mark.compile
@pytest.mark.parametrize("way", [lambda f: f, s2s.jit])
def test_an_array_of_one_number_is_one(way):
    def objective(x):
        return np.array([[np.sum(x**3)]])

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(way(s2s.grad(objective))(x), [3.0, 12.0])
    value, slope = way(s2s.value_and_grad(lambda x: (x - 2.0)**2))(np.array([5.0]))
    assert (value.shape, value[0], slope.shape, slope[0]) == ((1,), 9.0, (1,), 6.0)
    fit = scipy.optimize.minimize(s2s.value_and_grad(lambda x: objective(x)**2), x, jac=True)
    assert fit.fun < 1e-6 and fit.success


@pytest.mark.parametrize("what", [id, 3, "sin"])
def test_what_has_no_source_is_refused(what):
    with pytest.raises(s2s.SourceError, match="Instead: (pass a function that is written in "
                                              "Python|define it)"):
        s2s.grad(what)(1.0)


def test_missing_argument_is_named():
    with pytest.raises(
        s2s.TypeMismatchError, match=r"f_grad\(x, y\): missing a required argument: 'y'"
    ):
        s2s.grad(f)(1.0)


def test_complex_result_is_refused():
    with pytest.raises(s2s.TypeMismatchError, match="one real number.*complex128|complex"):
        s2s.grad(lambda x: x * x)(1j)


def test_key_that_is_not_there_is_refused():
    with pytest.raises(s2s.TypeMismatchError, match="'b' is not among the keys 'a'"):
        s2s.grad(lambda p: p["b"])({"a": 1.0})


def test_mismatched_shapes_name_the_line():
    def g(x, y):
        return np.sum(x * y)

    with pytest.raises(ValueError) as e:
        s2s.grad(g)(np.ones(3), np.ones(4))
    said = str(e.value)
    assert "return np.sum(x * y)" in said and "in g" in said


def test_nan_is_nan_as_in_numpy():
    assert np.isnan(s2s.grad(f)(np.nan, 2.0))


def test_nan_stops_where_checking_is_on(monkeypatch):
    def g(x):
        y = np.log(x)
        return y * x

    monkeypatch.setenv("S2S_CHECK", "1")
    with np.errstate(invalid="ignore"), pytest.raises(FloatingPointError):
        s2s.grad(g)(-1.0)


def test_results_share_no_memory_with_arguments_or_each_other():
    x, y = np.arange(3.0), np.ones(3)
    for f in (lambda x, y: np.sum(x * y), lambda x, y: np.sum(x + y)):
        for a, b in (s2s.grad(f, (0, 1))(x, y), s2s.value_and_grad(f, (0, 1))(x, y)[1]):
            assert not any(
                np.shares_memory(p, q) for p, q in ((a, b), (a, x), (a, y), (b, x), (b, y))
            )


def layer(p, x):
    for W, b in p[:-1]:
        x = np.tanh(x @ W + b)
    W, b = p[-1]
    return x @ W + b


def network_loss(p, x, y):
    return np.mean((layer(p, x) - y) ** 2)


@pytest.mark.parametrize("kind", [tuple, list])
def test_tuples_of_parameters_given_to_a_function_that_is_called(kind):
    rng = np.random.default_rng(0)
    p = kind((rng.normal(size=(a, b)), rng.normal(size=b)) for a, b in [(3, 4), (4, 4), (4, 1)])
    args = p, rng.normal(size=(5, 3)), rng.normal(size=(5, 1))
    s2s.check_grads(network_loss, args, order=1)
    found = s2s.grad(network_loss)(*args)
    assert type(found) is kind and found[1][0].shape == (4, 4)


def pairs(x):
    for k in range(3):
        x = np.sin(x) * x
    return (x, (x * 2, x * x)), 1.0


@pytest.mark.lengthy
def test_tuples_in_the_results_of_a_function_that_is_called():
    def g(x):
        (a, (b, c)), d = pairs(x)
        return a + b * c * d

    s2s.check_grads(g, (0.7,))


def test_keyword_only_arguments_in_checks_and_matrices():
    def g(x, *, a=2.0):
        return x**a

    s2s.check_grads(g, (2.0,))
    assert np.isclose(s2s.hessian(g)(2.0, a=3.0), 12.0)
    assert np.isclose(s2s.jacrev(g)(2.0, a=3.0), 12.0)


@pytest.mark.parametrize("matrix", [s2s.jacfwd, s2s.jacrev, s2s.hessian])
def test_matrix_of_derivatives_in_an_integer_member_is_refused(matrix):
    with pytest.raises(
        s2s.TypeMismatchError, match="it has no derivative|with respect to 3, which is an integer"
    ):
        matrix(lambda p: np.sum(p["a"] ** 2) * p["n"])({"a": WEIGHTS, "n": 3})


def test_option_that_jit_does_not_have_is_named():
    with pytest.raises(
        s2s.TypeMismatchError,
        match="jit has no option fast\n"
        "Instead: its options are static_argnums, static_argnames, target",
    ):
        s2s.jit(f, fast=True)


def test_argnums_that_are_no_numbers_are_refused():
    with pytest.raises(s2s.TypeMismatchError, match="argnums is 1.5\nInstead: give the numbers"):
        s2s.grad(f, argnums=1.5)


def test_source_of_jvp_and_vjp_before_a_call():
    f = lambda x, y: x * y  # noqa: E731
    assert "return x * y, x_dot * y + y_dot * x" in s2s.jvp(f).source
    assert "def f_vjp(x, y, y_bar):" in s2s.vjp(f).source
    assert str(inspect.signature(s2s.jvp(f))) == "(x, y, x_dot, y_dot, /)"
    space = {}
    exec(s2s.jvp(s2s.grad(f)).source, space)
    assert space["f_grad_jvp"](2.0, 3.0, 1.0, 0.5) == (3.0, 0.5)


def test_arguments_missing_in_jvp_and_vjp():
    def f(x, y):
        return x * y

    for call in (
        lambda: s2s.jvp(f, (1.0,), (1.0,)),
        lambda: s2s.vjp(f, 1.0),
        lambda: s2s.check_grads(f, (1.0,)),
    ):
        with pytest.raises(
            s2s.TypeMismatchError,
            match=r"(?s)def f\(x, y\):.*f\(x, y\): missing a required argument: 'y'\n"
            "Instead: pass the arguments that it takes",
        ):
            call()


def test_a_result_as_long_as_a_product_of_lengths():
    """Its cotangent is as long, and is not what the way forwards asks."""
    def f(a):
        y = np.ravel(a).copy()
        for k in range(1, len(y)):
            y[k] = 0.5 * y[k - 1] + y[k] ** 2
        return y

    a = np.arange(1.0, 7.0).reshape(2, 3)
    y, pullback = s2s.vjp(f, a)
    np.testing.assert_array_equal(y, f(a))
    (bar,) = pullback(np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(bar, [[0.0625, 0.5, 1.5], [4.0, 10.0, 0.0]])
