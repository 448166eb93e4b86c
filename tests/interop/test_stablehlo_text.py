"""The text of `s2s.to_stablehlo`, and what it refuses; peers/test_stablehlo.py runs it."""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s.ops.core.stablehlo_text import Tensor, Text, number_text


def decay(u, k, n):
    u = u.copy()
    for i in range(1, n):
        u[i] = k * u[i - 1]
    return u


DECAY = """\
module @decay {
  func.func public @main(%u: tensor<5xf64>, %k: tensor<f64>) -> (tensor<5xf64>) {
    // line 14: for i in range(1, n):
    %2 = stablehlo.constant dense<1> : tensor<i64>
    %5:2 = stablehlo.while(%u_1 = %u, %i = %2) : tensor<5xf64>, tensor<i64>
    cond {
      %6 = stablehlo.constant dense<5> : tensor<i64>
      %7 = stablehlo.compare LT, %i, %6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      // line 15: u[i] = k * u[i - 1]
      %8 = stablehlo.subtract %i, %2 : (tensor<i64>, tensor<i64>) -> tensor<i64>
      %9 = stablehlo.dynamic_slice %u_1, %8, sizes = [1] : (tensor<5xf64>, tensor<i64>) -> tensor<1xf64>
      %10 = stablehlo.reshape %9 : (tensor<1xf64>) -> tensor<f64>
      %11 = stablehlo.multiply %k, %10 : (tensor<f64>, tensor<f64>) -> tensor<f64>
      %12 = stablehlo.reshape %11 : (tensor<f64>) -> tensor<1xf64>
      %u_2 = stablehlo.dynamic_update_slice %u_1, %12, %i : (tensor<5xf64>, tensor<1xf64>, tensor<i64>) -> tensor<5xf64>
      %14 = stablehlo.add %i, %2 : (tensor<i64>, tensor<i64>) -> tensor<i64>
      stablehlo.return %u_2, %14 : tensor<5xf64>, tensor<i64>
    }
    return %5#0 : tensor<5xf64>
  }
}
"""  # noqa: E501


def test_text_of_a_loop():
    assert s2s.to_stablehlo(decay, s2s.ShapeDtype((5,), "float64"), 0.5, 5) == DECAY
    assert s2s.to_stablehlo(decay, np.zeros(5), 0.5, 5) == DECAY


def test_numbers():
    for x, text in [(1.0, "1.0"), (1e-30, "1.0e-30"), (-2.5, "-2.5"), (np.float32(0.1), "0.1"),
                    (np.inf, "0x7FF0000000000000"), (np.float32(np.nan), "0x7FC00000"),
                    (np.int8(-3), "-3"), (True, "true"), (1 + 2j, "(1.0, 2.0)")]:
        assert number_text(np.asarray(x)[()]) == text


@pytest.mark.parametrize("move, ops", [
    (lambda x: x[1:, ::2], "slice"), (lambda x: x[::-1].T, "reverse transpose"),
    (lambda x: x.reshape(8), "reshape"), (lambda x: x[1], "slice reshape"),
    (lambda x: np.broadcast_to(x[:, None, 0], (2, 3)), "slice reshape broadcast_in_dim"),
    (lambda x: x[:, ::-2], "slice reverse"), (lambda x: x[[1, 0, 0], [2, 1, 3]], "gather"),
], ids=["slice", "turned", "reshape", "row", "broadcast", "backwards", "gather"])
def test_elements_are_moved_by_what_moves_them(move, ops):
    text, numbers = Text(), np.arange(8).reshape(2, 4)
    found = text.pick(Tensor("%x", "float64", (2, 4)), move(numbers))
    assert found.shape == move(numbers).shape
    emitted = [word for line in text.lines for word in ops.split() if f"stablehlo.{word}" in line]
    assert emitted == ops.split()


def test_refusals():
    def spectrum(x):
        return np.linalg.eigvalsh(x)

    def positive(x):
        return x[x > 0]

    def growing(x):
        found = []
        while x > 1.0:
            x = x / 2
            found.append(x)
        return np.sum(np.array(found))

    def unlike(x):
        return x[1:] if x[0] > 0 else x[:-2]

    def drawn(x):
        return x + np.random.default_rng(0).normal()

    def ahead(x, n):
        return np.sum(x[:n])

    for f, args, said in [
        (spectrum, (np.eye(2),), "^^^^^^^^^^^^^^^^^^^^\neigenvalues in StableHLO, which has no "
         "such operation\nInstead: leave it to s2s.jit"),
        (positive, (np.ones(3),), "a mask, of which only a run knows what it selects\n"
                                  "Instead: use np.where"),
        (growing, (3.0,), "a list that a loop makes longer or shorter\nInstead: use an array of a "
                          "known length"),
        (unlike, (np.ones(5),), "arrays of the shapes (4,) and (3,) on two sides of a branch"),
        (drawn, (1.0,), "in StableHLO, which has no such operation"),
        (ahead, (np.ones(3), np.int64(2)), "a slice whose bounds depend on Tensors"),
    ]:
        with pytest.raises(s2s.UnsupportedError) as refused:
            s2s.to_stablehlo(f, *args)
        assert said in str(refused.value) and f"in {f.__name__}" in str(refused.value)
