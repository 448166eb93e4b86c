"""The loop form computes what the array form computes, and consists of scalar ops in few loops."""

import re

import numpy as np
import pytest

import s2s
from s2s.back.loop_pipeline import lower
from s2s.back.print.printer import render
from s2s.ir.builder import Builder
from s2s.ir.graph import Block, Function, Value, walk
from s2s.ir.interpret import interpret
from s2s.ir.types import BOOL, FLOAT, INT, Array, Extent, Scalar
from s2s.ir.verify import verify
from s2s.ops.arrays.index import additem, put, take
from s2s.ops.arrays.index_pattern import parse_index
from s2s.ops.core.control import for_loop, if_
from s2s.ops.core.record import FUNCTIONS, METHODS, value
from s2s.ops.core.shape import length

ALLOWED = {
    "buffer",
    "getitem",
    "setitem",
    "additem",
    "length",
    "for",
    "while",
    "if",
    "constant",
    "tuple",
    "item",
    "matmul",
    "contiguous",
    "transpose",
    "reshape",
    "copy",
}
RNG = np.random.default_rng(0)


def call(function, *args, **kwargs):
    """A NumPy function on Values."""
    return FUNCTIONS[function](*args, **kwargs)


def type_of(x, name: str):
    match x:
        case np.ndarray():
            dims = tuple(
                1 if n == 1 else Extent(f"{name}.{k}", 0, False) for k, n in enumerate(x.shape)
            )
            return Array(x.dtype.name, dims)
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
    return Scalar(x.dtype.name)


def program(body, *args) -> Function:
    """The IR of `body`, for arguments like these."""
    params = [Value(type_of(x, name), name) for name, x in zip("xyzuvw", args)]
    block = Block(params)
    with Builder(block):
        results = body(*params)
        block.yields = [value(r) for r in (results if isinstance(results, tuple) else (results,))]
    return verify(Function("f", block, tupled=True))


def run_text(function: Function, *args):
    namespace: dict = {}
    exec(render(function).text, namespace)
    return namespace[function.name](*args)


def check(body, *args, rtol=1e-13) -> Function:
    """Interpreted and printed, the loop form gives what the array form gives, in the same
    dtypes.
    """
    function = program(body, *args)
    lowered = verify(lower(function))
    with np.errstate(all="ignore"):
        expected = interpret(function, *copied(args))
        for got in (interpret(lowered, *copied(args)), run_text(lowered, *copied(args))):
            for a, b in zip(expected, got, strict=True):
                np.testing.assert_allclose(b, a, rtol=rtol, atol=1e-14)
                assert np.asarray(b).dtype == np.asarray(a).dtype
    for op in walk(lowered.block):
        arrays = [x for x in (*op.inputs, *op.outputs) if isinstance(x.type, Array)]
        assert not arrays or op.name in ALLOWED, op
    return lowered


def copied(args):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def count(function: Function, name: str) -> int:
    return sum(op.name == name for op in walk(function.block))


V = np.array([0.5, -1.0, 2.0, 0.25])
W = np.array([1.5, 0.75, -0.5, 3.0])
A = RNG.normal(size=(3, 4))
ROW, COLUMN = RNG.normal(size=4), RNG.normal(size=(3, 1))
SINGLE = np.array([2.5])
INTS = np.array([2, 0, 3, 2])
F32 = V.astype(np.float32)
Z = -np.array([[1 + 2j, 1 - 3j, -2j], [0.5, 1 + 2j, 1 + 2j]])

ONE_EACH = {
    "chain": (lambda x, y: call(np.sin, x) * 2 + y / x, V, W),
    "broadcast_row": (lambda x, y: x + y, A, ROW),
    "broadcast_column": (lambda x, y: x * y, A, COLUMN),
    "broadcast_single": (lambda x, y: x * y, V, SINGLE),
    "outer_broadcast": (lambda x, y: take(x, (slice(None), None)) * y, V, ROW),
    "scalar_and_array": (lambda x, y: x * y + 1, 2.5, V),
    "sum": (lambda x: call(np.sum, x), A),
    "sum_axis_0": (lambda x: call(np.sum, x, axis=0), A),
    "sum_axis_1": (lambda x: call(np.sum, x, axis=1), A),
    "sum_keepdims": (lambda x: call(np.sum, x, axis=1, keepdims=True), A),
    "sum_negative_axis": (lambda x: call(np.sum, x, axis=-2), A),
    "sum_of_3d": (lambda x: call(np.sum, x, axis=(0, 2)), RNG.normal(size=(2, 3, 4))),
    "mean": (lambda x: call(np.mean, x), A),
    "mean_axis": (lambda x: call(np.mean, x, axis=0), A),
    "var": (lambda x: call(np.var, x, axis=1), A),
    "max": (lambda x: call(np.max, x), A),
    "min_axis": (lambda x: call(np.min, x, axis=0), A),
    "max_with_nan": (lambda x: call(np.max, x), np.array([1.0, np.nan, 3.0])),
    "prod": (lambda x: call(np.sum, x * x) * 2, V),
    "any": (lambda x: call(np.any, x > 1.0), V),
    "all_axis": (lambda x: call(np.all, x > -1.0, axis=1), A),
    "argmax": (lambda x: call(np.argmax, x), A),
    "argmin_axis": (lambda x: call(np.argmin, x, axis=1), A),
    "argmax_nan": (lambda x: call(np.argmax, x), np.array([1.0, np.nan, 3.0, np.nan])),
    "argmax_of_complex": (lambda x: call(np.argmax, x, axis=1), Z),
    "argmin_of_complex": (lambda x: call(np.argmin, x), Z),
    "argmax_of_a_number": (lambda x: call(np.argmax, x) + call(np.argmin, x), 2.5),
    "max_of_complex": (lambda x: (call(np.max, x), call(np.min, x, axis=0)), Z),
    "nanmax_of_complex": (lambda x: (call(np.nanmax, x - 3), call(np.nanmin, x + 3, axis=0)), Z),
    "cumsum": (lambda x: call(np.cumsum, x), V),
    "cumsum_axis": (lambda x: call(np.cumsum, x, axis=0), A),
    "slice": (lambda x: take(x, slice(1, -1)) * 2, V),
    "slice_step": (lambda x: take(x, slice(None, None, 2)) * 2, V),
    "slice_backwards": (lambda x: take(x, slice(None, None, -1)) - x, V),
    "slice_of_slice": (lambda x: take(take(x, slice(1, None)), slice(None, -1)) * 2, V),
    "slice_run_time": (lambda x, n: take(x, slice(n, None)) * 2, V, 2),
    "slice_run_time_negative": (lambda x, n, m: take(x, slice(n, m)) * 2, V, -3, -1),
    "slice_run_time_beyond": (lambda x, n, m: call(np.sum, take(x, slice(n, m))), V, -9, 9),
    "slice_run_time_empty": (lambda x, n, m: take(x, slice(n, m)) * 2, V, 3, 1),
    "gather_and_slice": (lambda x, i: take(x, (slice(1, None), i)) * 2, A, np.array([2, 0, 2])),
    "slice_short": (lambda x: take(x, slice(3, -3)) * 2, V),
    "row": (lambda x: take(x, 1) * 2, A),
    "last_column": (lambda x: take(x, (slice(None), -1)) * 2, A),
    "transpose": (lambda x: METHODS["transpose"](x) * 2, A),
    "transpose_kept": (lambda x: METHODS["transpose"](x), A),
    "reshape": (lambda x: call(np.reshape, x, (4, 3)) * 2, A),
    "ravel": (lambda x: call(np.ravel, x) * 2, A),
    "flip": (lambda x: call(np.flip, x, 1) * x, A),
    "roll": (lambda x: call(np.roll, x, 1) - x, V),
    "repeat": (lambda x: call(np.repeat, x, 3) * 2, V),
    "repeat_of_a_table": (lambda x: call(np.repeat, x, 2) * 2, A),
    "repeat_of_a_number": (lambda x: call(np.repeat, x, 3) * 2, 2.5),
    "tile_of_a_number": (lambda x: call(np.tile, x, (2, 3)) * 2, 2.5),
    "tile": (lambda x: call(np.tile, x, (2, 1)) * 2, A),
    "concatenate": (lambda x, y: call(np.concatenate, (x * 2, y)), V, W),
    "concatenate_axis": (lambda x, y: call(np.concatenate, (x, y), axis=1), A, A),
    "stack": (lambda x, y: call(np.stack, (x, y), axis=1), V, W),
    "array_of_numbers": (lambda x: call(np.array, (call(np.sum, x), 2.0, 3.0)) * 2, V),
    "arange": (lambda x: call(np.arange, length(x, axis=0)) * x, V),
    "arange_by_steps": (lambda x, a, b: call(np.arange, a, b, 3) * 2.0, V, -2, 8),
    "arange_by_steps_downwards": (lambda x, a, b: call(np.arange, a, b, -2) * 2.0, V, 8, 1),
    "arange_by_steps_of_nothing": (lambda x, a, b: call(np.arange, a, b, -2) * 2.0, V, 1, 8),
    "arange_of_floats": (lambda x, a, b, c: call(np.arange, a, b, c) * 2.0, V, 0.1, 3.7, 0.3),
    "arange_downwards": (lambda x, a, b, c: call(np.arange, a, b, c) * 2.0, V, 5.0, 0.2, -0.7),
    "arange_of_nothing": (lambda x, a, b, c: call(np.arange, a, b, c) * 2.0, V, 5.0, 0.2, 0.7),
    "linspace": (lambda x: call(np.linspace, 0.0, 1.0, 4) * x, V),
    "zeros_ones": (lambda x: (call(np.zeros, length(x, axis=0)), call(np.ones_like, x) + x), V),
    "full": (lambda x: call(np.full, (2, 3), call(np.sum, x)), V),
    "eye": (lambda x: call(np.eye, length(x, axis=0)) * x, V),
    "where": (lambda x, y: call(np.where, x > y, x, 0.0), V, W),
    "clip": (lambda x: call(np.clip, x, -0.5, 0.75), V),
    "gather": (lambda x, i: take(x, i) * 2, V, INTS),
    "gather_rows": (lambda x, i: take(x, i), A, np.array([2, 0])),
    "gather_pairs": (lambda x, i, j: take(x, (i, j)), A, np.array([2, 0]), np.array([-1, 1])),
    "mask": (lambda x: take(x, x > 0.0), V),
    "outer": (lambda x, y: call(np.outer, x, y), V, W),
    "dot": (lambda x, y: call(np.dot, x, y), V, W),
    "matrix_vector": (lambda x, y: x @ (y * 2), A, ROW),
    "matrix_matrix": (lambda x: x @ METHODS["transpose"](x), A),
    "matmul_of_ints": (lambda x, y: x @ y, np.arange(6).reshape(2, 3), np.arange(3)),
    "batched_matmul": (lambda x, y: x @ y, RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4, 2))),
    "float32": (lambda x: x * 2.0 + call(np.exp, x), F32),
    "float32_sum": (lambda x: call(np.sum, x * 0.1), F32),
    "float32_with_float64": (lambda x, y: x * y, F32, V),
    "bool_arithmetic": (lambda x, y: (x > 0.0) + (y > 0.0), V, W),
    "count": (lambda x: call(np.sum, x > 0.0), V),
    "int_overflow": (lambda x: x * 100, np.array([1, 2, 3, 100], dtype=np.int8)),
    "int_division": (lambda x: x / 2, INTS),
    "int_floor": (lambda x: x // 3 + x % 3, np.array([7, -7, 3, -1])),
    "broadcast_to": (lambda x: call(np.broadcast_to, x, (2, 4)) * 1.0, V),
    "astype": (lambda x: METHODS["astype"](x, np.int64), V),
    "astype_of_complex": (
        lambda x: tuple(
            METHODS["astype"](x, t) for t in (np.float64, np.float32, np.int64, np.bool_)
        ),
        -Z,
    ),
    "softmax": (lambda x: _softmax(x), A),
    "logsumexp": (lambda x: call(np.log, call(np.sum, call(np.exp, x - call(np.max, x)))), V),
}


def _softmax(x):
    e = call(np.exp, x - call(np.max, x, axis=1, keepdims=True))
    return e / call(np.sum, e, axis=1, keepdims=True)


@pytest.mark.parametrize("name", ONE_EACH)
def test_loops_compute_what_arrays_compute(name):
    body, *args = ONE_EACH[name]
    check(body, *args, rtol=1e-5 if "float32" in name else 1e-13)


WRITES = {
    "element": (lambda x, y: put(x, 1, call(np.sum, y)), V, W),
    "slice": (lambda x, y: put(x, slice(1, None), take(y, slice(1, None)) * 2), V, W),
    "slice_number": (lambda x: put(x, slice(None, None, 2), 7.0), V),
    "overlap": (lambda x: put(x, slice(1, None), take(x, slice(None, -1))), V),
    "overlap_backwards": (lambda x: put(x, slice(None), take(x, slice(None, None, -1))), V),
    "stencil": (
        lambda x: put(x, slice(1, -1), take(x, slice(2, None)) + take(x, slice(None, -2))),
        V,
    ),
    "row": (lambda x, y: put(x, 1, y * 2), A, ROW),
    "column": (lambda x: put(x, (slice(None), 0), 1.5), A),
    "block": (lambda x, y: put(x, (slice(1, None), slice(None, 2)), y), A, RNG.normal(size=(2, 2))),
    "broadcast_row": (lambda x, y: put(x, slice(1, None), y), A, ROW),
    "old_and_new": (lambda x: (put(x, 0, 5.0), x * 2), V),
    "mask": (lambda x: put(x, x > 0.0, 0.0), V),
    "mask_values": (lambda x, y: put(x, y > 0.0, take(y, y > 0.0) * 2), V, W),
    "gather": (lambda x, i: put(x, i, 9.0), V, np.array([0, 2])),
    "scatter_add": (lambda x, y, i: _added(x, i, y), V, W, INTS),
    "scatter_add_rows": (lambda x, i: _added(x, (i, i), 1.0), A, np.array([1, 1, 2])),
    "add_slice": (lambda x, y: _added(x, slice(1, None), take(y, slice(1, None))), V, W),
    "rows_and_slice": (lambda x, i: _added(x, (i, slice(1, None)), 1.0), A, np.array([1, 1, 2])),
    "slice_and_columns": (lambda x, i: put(x, (slice(1, None), i), 1.0), A, np.array([-1, 0])),
    "run_time_rows": (lambda x, n, m: _added(x, slice(n, m), 1.0), A, -2, 7),
    "run_time_slice": (lambda x, n: put(x, slice(n, None), 1.0), V, 2),
}


def _added(x, key, v):
    pattern, operands = parse_index(key)
    return additem(x, value(v), *operands, pattern=pattern)


@pytest.mark.parametrize("name", WRITES)
def test_writes_as_loops(name):
    body, *args = WRITES[name]
    check(body, *args)


def test_chain_is_one_nest_without_temporaries():
    lowered = check(lambda x, y: call(np.exp, call(np.sin, x) * y) + x, V, W)
    assert count(lowered, "for") == 1
    assert count(lowered, "buffer") == 1


def test_reduction_of_a_chain_allocates_nothing():
    lowered = check(lambda x, y: call(np.sum, call(np.sin, x) * y), V, W)
    assert count(lowered, "for") == 1
    assert count(lowered, "buffer") == 0


def test_several_results_share_a_nest():
    lowered = check(
        lambda x, y: (call(np.sin, x) * y, call(np.cos, x) + y, call(np.sum, x * y)), V, W
    )
    assert count(lowered, "for") == 1
    assert count(lowered, "buffer") == 2


def test_views_cost_nothing():
    lowered = check(lambda x: call(np.sum, take(x, slice(1, None)) - take(x, slice(None, -1))), V)
    assert count(lowered, "for") == 1
    assert count(lowered, "buffer") == 0


def test_steps_of_indices_cost_nothing():
    def body(x, n):
        up, down = call(np.arange, 0, n, 2), call(np.arange, n - 1, -1, -3)
        return call(np.sum, take(x, up)) + call(np.sum, take(x, down))

    for n in range(8):
        lowered = check(body, np.linspace(1.0, 2.0, 8), n)
        assert count(lowered, "buffer") == 0 and count(lowered, "arange") == 0


def windows(x, n, k):
    """The windows of k elements, every other of n."""
    return take(x, call(np.expand_dims, call(np.arange, 0, n - k + 1, 2), 1) + call(np.arange, k))


def test_sums_of_ranges_that_are_indices_are_no_arrays():
    for n, k in ((8, 3), (8, 8), (8, 1), (0, 1), (3, 4)):
        lowered = check(
            lambda x, n, k: call(np.sum, windows(x, n, k) ** 2), np.linspace(1.0, 2.0, 8), n, k
        )
        assert count(lowered, "buffer") == 0


def test_sums_of_sums_of_ranges_are_no_arrays():
    """Though two nests read them."""
    def f(x, n):
        rows = np.arange(0, 2 * n, 2)[:, None] + np.arange(n)
        z = x * np.sum(x[rows + 1])
        return z[rows * 2]

    x = np.linspace(1.0, 2.0, 40)
    text, names = s2s.jit(f).lower(x, 4).loops, {}
    exec(text, names)
    np.testing.assert_allclose(names["f"](x, 4), f(x, 4), rtol=1e-13)
    assert "int64" not in text


READ_OTHERWISE = {
    "result": lambda x, i: (take(x, i), i),
    "number": lambda x, i: (take(x, i), call(np.sum, i * 1.5)),
    "element": lambda x, i: take(x, i) * take(i, 0),
    "view": lambda x, i: (take(x, i), take(i, slice(1, None)) * 2),
    "both": lambda x, i: (take(x, i + 1), i * 2),
    "flipped": lambda x, i: take(x, take(i, slice(None, None, -1))),
    "square": lambda x, i: take(x, i * i - i),
    "written": lambda x, i: _added(x, i + 1, 1.0),
}


@pytest.mark.parametrize("name", READ_OTHERWISE)
def test_sums_of_ranges_that_are_read_otherwise(name):
    body = READ_OTHERWISE[name]
    for n in (1, 2, 3):
        check(lambda x, n: body(x, call(np.arange, n) + 0 * n), np.linspace(1.0, 2.0, 7), n)
        check(
            lambda x, n: body(x, call(np.arange, n) + call(np.arange, 3 * n, 2 * n, -1)),
            np.linspace(1.0, 2.0, 80),
            n,
        )


def test_row_sums_are_numbers_while_they_run():
    text = render(check(lambda x: call(np.sum, x * x, axis=1), A)).text
    assert "total = 0.0" in text
    assert "[i] = total" in text


def test_what_a_sum_decides_comes_after_it():
    lowered = check(lambda x: x / call(np.sum, x), V)
    assert count(lowered, "for") == 2


@pytest.mark.parametrize("body, args", [
    (lambda x, y: x + y, (np.ones(3), np.ones(4))),
    (lambda x, y: x + y, (np.ones((2, 3)), np.ones(4))),
    (lambda x, y: call(np.sum, x * y), (np.ones(3), np.ones(4))),
    (lambda x, y: put(x, slice(None), y), (np.ones(3), np.ones(4))),
    (lambda x, y: call(np.concatenate, (x, y), axis=1), (np.ones((2, 2)), np.ones((3, 2)))),
    (lambda x, y: take(x, slice(1, None)) + take(y, slice(1, None)), (np.ones(3), np.ones(5))),
    # y is checked before z and after it
    (lambda x, y, z: call(np.sum, (x + y + z) * y), (np.ones(3), np.ones(3), np.ones(4))),
])
def test_mismatched_lengths_raise_as_numpy_does(body, args):
    function = program(body, *args)
    with pytest.raises(ValueError):
        interpret(function, *args)
    with pytest.raises(ValueError):
        run_text(lower(function), *args)


@pytest.mark.parametrize(
    "f, x",
    [
        (lambda x: np.repeat(x, 2), A),
        (lambda x: np.repeat(x, 3), 2.5),
        (lambda x: np.tile(x, (2, 3)), 2.5),
        (lambda x: np.repeat(x, 2, axis=-1), A),
    ],
)
def test_what_was_repeated_is_added_up_in_loops(f, x):
    gradient = s2s.grad(lambda x: np.sum(f(x) ** 3))
    loops = gradient.lower(x).loops
    assert "reshape" not in loops
    assert np.allclose(
        next(y for name, y in namespace(loops).items() if name.endswith("_grad"))(x),
        gradient(x),
        rtol=1e-13,
    )


def test_a_comparison_of_what_has_no_known_rank_is_refused():
    def f(a, b, n):
        if n > 1:
            a = b
        return np.sum(np.where(a > 0.5, a, b))

    with pytest.raises(s2s.UnsupportedError, match="no known rank"):
        s2s.jit(f).lower(np.array([1]), np.ones((1, 1)), 2).loops  # noqa: B018


@pytest.mark.compile
def test_complex_numbers_in_native_code():
    def f(z):
        return (
            np.argmax(z, axis=1),
            np.argmin(z),
            np.max(z, axis=0),
            np.nanmin(z + 3),
            z.astype(np.float32),
            z.astype(int),
        )

    for z in (Z, -Z, np.where(abs(Z) > 2, 7, Z)):
        with np.errstate(all="ignore"):
            for got, expected in zip(s2s.jit(f)(z), f(z), strict=True):
                np.testing.assert_array_equal(got, expected)
                assert np.asarray(got).dtype == expected.dtype


@pytest.mark.parametrize("axis", [0, 1])
def test_the_largest_of_nothing_is_an_error_along_each_axis(axis):
    lowered = lower(program(lambda x: (call(np.max, x, axis=axis), call(np.min, x, axis=axis)), A))
    nothing = np.zeros((0, 4) if axis == 0 else (3, 0))
    for run in (interpret, run_text):
        with pytest.raises(ValueError, match="no identity"):
            run(lowered, nothing)
    assert run_text(lowered, np.zeros((4, 0) if axis == 0 else (0, 3)))[0].shape == (0,)


@pytest.mark.parametrize("n", [1, 2, 4, 6])
def test_extents_that_only_the_run_knows(n):
    """x[1:] may turn out to be of length 1, and is then broadcast."""
    x, y = RNG.normal(size=n + 1), RNG.normal(size=4)
    body = (lambda x, y: take(x, slice(1, None)) * take(y, slice(1, None)))
    function = program(body, x, y)
    lowered = lower(function)
    try:
        expected = interpret(function, x, y)
    except ValueError:
        with pytest.raises(ValueError):
            run_text(lowered, x, y)
        return
    np.testing.assert_allclose(run_text(lowered, x, y)[0], expected[0])


def test_empty_arrays():
    empty = np.zeros(0)
    function = program(
        lambda x: (call(np.sum, x), x * 2, take(x, slice(1, None)) - take(x, slice(None, -1))),
        empty,
    )
    got = run_text(lower(function), empty)
    assert got[0] == 0.0 and got[1].shape == (0,) and got[2].shape == (0,)
    with pytest.raises(ValueError, match="zero-size"):
        run_text(lower(program(lambda x: call(np.max, x), empty)), empty)


def test_arrays_inside_loops_and_branches():
    def body(x, y, n):
        def step(i, u):
            moved = put(
                u, slice(1, -1), take(u, slice(2, None)) * 0.5 + take(u, slice(None, -2)) * 0.5
            )
            return [
                if_(call(np.sum, moved) > 1.0, lambda: [moved * 0.5 + y], lambda: [moved + y])[0]
            ]

        return for_loop(0, n, 1, [x], step, names=["u"])

    check(body, V, W, 3)


def test_an_integer_array_that_becomes_floats():
    check(lambda x, n: for_loop(0, n, 1, [x], lambda i, u: [u * 0.5], names=["u"]), INTS, 3)


def test_write_joins_the_nest_of_its_value():
    def body(x):
        new = METHODS["copy"](x)
        return put(
            new,
            slice(1, -1),
            take(x, slice(2, None)) - 2 * take(x, slice(1, -1)) + take(x, slice(None, -2)),
        )

    lowered = check(body, V)
    assert count(lowered, "for") == 1
    assert count(lowered, "buffer") == 0


def test_write_in_the_place_it_reads_needs_no_temporary():
    lowered = check(lambda x: put(x, slice(1, None), take(x, slice(1, None)) * 0.5), V)
    assert count(lowered, "for") == 1
    assert count(lowered, "buffer") == 0


def test_write_that_shifts_an_array_onto_itself_keeps_what_it_reads():
    lowered = check(lambda x: put(x, slice(1, None), take(x, slice(None, -1)) * 0.5), V)
    assert count(lowered, "buffer") == 1


def test_two_writes_into_one_array_stay_in_order():
    def body(x, y):
        first = put(x, slice(1, None), take(y, slice(1, None)) * 2.0)
        return put(first, slice(None, -1), take(y, slice(1, None)) * 3.0)

    check(body, V, W)


def loops_of(lowered: Function):
    return [op for op in lowered.block.ops if op.name == "for"]


def test_a_nest_all_of_which_moves_to_a_later_one_is_gone():
    """What acts stands between them, and has to follow what has moved: the order of the others is
    kept without it.
    """
    def f(a):
        a *= 0.8
        print()
        return np.sum(a * a)

    assert s2s.jit(f).lower(V).loops.count("for ") == 1


def test_arithmetic_on_an_array_of_a_block_around_moves_to_the_nest_that_reads_it():
    def descend(w, x, rate):
        for _ in range(3):
            slope = np.zeros(len(w))
            for i in range(len(x)):
                slope += (w @ x[i]) * x[i]
            w = w - rate * slope
        return np.sum(w)

    args = RNG.normal(size=3), RNG.normal(size=(7, 3)), 0.01
    gradient = s2s.grad(descend)
    assert np.allclose(
        namespace(gradient.lower(*args).loops)["descend_grad"](*args), gradient(*args), rtol=1e-12
    )


def test_buffer_that_each_trip_fills_is_allocated_once():
    def body(x, y, n):
        def step(i, total):
            work = call(np.sin, x) * total  # stored: the product reads all of it
            return [total + call(np.sum, y @ work)]

        return for_loop(0, n, 1, [1.0], step, names=["total"])

    lowered = check(body, V, RNG.normal(size=(4, 4)), 3)
    (loop,) = loops_of(lowered)
    assert not any(op.name == "buffer" for op in walk(loop.blocks[0]))
    assert any(op.name == "buffer" for op in lowered.block.ops)


def filled_in_branches(x, n):
    e = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                r = x[i] - x[j]
                if e > 1.0:
                    q = np.zeros(3)
                    q[1] = r[1] * r[2]
                    e += np.sin(q[1]) + q[0]
                e += np.sqrt(1.0 + r @ r)
            else:
                w = x[i] * x[j]
                e += w @ w / (1.0 + w @ w)
    return e


def kept_of_a_branch(x, n):
    r, e = np.zeros(3), 0.0
    for i in range(n):
        if i % 2 == 1:
            q = np.ones(3)
            q[0] = x[i, 0]
            r = q
        e += r @ x[i]
    return e


@pytest.mark.parametrize("f, leaves", [(filled_in_branches, True), (kept_of_a_branch, False)])
def test_small_buffer_that_a_branch_fills_is_allocated_once(f, leaves):
    x = RNG.normal(size=(5, 3))
    gradient = s2s.value_and_grad(f)
    loops = gradient.lower(x, 5).loops
    for a, b in zip(namespace(loops)[f"{f.__name__}_value_and_grad"](x, 5), gradient(x, 5)):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    inside = loops[loops.index("    for "):]
    assert ("np.empty(" not in inside and "np.zeros(" not in inside) == leaves


def test_large_buffer_of_a_branch_stays_there():
    def f(x, n, m):
        total = 0.0
        for i in range(n):
            if i > 5:
                work = np.zeros((len(x), m))
                work[1:, 1:] = x[1:, None] * i
                for k in range(1, len(x)):
                    total += work[k, 1] * work[k - 1, 1]
        return total

    inside = s2s.jit(f).lower(V, 3, 4).loops
    assert "np.zeros(" in inside[inside.index("    for "):]


def columns_of_the_identity(x, n):
    E, s = np.eye(len(x)), 0.0
    for i in range(n):
        s += np.sum((E[:, (i + 1) % len(x)] - E[i - 5]) * x) ** 2
    return s


def rows_of_a_transposed_identity(x, n):
    E, s = np.eye(len(x)).T, 0.0
    for i in range(n):
        s += np.sum(E[(i + 1) % len(x)] * x) ** 2
    return s


def added_in_an_arm(x, n):
    s = 0.0
    for i in range(n):
        if x[i] > 0.0:
            s += np.sum(np.sin(x) * x[i]) ** 2
    return s


def moved_in_arms(x, n):
    u = x
    for i in range(n):
        if x[i] > 0.0:
            u = u + x[i] * x
        elif x[i] < -1.0:
            u = np.tanh(u)
    return np.sum(u * x)


def read_after_its_arm(x, n):
    u = x * 2.0
    for i in range(n):
        before = u
        if x[i] > 0.0:
            u = u + x[i]
        u = u * np.sum(before)
    return np.sum(u)


def begun_with_one_array(x, n):
    a = b = x * 2.0
    for i in range(n):
        if x[i] > 0.0:
            a = a + x
            b = a if x[i] > 1.0 else b * a
    return np.sum(a * b)


@pytest.mark.parametrize(
    "f, nothing",
    [
        (columns_of_the_identity, True),
        (rows_of_a_transposed_identity, True),
        (added_in_an_arm, True),
        (moved_in_arms, True),
        (read_after_its_arm, False),
        (begun_with_one_array, False),
    ],
)
def test_trips_make_no_array_that_is_made_before_or_can_be_overwritten(f, nothing):
    x = np.array([0.5, -0.2, 1.3, 0.1, -1.4])
    for derived in (f, s2s.value_and_grad(f)):
        for n in (0, 1, 5):
            loops = s2s.jit(derived).lower(x, n).loops
            found = namespace(loops)[re.findall(r"^def (\w+)", loops, re.M)[-1]](x, n)
            expected = derived(x, n)
            for a, b in zip(*([y] if derived is f else y for y in (expected, found)), strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)
        assert not nothing or not re.search(r"^ {8,}.*np\.(zeros|empty)\(", loops, re.M)


def filtered(A, x, n):
    for t in range(n):
        new = np.zeros(3)
        for j in range(3):
            for i in range(3):
                new[j] += x[i] * A[i, j]
        x = new / np.sum(new)
    return x[0] - x[2]


def begun_with_what_is_read_later(A, x, n):
    start = np.ones(3) * A[0, 0]
    x = start
    for t in range(n):
        x = A @ x + np.sin(start)
    return np.sum(x * start)


def two_begin_with_one(A, x, n):
    u = v = np.array([x[0], x[1], x[0] * x[1]])
    for t in range(n):
        u = u * 2.0 + v[::-1]
        v = v + 1.0
    return np.sum(u * v)


def two_change_places(A, x, n):
    u, v = np.array([x[0], x[1], 2.0]), np.zeros(3) + x[2]
    for t in range(n):
        u, v = v, 0.5 * u + A[0]
    return np.sum(u * u) + v[0]


def kept_of_some_trip(A, x, n):
    u, best = np.array([x[0], x[1], 2.0]), np.zeros(3)
    for t in range(n):
        u = np.sin(u) + A[t % 3]
        if u[0] > best[0]:
            best = u
    return np.sum(best * u)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "f, copies",
    [
        (filtered, True),
        (begun_with_what_is_read_later, False),
        (two_begin_with_one, True),
        (two_change_places, False),
        (kept_of_some_trip, False),
    ],
)
def test_short_array_that_each_trip_begins_with_stays_in_its_place(f, copies):
    A, x = 0.5 + 0.3 * np.abs(RNG.normal(size=(3, 3))), np.array([0.5, 0.2, 0.3])
    for derived in (f, s2s.value_and_grad(f, argnums=(0, 1))):
        for n in (0, 1, 2, 5):
            loops = s2s.jit(derived).lower(A, x, n).loops
            found = namespace(loops)[re.findall(r"^def (\w+)", loops, re.M)[-1]](A, x, n)
            expected = derived(A, x, n)
            expected = [expected] if derived is f else [expected[0], *expected[1]]
            for a, b in zip(expected, found if isinstance(found, tuple) else [found], strict=True):
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)
        assert (
            not copies
            or derived is not f
            or not re.search(r"^ {8,}.*np\.(zeros|empty)\(", loops, re.M)
        )


def written_in_an_arm(u, k, n):
    w, z = u * k, np.zeros_like(u)
    for _ in range(n):
        np.add(w, z, out=z)
        np.sin(z, out=w)
        np.subtract(z, w, out=z, where=w > 0.2)
    return np.sum(z * w)


def test_short_array_that_an_arm_writes_stays_in_its_place():
    """Of an array of one element, whose buffer was looked for behind the condition of the `if` that
    writes into it.
    """
    u = np.array([0.7])
    loops = s2s.jit(written_in_an_arm).lower(u, 0.3, 3).loops
    np.testing.assert_allclose(
        namespace(loops)["written_in_an_arm"](u, 0.3, 3), written_in_an_arm(u, 0.3, 3), rtol=1e-12
    )


def test_buffer_that_outlives_its_trip_stays_in_the_loop():
    def body(x, n):
        return for_loop(
            0, n, 1, [x], lambda i, u: [call(np.sin, take(u, slice(None, None, -1)))], names=["u"]
        )

    lowered = check(body, V, 3)
    (loop,) = loops_of(lowered)
    assert any(op.name == "buffer" for op in walk(loop.blocks[0]))


def test_buffer_whose_length_changes_stays_in_the_loop():
    def body(x, n):
        def step(i, total):
            return [total + call(np.sum, call(np.cumsum, take(x, slice(i, None))))]

        return for_loop(0, n, 1, [0.0], step, names=["total"])

    check(body, V, 3)


def namespace(text: str) -> dict:
    """What a module of this text defines."""
    found: dict = {}
    exec(text, found)
    return found


def ghost_cells(a, k, n):
    u = np.zeros((a.shape[0] + 2, a.shape[1] + 2))
    c = u[1:-1, 1:-1]
    north, south, west, east = u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]
    c[...] = a
    for _ in range(n):
        u[0] = u[1]; u[-1] = u[-2]; u[:, 0] = u[:, 1]; u[:, -1] = u[:, -2]
        c += k * (north + south + east + west - 4 * c)
    return np.sum(c * c)


def test_the_inside_of_what_was_made_longer_is_as_long_as_before():
    a = np.random.default_rng(0).normal(size=(4, 5))
    loops = s2s.grad(ghost_cells).lower(a, 0.1, 2).loops
    assert "spread_length" not in loops and "broadcast_length" not in loops and "tape" not in loops
    assert np.allclose(
        namespace(loops)["ghost_cells_grad"](a, 0.1, 2),
        s2s.grad(ghost_cells)(a, 0.1, 2),
        rtol=1e-12,
    )


@pytest.mark.lengthy
def test_a_row_is_copied_where_a_row_is_read_after_it_is_overwritten():
    a = np.random.default_rng(1).normal(size=(4, 5))
    loops = s2s.grad(ghost_cells).lower(a, 0.1, 2).loops
    assert "np.copy(u" not in loops and "u.copy()" not in loops and "u_bar.copy()" not in loops
    assert loops.count(".copy()") == 4  # a row or a column each
    assert len(re.findall(r"t_\d+\[i\] = u_bar\[", loops)) == 2  # two rows
    assert len(re.findall(r"t_\d+ = u_bar\[i, ", loops)) == 2  # an element of a column at a time


def test_a_view_is_taken_before_its_array_is_overwritten():
    def f(x, y):
        u = np.outer(x, y)
        first = u[0]
        corner = u[:, -1]
        u[0] = u[-1]
        u[1:, -1] *= 2.0
        return np.sum(u * u) + np.sum(first) * np.sum(corner)

    x, y = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0])
    loops = namespace(s2s.value_and_grad(f).lower(x, y).loops)
    value, bar = loops["f_value_and_grad"](x, y)
    assert np.isclose(value, f(x, y), rtol=1e-13)
    assert np.allclose(bar, s2s.grad(f)(x, y), rtol=1e-12)


@pytest.mark.parametrize("f", [lambda x: x ** 0.5, lambda x: x ** -1])
def test_powers_of_arrays_that_numpy_computes_otherwise(f):
    with np.errstate(all="ignore"):
        for x in (
            np.array([-0.0, -np.inf, 4.0]),
            np.array([-0.0 + 0j, complex(-np.inf, 1), complex(-4, -0.0), complex(0, np.inf)]),
        ):
            assert f(x).tobytes() == namespace(s2s.jit(f).lower(x).loops)["f"](x).tobytes()


def read_in_steps(x, a, b):
    return (
        np.sum(np.sin(x[1::2]))
        + np.sum(x[2:7:3] ** 2)
        + np.sum(x[:-1:2] ** 3)
        + np.sum(x[-5::2])
        + np.sum(x[a:b:2] ** 2)
        + np.sum(x[a::3])
        + np.sum(x[:b:4] ** 2)
        + np.sum(x[::2] ** 2)
        + np.sum(x[::-2] ** 2)
    )


def written_in_steps(x, a, b):
    y = x * 1.0
    y[1::2] = y[1::2] * 2.0
    y[a:b:3] += 1.5 * y[a:b:3]
    y[0:5:2] *= np.sum(x)
    return np.sum(y * y)


@pytest.mark.lengthy
@pytest.mark.parametrize("f", [read_in_steps, written_in_steps])
def test_slices_in_steps_are_indices(f):
    """NumPy's own view, and a write to it, took Numba two seconds to compile."""
    gradient = s2s.value_and_grad(f)
    for n in (0, 1, 2, 3, 8, 13):
        x = np.random.default_rng(n).normal(size=n)
        text = s2s.jit(gradient).lower(x, 0, 3).loops
        assert "::" not in re.sub("#.*", "", text) and ":3" not in re.sub("#.*", "", text)
        for a, b in ((0, 3), (2, 9), (-3, 100), (5, 2), (-20, -1)):
            value, slope = gradient(x, a, b)
            found, other = namespace(text)[f"{f.__name__}_value_and_grad"](x, a, b)
            np.testing.assert_allclose(found, value, rtol=1e-12)
            np.testing.assert_allclose(other, slope, rtol=1e-12, atol=1e-14)


def test_what_numba_does_not_know_is_called_in_python():
    text = s2s.jit(lambda x: np.linalg.eigvalsh(x)).lower(np.eye(3)).loops
    assert "with objmode(y='float64[:]'):\n        y = np.linalg.eigvalsh(x)" in text


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.atleast_1d(x) ** 2),
        lambda x: np.sum(np.atleast_2d(x) @ np.ones((1, 3))),
        lambda x: np.squeeze(np.expand_dims(x, (0, 1)) * x),
    ],
)
def test_the_only_element_of_an_array_is_read(f):
    """It took Python, called from native code, to take the axes away."""
    text = s2s.grad(f).lower(2.0).loops
    assert "objmode" not in text, text
    namespace = {}
    exec(text, namespace)
    assert namespace[f"\n{text}".rpartition("\ndef ")[2].partition("(")[0]](2.0) == s2s.grad(f)(2.0)
