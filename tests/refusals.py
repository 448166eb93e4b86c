# ruff: noqa: B018, E731, F821, F841, F842, PLW0602, PLW0603, UP031
"""Programs that s2s refuses, each with what to write instead: what docs/refusals.md shows, and its
test runs.

`refused` programs come first, and below each the same with the remedy followed, which works.  Both
take the same arguments.  A program is asked for its gradient, unless `ask`, an expression in `f`
and `args`, says otherwise.
"""

from __future__ import annotations

import functools
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.special

import s2s

A, B = np.array([0.3, -0.7, 1.2]), np.array([0.9, 0.4, -0.2])
M = np.array([[0.3, 0.8], [-0.4, 1.1]])
HISTORY: list = []
NEGATED = operator.methodcaller("__neg__")  # of C


@dataclass
class Refusal:
    """A program, its arguments, what is asked of it, and the same program with the remedy
    followed.
    """

    program: Callable
    args: tuple
    section: str
    ask: str | None
    followed: Callable | None = None
    followed_args: tuple = ()
    followed_ask: str | None = None


REFUSALS: list[Refusal] = []
SECTION = [""]


def section(title: str) -> None:
    SECTION[0] = title


def refused(*args, ask: str | None = None):
    def register(program: Callable) -> Callable:
        REFUSALS.append(Refusal(program, args, SECTION[0], ask))
        return program

    return register


def instead(*args, ask: str | None = None):
    """The program above with the remedy followed; with arguments of its own if these are the
    remedy.
    """

    def register(program: Callable) -> Callable:
        last = REFUSALS[-1]
        assert last.followed is None
        last.followed, last.followed_args, last.followed_ask = program, args or last.args, ask
        return program

    return register


# ------------------------------------------------------------------------------------------------
section("Statements and expressions")


@refused(0.3)
def a_function_that_yields(x):
    yield x * x


@instead()
def a_function_that_yields_followed(x):
    return x * x


def running_sums(x):
    sums = np.zeros(3)
    for k in range(3):
        sums[k] = np.sum(x[:k])
        yield sums


@refused(A)
def a_generator_of_what_it_changes(x):
    return sum([np.sum(sums) for sums in running_sums(x)])


def copied_sums(x):
    sums = np.zeros(3)
    for k in range(3):
        sums[k] = np.sum(x[:k])
        yield sums.copy()


@instead()
def a_generator_of_what_it_changes_followed(x):
    return sum([np.sum(sums) for sums in copied_sums(x)])


@refused(0.3)
async def a_coroutine(x):
    return x * x


@instead()
def a_coroutine_followed(x):
    return x * x


@refused(0.3)
def an_import_inside(x):
    import quicksine
    return quicksine.sin(x)


@instead()
def an_import_inside_followed(x):
    return np.sin(x)


@refused(0.3)
def a_class_inside(x):
    class Point:
        pass
    return x * x


@instead()
def a_class_inside_followed(x):
    return x * x


@refused(0.3)
def a_file_that_is_opened(x):
    with open("log.txt") as log:
        y = x * x
    return y


@instead()
def a_file_that_is_opened_followed(x):
    return x * x


@refused(A)
def the_truth_of_an_array(x):
    if x > 0:
        return np.sum(x)
    return 0.0


@instead()
def the_truth_of_an_array_followed(x):
    if np.all(x > 0):
        return np.sum(x)
    return 0.0


@refused(0.3, 0.5)
def a_name_that_is_not_bound(x, y):
    return x * z


@instead()
def a_name_that_is_not_bound_followed(x, y):
    return x * y


@refused(0.3, 2)
def two_kinds_of_value(x, n):
    if n > 1:
        y = x
    else:
        y = (x, x)
    return np.sin(y)


@instead()
def two_kinds_of_value_followed(x, n):
    if n > 1:
        y = x
    else:
        y = x + x
    return np.sin(y)


@refused(0.3)
def evaluated_text(x):
    return eval("x * x")


@instead()
def evaluated_text_followed(x):
    return x * x


@refused(0.3)
def the_names_of_a_frame(x):
    return locals()["x"] * x


@instead()
def the_names_of_a_frame_followed(x):
    return x * x


@refused(A)
def an_iterator_that_is_used_up(x):
    squares = map(np.square, x)
    return sum(squares) + max(squares)


@instead()
def an_iterator_that_is_used_up_followed(x):
    squares = list(map(np.square, x))
    return sum(squares) + max(squares)


@refused(A)
def an_iterator_whose_array_changes(x):
    y = x.copy()
    for v in (v for v in y if v > 0):
        y[2] = 2 * v
    return np.sum(y)


@instead()
def an_iterator_whose_array_changes_followed(x):
    y = x.copy()
    for v in y:
        if v > 0:
            y[2] = 2 * v
    return np.sum(y)


@refused(A)
def a_star_before_a_list_that_grows(x):
    positive = [v for v in x if v > 0]
    return max(*positive)


@instead()
def a_star_before_a_list_that_grows_followed(x):
    positive = [v for v in x if v > 0]
    return max(positive)


@refused(A, np.array([2, 0, 2]))
def a_loop_over_a_set(x, k):
    total = 0.0
    for i in set(k):
        total += x[i] ** 2
    return total


@instead()
def a_loop_over_a_set_followed(x, k):
    total = 0.0
    for i in sorted(set(k)):
        total += x[i] ** 2
    return total


@refused(A, 3)
def a_key_made_of_run_time_data(x, n):
    squares = {}
    for i in range(n):
        squares[f"x{i}"] = x[i] ** 2
    return squares["x0"]


@instead()
def a_key_made_of_run_time_data_followed(x, n):
    squares = {}
    for i in range(n):
        squares[i] = x[i] ** 2
    return squares[0]


@refused(A, np.array([2, 0, 2]), ask="s2s.vjp(f, *args)")
def a_set_that_is_returned(x, k):
    return set(k), np.sum(x)


@instead(ask="s2s.vjp(f, *args)")
def a_set_that_is_returned_followed(x, k):
    return sorted(set(k)), np.sum(x)


# ------------------------------------------------------------------------------------------------
section("Functions that s2s cannot look into")


@functools.lru_cache
def cached(x):
    return x * x


def not_cached(x):
    return x * x


@refused(0.3)
def a_cached_function(x):
    return cached(x) + 1.0


@instead()
def a_cached_function_followed(x):
    return not_cached(x) + 1.0


@refused(1.5)
def a_foreign_function(x):
    return scipy.special.zeta(x, 1.0)


@instead()
def a_foreign_function_followed(x):
    total = 0.0
    for n in range(1, 20):
        total += n ** -x
    return total


@refused(0.3)
def a_numpy_function_that_is_not_known(x):
    return np.trim_zeros(np.array([x * x, 0.0]))[0]


@instead()
def a_numpy_function_that_is_not_known_followed(x):
    return x * x


@refused(0.3)
def python_s_own_random_numbers(x):
    return x * random.random()


@instead(0.3, 0.5)
def python_s_own_random_numbers_followed(x, drawn):
    return x * drawn


@refused(A)
def a_method_that_is_not_known(x):
    return np.sum(x.tobytes())


@instead()
def a_method_that_is_not_known_followed(x):
    return np.sum(x)


@refused(A)
def an_attribute_that_is_not_there(x):
    return x.volume * 2.0


@instead()
def an_attribute_that_is_not_there_followed(x):
    return x.size * 2.0 + x[0]


@refused(A)
def a_keyword_that_is_not_known(x):
    return np.sum(x, axes=0)


@instead()
def a_keyword_that_is_not_known_followed(x):
    return np.sum(x, axis=0)


def scaled(x, k):
    return x * k


@refused(0.3)
def an_argument_that_is_missing(x):
    return scaled(x)


@instead()
def an_argument_that_is_missing_followed(x):
    return scaled(x, 2.0)


@refused(0.3)
def an_argument_too_many(x):
    return scaled(x, 2.0, 3.0)


@instead()
def an_argument_too_many_followed(x):
    return scaled(x, 2.0)


# ------------------------------------------------------------------------------------------------
section("Arrays")


@refused(A)
def more_indices_than_axes(x):
    return x[0, 1]


@instead()
def more_indices_than_axes_followed(x):
    return x[1]


@refused(A, 1.0)
def an_index_that_is_no_integer(x, k):
    return x[k]


@instead()
def an_index_that_is_no_integer_followed(x, k):
    return x[int(k)]


@refused(A)
def shapes_that_never_broadcast(x):
    return np.sum(np.ones(3) * np.ones(4)) * x[0]


@instead()
def shapes_that_never_broadcast_followed(x):
    return np.sum(np.ones(4) * np.ones(4)) * x[0]


@refused(A, np.ones(4))
def lengths_that_do_not_go_together(x, y):
    return np.sum(x + y)


@instead(A, B)
def lengths_that_do_not_go_together_followed(x, y):
    return np.sum(x + y)


@refused(M, A)
def a_product_of_unequal_lengths(a, x):
    return np.sum(a @ x)


@instead(M, A[:2])
def a_product_of_unequal_lengths_followed(a, x):
    return np.sum(a @ x)


@refused(A)
def a_value_that_does_not_fit(x):
    y = np.zeros(2)
    y[:] = np.ones(3) * x[0]
    return np.sum(y)


@instead()
def a_value_that_does_not_fit_followed(x):
    y = np.zeros(2)
    y[:] = np.ones(2) * x[0]
    return np.sum(y)


@refused(0.3)
def a_number_that_is_indexed(x):
    return x[0]


@instead(A)
def a_number_that_is_indexed_followed(x):
    return x[0]


@refused(A)
def a_list_outside_that_is_read_and_written(x):
    HISTORY.append(np.sum(x))
    return HISTORY[-1] * x[0]


@instead()
def a_list_outside_that_is_read_and_written_followed(x):
    value = np.sum(x)
    HISTORY.append(value)
    return value * x[0]


@refused(A)
def axes_that_are_not_there(x):
    return np.sum(x, axis=2)


@instead()
def axes_that_are_not_there_followed(x):
    return np.sum(x, axis=0)


@refused(A, 1)
def an_axis_that_depends_on_data(x, k):
    return np.sum(np.sum(x, axis=k))


@instead()
def an_axis_that_depends_on_data_followed(x, k):
    return np.sum(np.sum(x, axis=0))


@refused(A)
def an_array_of_objects(x):
    return np.array([x[0], "name"])[0]


@instead()
def an_array_of_objects_followed(x):
    return np.array([x[0], 1.0])[0]


@refused(A)
def a_ragged_array(x):
    return np.sum(np.array([[x[0], x[1]], [x[2]]]))


@instead()
def a_ragged_array_followed(x):
    return np.sum(np.array([[x[0], x[1]], [x[2], 0.0]]))


@refused(M)
def a_matrix_that_is_not_square(a):
    return np.linalg.det(np.ones((2, 3)) * a[0, 0])


@instead(ask="s2s.grad(f)(*args)")
def a_matrix_that_is_not_square_followed(a):
    return np.linalg.det(np.eye(2) * a[0, 0])


@refused(M)
def a_complete_orthogonal_matrix(a):
    q, r = np.linalg.qr(a[:, :1], "complete")
    return np.sum(q[:, 0] * r[0, 0])


@instead(ask="s2s.grad(f)(*args)")
def a_complete_orthogonal_matrix_followed(a):
    q, r = np.linalg.qr(a[:, :1])
    return np.sum(q[:, 0] * r[0, 0])


@refused(M)
def einsum_that_loses_its_ellipsis(a):
    return np.sum(np.einsum("...i->i", a))


@instead(ask="s2s.grad(f)(*args)")
def einsum_that_loses_its_ellipsis_followed(a):
    return np.sum(np.einsum("ji->i", a))


@refused(M[0])
def a_number_or_a_part_that_is_added_to(x):
    y, a = 1.0, x.copy()
    if x[0] > 0:
        y = a[..., 0]
    y += 2.0
    return np.sum(a) * y


@instead(ask="s2s.grad(f)(*args)")
def a_number_or_a_part_that_is_added_to_followed(x):
    y, a = 1.0, x.copy()
    if x[0] > 0:
        y = a[..., 0]
    y = y + 2.0
    return np.sum(a) * y


# ------------------------------------------------------------------------------------------------
section("What is asked of a function")


def square(x):
    return x * x


@refused(2)
def an_integer_to_differentiate(x):
    return x * x


@instead(2.0)
def an_integer_to_differentiate_followed(x):
    return x * x


@refused(A)
def a_result_that_is_no_number(x):
    return x * x


@instead()
def a_result_that_is_no_number_followed(x):
    return np.sum(x * x)


@refused(0.3)
def a_result_that_is_a_tuple(x):
    return x * x, x


@instead(ask="s2s.grad(f, has_aux=True)(*args)")
def a_result_that_is_a_tuple_followed(x):
    return x * x, x


@refused(0.3, ask="s2s.grad(f, argnums=3)(*args)")
def argnums_out_of_range(x):
    return x * x


@instead(ask="s2s.grad(f, argnums=0)(*args)")
def argnums_out_of_range_followed(x):
    return x * x


@refused(0.3, ask="s2s.jvp(f, args, ())")
def a_tangent_that_is_missing(x):
    return x * x


@instead(ask="s2s.jvp(f, args, (1.0,))")
def a_tangent_that_is_missing_followed(x):
    return x * x


@refused(A, ask="s2s.jvp(f, args, (np.ones(4),))")
def a_tangent_of_another_shape(x):
    return np.sum(x * x)


@instead(ask="s2s.jvp(f, args, (np.ones(3),))")
def a_tangent_of_another_shape_followed(x):
    return np.sum(x * x)


@refused(0.3, ask="s2s.vmap(f)(*args)")
def a_number_for_vmap(x):
    return x * x


@instead(A, ask="s2s.vmap(f)(*args)")
def a_number_for_vmap_followed(x):
    return x * x


@refused(A, B, ask="s2s.vmap(f, in_axes=(0,))(*args)")
def in_axes_of_another_length(x, y):
    return x * y


@instead(ask="s2s.vmap(f, in_axes=(0, 0))(*args)")
def in_axes_of_another_length_followed(x, y):
    return x * y


@refused(A, ask="s2s.vmap(f)(*args)")
def an_axis_that_nobody_names(x):
    return x - s2s.lax.pmean(x, "cases")


@instead(ask="s2s.vmap(f, axis_name='cases')(*args)")
def an_axis_that_nobody_names_followed(x):
    return x - s2s.lax.pmean(x, "cases")


@refused(A, ask="s2s.vmap(f, axis_name='cases')(*args)")
def a_collective_that_some_lanes_reach(x):
    if x > 0:
        return x / s2s.lax.psum(x, "cases")
    return 0.0


@instead(ask="s2s.vmap(f, axis_name='cases')(*args)")
def a_collective_that_some_lanes_reach_followed(x):
    total = s2s.lax.psum(np.where(x > 0, x, 0.0), "cases")
    if x > 0:
        return x / total
    return 0.0


@refused(0.3, ask="s2s.jit(f, target='tpu')(*args)")
def a_target_that_is_not_known(x):
    return x * x


@instead(ask="s2s.jit(f, target='cpu')(*args)")
def a_target_that_is_not_known_followed(x):
    return x * x


@refused(0.3, 0.5, ask="s2s.grad(f)(*args)")
def too_many_arguments(x):
    return x * x


@instead(0.3)
def too_many_arguments_followed(x):
    return x * x


@refused("0.3")
def a_text_for_a_number(x):
    return np.sin(x)


@instead(0.3)
def a_text_for_a_number_followed(x):
    return np.sin(x)


@refused(np.array(["a", "b"]))
def an_array_of_texts(x):
    return np.sum(x)


@instead(A)
def an_array_of_texts_followed(x):
    return np.sum(x)


@refused({"u": 0.3})
def a_key_that_is_not_there(p):
    return p["v"] * 2.0


@instead({"v": 0.3}, ask="s2s.grad(f)(*args)")
def a_key_that_is_not_there_followed(p):
    return p["v"] * 2.0


@refused(A, 3, ask="s2s.jacrev(f)(*args)")
def a_jacobian_of_an_integer(x, n):
    return x * n, n * 2


@instead(A, 3, ask="s2s.jacrev(f, has_aux=True)(*args)")
def a_jacobian_of_an_integer_followed(x, n):
    return x * n, n * 2


@refused(A + 0.5j, ask="s2s.jacfwd(f)(*args)")
def a_jacobian_in_complex_numbers(z):
    return np.sin(z) * z


@instead(A + 0.5j, ask="s2s.jacfwd(f, holomorphic=True)(*args)")
def a_jacobian_in_complex_numbers_followed(z):
    return np.sin(z) * z


@refused(A, ask="s2s.jacrev(f)(*args)")
def a_jacobian_of_complex_numbers(x):
    return np.exp(1j * x)


@instead(A, ask="s2s.jacrev(f)(*args)")
def a_jacobian_of_complex_numbers_followed(x):
    z = np.exp(1j * x)
    return np.real(z), np.imag(z)


@refused(A, ask="s2s.jacrev(f, holomorphic=True)(*args)")
def holomorphic_in_real_numbers(z):
    return z * z


@instead(A + 0j, ask="s2s.jacrev(f, holomorphic=True)(*args)")
def holomorphic_in_real_numbers_followed(z):
    return z * z


@refused(A, ask="s2s.vjp(f, *args, has_aux=True)")
def nothing_beside_the_result(x):
    return x * x


@instead(A, ask="s2s.vjp(f, *args, has_aux=True)")
def nothing_beside_the_result_followed(x):
    return x * x, np.sum(x)


@refused(A, ask="s2s.vjp(f, *args)[1](np.ones(2))")
def a_cotangent_of_another_length(x):
    return x * x


@instead(A, ask="s2s.vjp(f, *args)[1](np.ones(3))")
def a_cotangent_of_another_length_followed(x):
    return x * x


@refused(A, ask="s2s.linearize(f, *args)[1](1j * args[0])")
def a_complex_tangent_of_a_real_number(x):
    return x * x


@instead(A, ask="s2s.linearize(f, *args)[1](args[0])")
def a_complex_tangent_of_a_real_number_followed(x):
    return x * x


@refused(A, ask="s2s.linearize(f, *args)[1]()")
def a_tangent_for_no_argument(x):
    return x * x


@instead(A, ask="s2s.linearize(f, *args)[1](args[0])")
def a_tangent_for_no_argument_followed(x):
    return x * x


@refused(A)
def a_pullback_outside_its_branch(x):
    y, pull = s2s.vjp(np.sin, x) if x[0] > 0.0 else s2s.vjp(np.cos, x)
    return np.sum(pull(y)[0])


@instead(ask="s2s.grad(f)(*args)")
def a_pullback_outside_its_branch_followed(x):
    if x[0] > 0.0:
        y, pull = s2s.vjp(np.sin, x)
        slope = pull(y)[0]
    else:
        y, pull = s2s.vjp(np.cos, x)
        slope = pull(y)[0]
    return np.sum(slope)


@refused(A + 0.5j, ask="s2s.jacobian(f, sparse=True)(*args)")
def a_sparse_jacobian_of_complex_numbers(z):
    return z * z


@instead(A, np.array([0.5, 0.5, 0.5]), ask="s2s.jacobian(f, (0, 1), sparse=True)(*args)")
def a_sparse_jacobian_of_complex_numbers_followed(re, im):
    z = re + 1j * im
    return np.real(z * z), np.imag(z * z)


@refused(A, np.random.default_rng(0), ask="s2s.jacobian(f, sparse=True)(*args)")
def a_sparse_jacobian_with_draws(x, rng):
    return x * rng.normal(size=len(x))


@instead(A, B, ask="s2s.jacobian(f, sparse=True)(*args)")
def a_sparse_jacobian_with_draws_followed(x, drawn):
    return x * drawn


@refused(A, ask="s2s.vmap(s2s.jacobian(f, sparse=True))(np.stack([*args]))")
def a_sparse_jacobian_transformed(x):
    return x * x


@instead(A, ask="s2s.vmap(s2s.jacobian(f))(np.stack([*args]))")
def a_sparse_jacobian_transformed_followed(x):
    return x * x


@refused(0.3, ask="s2s.jit(s2s.grad(f)).export('slope.py', *args)")
def a_function_that_only_scipy_computes(x):
    return scipy.special.i0(x) * x


@instead(0.3, ask="s2s.jit(s2s.grad(f))(*args)")
def a_function_that_only_scipy_computes_followed(x):
    return scipy.special.i0(x) * x


# ------------------------------------------------------------------------------------------------
@refused((A, B), ask="s2s.grad(f).source")
def source_before_a_call_of_what_takes_a_tuple(layer):
    W, b = layer
    return np.sum(np.tanh(W * A + b))


@instead(ask="s2s.grad(f).lower(*args).source")
def source_before_a_call_of_what_takes_a_tuple_followed(layer):
    W, b = layer
    return np.sum(np.tanh(W * A + b))


@refused({"W": A, "b": B}, ask="s2s.grad(f).source")
def source_before_a_call_of_what_takes_a_dict(layer):
    return np.sum(np.tanh(layer["W"] * A + layer["b"]))


@instead(ask="s2s.grad(f).lower(*args).source")
def source_before_a_call_of_what_takes_a_dict_followed(layer):
    return np.sum(np.tanh(layer["W"] * A + layer["b"]))


section("What is checkpointed")


@refused(0.3, 4)
def as_many_snapshots_as_the_run_says(x, n):
    for _ in s2s.checkpoint(range(n), snapshots=n // 2):
        x = np.sin(x)
    return x


@instead()
def as_many_snapshots_as_the_run_says_followed(x, n):
    for _ in s2s.checkpoint(range(n), snapshots=2):
        x = np.sin(x)
    return x


@refused(0.3, 4)
def no_snapshots(x, n):
    for _ in s2s.checkpoint(range(n), snapshots=0):
        x = np.sin(x)
    return x


@instead()
def no_snapshots_followed(x, n):
    for _ in s2s.checkpoint(range(n), snapshots=1):
        x = np.sin(x)
    return x


@refused(A, 4)
def bytes_for_a_state_that_grows(x, n):
    for _ in s2s.checkpoint(range(n), memory="1kB"):
        x = np.append(x, np.sin(x[0]))
    return np.sum(x)


@instead()
def bytes_for_a_state_that_grows_followed(x, n):
    for _ in s2s.checkpoint(range(n), snapshots=3):
        x = np.append(x, np.sin(x[0]))
    return np.sum(x)


@refused(0.3, np.random.default_rng(0))
def drawn_deep_inside(x, rng):
    for _ in s2s.checkpoint(range(4), snapshots=2):
        for _ in range(3):
            x = x * np.sin(x) + rng.normal()
    return x


@instead()
def drawn_deep_inside_followed(x, rng):
    noise = rng.normal(size=(4, 3))
    for i in s2s.checkpoint(range(4), snapshots=2):
        for j in range(3):
            x = x * np.sin(x) + noise[i, j]
    return x


@refused(0.3)
def snapshots_of_a_function(x):
    f = s2s.checkpoint(np.sin, snapshots=3)
    return f(x)


@instead()
def snapshots_of_a_function_followed(x):
    f = s2s.checkpoint(np.sin)
    return f(x)


# ------------------------------------------------------------------------------------------------
section("Functions with rules of their own")


@refused(0.3)
def no_rule_is_given(x):
    @s2s.custom_jvp
    def g(x):
        return np.sin(x)

    return g(x)


@instead()
def no_rule_is_given_followed(x):
    @s2s.custom_jvp
    def g(x):
        return np.sin(x)

    g.defjvp(lambda primals, tangents: (g(primals[0]), np.cos(primals[0]) * tangents[0]))
    return g(x)


@refused(0.3, ask="s2s.jvp(f, args, (1.0,))")
def rule_for_the_other_mode(x):
    g = s2s.custom_vjp(lambda x: np.sin(x))
    g.defvjp(lambda x: (g(x), x), lambda x, y_bar: (np.cos(x) * y_bar,))
    return g(x)


@instead(ask="s2s.jvp(f, args, (1.0,))")
def rule_for_the_other_mode_followed(x):
    g = s2s.custom_vjp(lambda x: np.sin(x))
    g.defvjp(lambda x: (g(x), x), lambda x, y_bar: (np.cos(x) * y_bar,))
    g.defjvp(lambda primals, tangents: (g(primals[0]), np.cos(primals[0]) * tangents[0]))
    return g(x)


@refused(0.3)
def rule_without_a_pair(x):
    g = s2s.custom_jvp(lambda x: np.sin(x))
    g.defjvp(lambda primals, tangents: np.cos(primals[0]) * tangents[0])
    return g(x)


@instead()
def rule_without_a_pair_followed(x):
    g = s2s.custom_jvp(lambda x: np.sin(x))
    g.defjvp(lambda primals, tangents: (g(primals[0]), np.cos(primals[0]) * tangents[0]))
    return g(x)


@refused(0.3)
def rule_that_is_not_linear(x):
    g = s2s.custom_jvp(lambda x: abs(x))
    g.defjvp(lambda primals, tangents: (g(primals[0]), abs(tangents[0])))
    return g(x)


@instead()
def rule_that_is_not_linear_followed(x):
    g = s2s.custom_jvp(lambda x: abs(x))
    g.defjvp(lambda primals, tangents: (g(primals[0]), np.sign(primals[0]) * tangents[0]))
    return g(x)


@refused(0.3)
def rule_closes_over_what_is_differentiated(x):
    scaled = s2s.custom_jvp(lambda y: y * x)
    scaled.defjvp(lambda primals, tangents: (scaled(primals[0]), x * tangents[0]))
    return scaled(2.0)


@instead()
def rule_closes_over_what_is_differentiated_followed(x):
    scaled = s2s.custom_jvp(lambda y, x: y * x)
    scaled.defjvp(lambda p, t: (scaled(*p), p[1] * t[0] + p[0] * t[1]))
    return scaled(2.0, x)


@refused(2.0, ask="s2s.grad(s2s.grad(s2s.grad(s2s.grad(s2s.grad(f)))))(*args)")
def rule_that_calls_what_it_is_the_rule_of(a):
    settled = s2s.custom_vjp(lambda f, a, x: f(a, f(a, f(a, f(a, x)))), nondiff_argnums=0)

    def through_x(f):
        return lambda p, u: p[2] + s2s.vjp(lambda x: f(p[0], x), p[1])[1](u)[0]

    def backward(f, kept, x_bar):
        a, x = kept
        u = settled(through_x(f), (a, x, x_bar), x_bar)
        return s2s.vjp(lambda a: f(a, x), a)[1](u)[0], None

    settled.defvjp(lambda f, a, x: (settled(f, a, x), (a, x)), backward)
    return settled(lambda a, x: 0.5 * (x + a / x), a, 1.0)


@instead()
def rule_that_calls_what_it_is_the_rule_of_followed(a):
    def iterated(f, x):
        for _ in range(30):
            x = f(x)
        return x

    return s2s.custom_fixed_point(lambda x: 0.5 * (x + a / x), 1.0, iterated)


@s2s.custom_jvp
def first_set(x):
    x[0] = 1.0
    return np.sum(x)


@s2s.custom_jvp
def first_set_of_a_copy(x):
    x = x.copy()
    x[0] = 1.0
    return np.sum(x)


first_set_of_a_copy.defjvp(lambda p, t: (first_set_of_a_copy(p[0]), np.sum(t[0][1:])))


@refused(A)
def rule_of_what_writes_into_its_argument(x):
    return first_set(x * x)


@instead()
def rule_of_what_writes_into_its_argument_followed(x):
    return first_set_of_a_copy(x * x)


@refused(0.3)
def foreign_result_is_not_known(x):
    negated = s2s.custom_jvp(NEGATED)
    negated.defjvp(lambda p, t: (negated(p[0]), -t[0]))
    return negated(x)


@instead()
def foreign_result_is_not_known_followed(x):
    negated = s2s.custom_jvp(NEGATED, like=lambda x: x)
    negated.defjvp(lambda p, t: (negated(p[0]), -t[0]))
    return negated(x)


@refused(B)
def solve_has_no_transpose(b):
    return np.sum(
        s2s.custom_linear_solve(lambda x: M @ x, b[:2], lambda matvec, b: np.linalg.solve(M, b))
    )


@instead()
def solve_has_no_transpose_followed(b):
    return np.sum(
        s2s.custom_linear_solve(
            lambda x: M @ x,
            b[:2],
            lambda matvec, b: np.linalg.solve(M, b),
            lambda vecmat, b: np.linalg.solve(M.T, b),
        )
    )
