"""Programs that catch exceptions: the path that is taken is the one that is differentiated."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from judge import judge, same

import s2s
from s2s import pipeline
from s2s.errors import UnsupportedError
from s2s.front import build_from_text

PROGRAMS = []
COMPILED = []


def program(*args, derivative=True, compiled=False):
    """A program with arguments; `derivative` says that it has one there (Python's zero division has
    none beside it).
    """
    def record(f):
        PROGRAMS.append(pytest.param(f, args, derivative, id=f.__name__))
        if compiled:
            COMPILED.append(PROGRAMS[-1])
        return f
    return record


class Diverged(Exception):
    pass


class Worse(Diverged):
    pass


@program(2.0)
@program(0.0, derivative=False)
def safe_div(x):
    try:
        y = 1.0 / x
    except ZeroDivisionError:
        y = 0.0
    return y * y


@program(0.3)
@program(-0.3)
def raised_here(x):
    try:
        if x < 0:
            raise ValueError("negative")
        y = np.sqrt(x)
    except ValueError:
        y = -x * 3.0
    else:
        y = y + 1.0
    return y * y


@program(1.5, 1)
@program(1.5, 2)
@program(1.5, 3)
def writes_as_many_as_there_are(x, n):
    a = np.zeros(3)
    try:
        a[:2] = np.ones(n) * x
    except ValueError:
        a[0] = x * x
    return np.sum(a * a)


@program(np.array([0.3, 0.2, -0.1, 0.7]), 1)
@program(np.array([0.3, 0.2, -0.1, 0.7]), 5)
def writes_into_parts_of_rows(x, n):
    w = np.outer(x, x)
    try:
        w[0, 1:3] -= 1.0 / (1.0 + x[n % 4 - 1] ** 2)
        w[np.array([0, 1]), n:] *= w[n, n:]
    except IndexError:
        w[1, ::2] *= x[0]
    return np.sum(w * w * x)


@program(1.5, 1, 5)
@program(1.5, 2, 1)
@program(1.5, 1, 1)
def writes_into_a_row(x, n, m):
    a = np.zeros((3, n))
    try:
        a[1] = np.ones(m) * x
    except ValueError:
        a[0] = x * x
    return np.sum(a * a)


def root(x):
    if x < 0:
        raise ValueError("negative")
    return np.sqrt(x)


@program(0.3)
@program(-0.3)
def callee_raises(x):
    y = 0.5 * x
    try:
        y = root(x) * 2.0 + y
    except (KeyError, ValueError):
        pass
    return y * y


@program(np.array([0.3, 0.2, -0.1, 0.7]), compiled=True)
@program(np.array([0.3, 0.2, 0.1, 0.7]))
def loop_in_try(x):
    s = 1.0
    try:
        for i in range(len(x)):
            s = s * (1.0 + root(x[i]))
    except ValueError:
        s = s * 10.0 + i
    else:
        s = s + 0.5
    return s * s


@program(np.array([0.3, 0.2, -0.1, 0.7, -0.2, 0.4]))
def try_in_loop(x):
    s = 1.0
    for v in x:
        try:
            s = s * (1.0 + root(v))
        except ValueError:
            continue
        s = s + v
        try:
            if s > 3.0:
                raise Diverged(s * 2.0)
        except Diverged as e:
            s = e.args[0] * v
            break
    return s * s


@program(0.4, 3)
@program(0.4, 0)
@program(-0.4, 2)
@program(-0.4, 1)
def kinds(x, n):
    try:
        if n == 0:
            raise KeyError(n)
        if n == 1:
            raise Worse
        if n == 2:
            raise Diverged(x)
        y = x * x
    except (KeyError, IndexError):
        y = x
    except Worse:
        y = 2.0 * x * x
    except Diverged as e:
        y = 3.0 * e.args[0]
    finally:
        x = x + 1.0
    return y * x


@program(0.4)
@program(0.0, derivative=False)
def nested_reraise(x):
    total = 0.0
    try:
        try:
            total = total + 1.0 / x
        except ZeroDivisionError as err:
            total = 5.0
            raise ValueError("again") from err
        finally:
            total = total * 2.0
    except ValueError:
        total = total + x
    return total * total


@program(0.4)
@program(-0.4)
def bare_reraise(x):
    y = 1.0
    try:
        try:
            y = y + root(x)
        except ValueError:
            y = x * x
            raise
        y = y * 2.0
    except Exception:
        y = y * 7.0
    return y


@program(0.4)
@program(-0.4)
def return_in_finally(x):
    y = x
    try:
        y = root(x)
        return y * 5.0
    except ValueError:
        return y
    finally:
        y = 3.0 * y
        if x > 5.0:
            return y  # noqa: B012


@program(-0.4)
@program(0.4)
def return_swallows(x):
    y = x
    try:
        y = root(x)
    finally:
        return y * x  # noqa: B012


@program(np.array([0.1, 0.7, 0.4]), 2)
@program(np.array([0.1, 0.7, 0.4]), 5)
@program(np.array([0.1, 0.7, 0.4]), -4)
def index_errors(x, k):
    try:
        return x[k] * x[0]
    except IndexError:
        return np.sum(x)


@program(0.5)
@program(-0.5)
def math_domain(x):
    try:
        return math.log(x) + math.sqrt(x)
    except ValueError:
        return x * x


@program(0.5, 2.0)
@program(0.5, -2.0)
def assertion(x, y):
    try:
        assert y > 0, "bad"
        z = x * y
    except AssertionError:
        z = x - y
    return z


@program(3.0, 10)
def while_in_try(x, n):
    k = 0
    try:
        while 1.0 / (x - 0.5 * k) < 5.0:
            k += 1
            if k > n:
                break
        else:
            x = x * 2.0
    except ZeroDivisionError:
        x = x * x
    return x * k


@program(np.array([0.3, -0.2, 0.5]), 2.0)
def guarded_expression(x, y):
    s = 0.0
    try:
        s = root(x[0]) + (root(x[1]) if y > 3.0 else x[1] / float(y)) + (y > 1.0 and root(x[2]))
        s = s * root(x[1])
    except ValueError:
        s = s * 3.0
    return s


@program(np.array([0.3, 0.2, 0.5]))
def array_state(x):
    a = x.copy()
    try:
        for i in range(len(a)):
            a[i] = a[i] * 2.0
            if a[i] < 0.5:
                raise Diverged
            a[i] = a[i] + 1.0
    except Diverged:
        a[0] = 5.0 * a[1]
    return np.sum(a * a)


@program(np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.5, -1.0]), compiled=True)
@program(np.array([[2.0, 3.0], [3.0, 1.0]]), np.array([0.5, -1.0]))
def whitened(a, b):
    s = a + a.T
    try:
        low = np.linalg.cholesky(s)
        y = np.linalg.solve(low, b)
    except np.linalg.LinAlgError:
        y = b * s[0, 1]
    return np.sum(y * y)


@program(np.array([[2.0, 4.0], [1.0, 2.0]]), np.array([0.5, -1.0]), compiled=True)
@program(np.array([[2.0, 3.0], [1.0, 2.0]]), np.array([0.5, -1.0]))
def damped_where_singular(a, b):
    damping = 0.0
    for k in range(3):
        try:
            x = np.linalg.solve(a + damping * np.eye(2), b)
            break
        except np.linalg.LinAlgError:
            damping = 10.0 * damping + 0.1
    else:
        return 0.0
    return np.sum(x * x) + damping


@s2s.jit
def rooted(x):
    return math.sqrt(x) + 1.0


def compiled_function_raises(x):
    try:
        y = rooted(x) * x
    except ValueError:
        y = 7.0 * x * x
    return y


@program(2.5, compiled=True)
@program(0.0)
def key_raises(x):
    try:
        y = sorted([x, 2.0], key=lambda v: 1.0 / v)[0]
    except ZeroDivisionError:
        y = 7.0 * x
    return y * y


@program(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0]), 1, compiled=True)
@program(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0]), -1)
@program(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]), 1)
def lengths_differ_on_one_side(x, z, c):
    try:
        y = np.sum(x * z if c > 0 else x * x)
    except ValueError:
        y = 7.0 * np.sum(x)
    return y * y


@program(2.0, 3, compiled=True)
@program(2.0, -3)
def shift(x, n):
    try:
        y = x * (1 << n)
    except ValueError:
        y = 7.0 * x
    return y * y


@program(1.5)
@program(1e200, derivative=False)
@program(2.0, derivative=False)
def updates_raise(x):
    try:
        x **= 2
        x /= x - 4.0
    except (ZeroDivisionError, OverflowError):
        x = 7.0 * x
    return x


@program(np.array([1.0, 2.0, 3.0]), 1.5, compiled=True)
@program(np.array([1.0, 2.0, 3.0]), 9.0, compiled=True)
def the_largest_of_none(x, least):
    try:
        y = max(x[x > least])
    except ValueError:
        y = 7.0 * np.sum(x)
    return y * y


@program(np.array([1.0, 2.0, 3.0]), 1.5)
@program(np.array([1.0, 2.0, 3.0]), 9.0)
def the_smallest_of_none_by_a_key(x, least):
    try:
        y = min(x[x > least], key=lambda v: -v)
    except ValueError:
        y = 7.0 * np.sum(x)
    return y * y


@program(np.array([1.0, 2.0, 3.0]), 1.5)
@program(np.array([1.0, 2.0, 3.0]), 9.0)
def the_product_of_none(x, least):
    try:
        y = functools.reduce(lambda a, b: a * b, x[x > least])
    except TypeError:
        y = 7.0 * np.sum(x)
    return y * y


@program(2.0, 5000, derivative=True)
@program(2.0, 3, derivative=True)
def scaling_overflows(x, k):
    try:
        y = math.ldexp(x, k)
    except OverflowError:
        y = 7.0 * x
    return y * y


@pytest.mark.parametrize("f, args, derivative", PROGRAMS)
def test_program(f, args, derivative):
    if derivative:
        judge(f, *args)
    else:
        assert same(s2s.value_and_grad(f)(*args)[0], f(*args))


@pytest.mark.compile
@pytest.mark.parametrize("f, args, derivative", COMPILED)
def test_compiled_program(f, args, derivative):
    # these compile for a minute
    judge(f, *args, compiled=True, second=f not in (whitened, damped_where_singular))


def mixed_numbers(x, n):
    total = 0.0
    for i in range(n):
        total = total + np.sin(x)
    try:
        return 1.0 / total
    except ZeroDivisionError:
        return x


def one_kind_of_number(x, n):
    total = 0.0
    for i in range(n):
        total = total + math.sin(x)
    try:
        return 1.0 / total
    except ZeroDivisionError:
        return x


def stack_of_matrices(a):
    try:
        return np.sum(np.linalg.inv(a))
    except np.linalg.LinAlgError:
        return 0.0 * a[0, 0, 0]


def no_class(x):
    try:
        return 1.0 / x
    except 3:  # noqa: B030
        return x


class Stuck(Exception):
    def __init__(self, x):
        super().__init__(x)
        self.x = x


def own_attribute(x):
    try:
        raise OverflowError(x * x)
    except OverflowError as e:
        return e.x


def args_instead(x):
    try:
        raise Stuck(x * x)
    except Stuck as e:
        return e.args[0]


def before_any_call(x):
    try:
        return 1.0 / x
    except ZeroDivisionError:
        return x


def outside_of_a_handler(x):
    raise


@s2s.custom_vjp
def ruled(x):
    return math.log(x)


ruled.defvjp(lambda x: (math.log(x), x), lambda x, y_bar: (y_bar / x,))


def rule_raises(x):
    try:
        return ruled(x)
    except ValueError:
        return 7.0 * x


slope = s2s.grad(lambda x: math.log(x) * x)


def derivative_raises(x):
    try:
        return slope(x)
    except ValueError:
        return 7.0 * x


def strict(x, z):
    try:
        return sum([a * b for a, b in zip(x, z, strict=True)])
    except ValueError:
        return x[0]


REFUSED = [
    (
        rule_raises,
        (0.5,),
        "ruled, which has a rule for its derivative, may raise ValueError, "
        "which a `try` around the call catches",
        "call it outside the try, or write what it does in a plain function",
        "ruled(x)",
    ),
    (
        derivative_raises,
        (0.5,),
        "may raise ValueError, which a `try` around the call catches",
        "call it outside the try",
        "slope(x)",
    ),
    (
        strict,
        (np.ones(2), np.ones(3)),
        "zip(..., strict=True) where its ValueError is caught",
        "compare the lengths first",
        "zip(x, z",
    ),
    (
        mixed_numbers,
        (0.5, 3),
        "whether total is a number of Python's",
        "say which: `float(total)`",
        "1.0 / total",
    ),
    (
        stack_of_matrices,
        (np.ones((2, 3, 3)),),
        "np.linalg.inv of a stack of matrices",
        "loop over the matrices",
        "np.linalg.inv(a)",
    ),
    (
        no_class,
        (0.5,),
        "`except` of something that is no class of exceptions",
        "name classes of exceptions",
        "except 3",
    ),
    (
        own_attribute,
        (0.5,),
        "the attribute x of an exception",
        "read what it was made of: `.args`",
        "return e.x",
    ),
    (
        outside_of_a_handler,
        (0.5,),
        "`raise` without an exception",
        "name the exception that is raised",
        "raise",
    ),
]


@pytest.mark.parametrize("f, args, message, remedy, line", REFUSED)
def test_what_cannot_be_told_is_refused(f, args, message, remedy, line):
    with pytest.raises(UnsupportedError) as caught:
        s2s.grad(f)(*args)
    text = str(caught.value)
    assert message in text and f"Instead: {remedy}" in text and line in text and "^" in text


@pytest.mark.lengthy
def two_that_may_fail(x):
    try:
        y = math.sqrt(x)
        z = math.log(y - 1.0)
    except ValueError:
        z = 0.0
    return z * x


@pytest.mark.lengthy
def test_a_caught_exception_leaves_no_flag():
    """Each path ends with what the handler does there; nothing asks afterwards which it was."""
    text = s2s.value_and_grad(two_that_may_fail).lower(9.0).source
    assert not any(word in text for word in ("True", "False", "_bound", "raise"))
    for x in (-1.0, 0.5, 9.0):
        judge(two_that_may_fail, x)


@pytest.mark.lengthy
def test_the_remedies_work():
    judge(one_kind_of_number, 0.5, 3)
    judge(one_kind_of_number, 0.5, 0)
    judge(args_instead, 0.5)
    assert s2s.grad(before_any_call)(0.5) == -4.0


def test_before_any_call_it_is_not_known_what_raises():
    with pytest.raises(UnsupportedError, match="whether this raises is known only at a call(.|\n"
                                               ")*call the function first"):
        s2s.grad(before_any_call).source  # noqa: B018


def test_unpacking_inside_a_generator_in_a_try_is_refused():
    def pairs(x, n):
        try:
            rows = []
            for i in range(n):
                rows.append([x, np.sin(x + i)])
            s = sum(p * q for p, q in rows)
        except ValueError:
            s = 0.0
        return s

    with pytest.raises(s2s.UnsupportedError, match="in the middle of a comprehension"):
        s2s.grad(pairs)(0.3, 2)


def asked_by_isinstance(x):
    try:
        y = math.exp(x)
    except (ArithmeticError, ValueError) as error:
        return 7.0 * x if isinstance(error, OverflowError) else x
    return y


def asked_by_type(x):
    try:
        y = 1.0 / (x - 3.0)
    except ArithmeticError as error:
        return 7.0 * x if type(error) is ZeroDivisionError else x
    return y


def asked_in_a_helper(x):
    def overflows(function, *numbers):
        try:
            function(*numbers)
        except (ArithmeticError, ValueError) as error:
            return isinstance(error, OverflowError)
        return False

    return 7.0 * x if overflows(pow, x, 2) else x


class Far(Exception):
    pass


def asked_of_one_s_own(x):
    try:
        if x > 100.0:
            raise Far(x)
        y = math.sqrt(x)
    except Exception as error:
        return 7.0 * x if not isinstance(error, ValueError) and hasattr(error, "args") else x
    return y


@pytest.mark.parametrize(
    "f, xs",
    [
        (asked_by_isinstance, (1.0, 800.0)),
        (asked_by_type, (1.0, 3.0)),
        (asked_in_a_helper, (2.0, 1e200)),
        (asked_of_one_s_own, (4.0, 200.0, -1.0)),
    ],
    ids=lambda f: getattr(f, "__name__", ""),
)
def test_the_class_of_what_was_caught(f, xs):
    for x in xs:
        value, slope = s2s.value_and_grad(f)(x)
        h = 1e-6 * max(abs(x), 1.0)
        assert value == f(x)
        if f(x) in (7.0 * x, x):
            assert slope == f(x) / x
        else:
            assert abs(slope - (f(x + h) - f(x - h)) / (2 * h)) < 1e-6 * max(abs(slope), 1.0)


def test_a_dump_that_asks_whether_something_overflows_is_read_back():
    def f(x, y):
        try:
            y = 1.0 / (1.0 + x ** 2)
        except Exception:
            y = 3.0
        return y

    once = s2s.jit(f).lower(0.5, 1.0).ssa
    assert "overflows(pow, x, 2)" in once
    again = pipeline.render(
        build_from_text(once, {"np": np, "math": math}, "<dump>"), annotate=True
    ).text
    assert again == once


@pytest.mark.parametrize("lengths", [(3, 2), (2, 3), (3, 3)])
def test_strict_zip_is_strict(lengths):
    def dot(x, z):
        total = 0.0
        for a, b in zip(x, z, strict=True):
            total = total + a * b
        return total

    args = [np.arange(1.0, n + 1) for n in lengths]
    if lengths[0] == lengths[1]:
        judge(dot, *args)
    else:
        word = "shorter" if lengths[1] < lengths[0] else "longer"
        with pytest.raises(ValueError, match=rf"zip\(\) argument 2 is {word} than argument 1"):
            s2s.grad(dot)(*args)


def test_a_compiled_function_inside_a_try_is_read_statement_by_statement():
    assert s2s.value_and_grad(compiled_function_raises)(-1.0) == (7.0, -14.0)
    value, slope = s2s.value_and_grad(compiled_function_raises)(4.0)
    assert value == 12.0 and abs(slope - 4.0) < 1e-12


def pairs_or_products(x):
    try:
        a = x.reshape(2, 2)
    except ValueError:
        a = x[:2] * x[1:]
    try:
        b = x.reshape(3, 1)
    except ValueError:
        b = x[:2] * x[1:3]
    return np.sum(a) + np.sum(b)


def test_lanes_of_arrays_whose_rank_a_handler_decides():
    """Of a lane at a time, or refused: rules that count axes do not know them."""
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(s2s.vmap(pairs_or_products)(np.array([x, 2 * x])),
                               [pairs_or_products(x), pairs_or_products(2 * x)])
    np.testing.assert_allclose(s2s.jacfwd(pairs_or_products)(x), [3.0, 5.0, 3.0])
    with pytest.raises(UnsupportedError, match="lanes that each make"):
        s2s.hessian(pairs_or_products)(x)


def squared_or_left(x):
    for _ in range(2):
        try:
            if np.exp(-(x**2)):
                continue
            x = 0.5
        except Exception:
            x = 2.0
        finally:
            x *= 0.9
    return x


def powers(x):
    try:
        y = x**2 * 3.0
    except OverflowError:
        y = x * 1e-3
    return y


def exponentials(x):
    try:
        y = math.exp(x)
    except OverflowError:
        y = x * 2.0
    return y


def factorials(x):
    try:
        y = math.gamma(x)
    except OverflowError:
        y = x * 3.0
    return y


@pytest.mark.parametrize(
    "f", [squared_or_left, powers, exponentials, factorials], ids=lambda f: f.__name__
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_whether_a_number_overflows_is_asked_in_each_lane(f):
    """Of lanes, which are NumPy's numbers: their powers are infinite where Python's raise, and
    functions of math raise.
    """
    lanes = np.array([0.3, 2.0, 720.0, 1e200])
    values, slopes = s2s.vmap(s2s.value_and_grad(f))(lanes)
    assert [*values] == [f(x) for x in lanes] == [*s2s.vmap(f)(lanes)]
    assert [*slopes] == [s2s.grad(f)(x) for x in lanes]
    h = 1e-6
    np.testing.assert_allclose(
        slopes[:2], [(f(x + h) - f(x - h)) / (2 * h) for x in lanes[:2]], rtol=1e-6
    )
