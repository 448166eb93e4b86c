"""Generated code goes from its text to LLVM's code in two walks; what these leave to Numba comes
out the same.
"""

import ast
import linecache
import platform
import re
import textwrap

import numpy as np
import pytest
from numba import njit
from numba.core import event
from numba.core.runtime import _nrt_python, rtsys

import s2s
from s2s.runtime.debug.load_source import TEXT
from s2s.runtime.emit.emit_function import DirectLowering
from s2s.runtime.emit.emit_statements import STRETCH
from s2s.runtime.emit.ssa_names import Bindings, NotDirect
from s2s.runtime.emit.unroll_hints import Unrolling
from s2s.runtime.llvm.split_module import in_pieces
from s2s.runtime.numba import compiler
from s2s.runtime.numba.compiler import BLOCKS, Effort

pytestmark = pytest.mark.compile


def both(text: str, **given):
    """The function `f` of a module as Python, and compiled."""
    text = textwrap.dedent(text)
    name = f"<direct {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    plain = {"np": np, TEXT: text, "__name__": "direct", **given}
    exec(compile(text, name, "exec"), plain)
    native = dict(plain)
    exec(compile(text, name, "exec"), native)
    compiled = native["f"] = njit(
        error_model="numpy", nogil=True, pipeline_class=Effort, no_cfunc_wrapper=True
    )(native["f"])
    return plain["f"], compiled


def is_direct(dispatcher) -> bool:
    return all(each.library.is_direct for each in dispatcher.overloads.values())


def values_of(text: str) -> list[str]:
    """The names whose bindings are values, in the order of the text."""
    function = ast.parse(textwrap.dedent(text)).body[0]
    found = Bindings(function)
    return [
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and id(node) in found.values
    ]


@pytest.mark.parametrize(
    "text, values",
    [
        ("def f(x):\n    t = x\n    t = t + 1\n    return t", ["t", "t"]),
        ("def f(x):\n    t = x\n    if x > 0:\n        t = 1.0\n    return t", []),
        (
            "def f(x):\n    s = 0\n    for i in range(x):\n        t = i\n        s += t\n"
            "    return s",
            ["i", "t"],
        ),
        (
            "def f(x):\n    for i in range(x):\n        t = i\n    for i in range(x):\n"
            "        t = i\n"
            "    return x",
            ["i", "i", "t", "t"],
        ),
        ("def f(x):\n    for i in range(x):\n        t = i\n    return t", ["i"]),
        (
            "def f(x):\n    for i in range(x):\n        x = x + t\n        t = i\n    return x",
            ["i"],
        ),
        ("def f(x):\n    for i in range(3):\n        i = i + x\n    return x", ["i", "i"]),
        ("def f(x):\n    while x > 0:\n        t = x\n        x = x - t\n    return x", ["t"]),
    ],
    ids=[
        "bound-twice",
        "in-a-branch",
        "in-a-loop",
        "in-two-loops",
        "read-below",
        "from-the-trip-before",
        "counter",
        "while",
    ],
)
def test_values_stand_above_what_reads_them(text, values):
    assert sorted(values_of(text)) == values


PROGRAMS = {
    "becomes_a_float": (
        "def f(n):\n    t = 0\n    for i in range(n):\n        t = t + 0.5\n    return t",
        [(0,), (3,)],
    ),
    "of_two_types": (
        "def f(n):\n    if n > 2:\n        t = 1\n    else:\n        t = 0.5\n"
        "    t = t * 2\n    return t",
        [(1,), (3,)],
    ),
    "bound_anew_as_another_type": (
        "def f(x):\n    t = len(x)\n    u = t // 2\n"
        "    t = x * 1 if False else x\n    return u, t[0]",
        None,
    ),
    "either": (
        "def f(a, b):\n    return (a > 0 and b > 0) or (a < -1 and not b < 3)",
        [(1, 1), (-2, 3), (-2, 2), (0, 0)],
    ),
    "chain": (
        "def f(a, n):\n    return 0 < a < n, 0 < a < n <= 3, (0 < n < 8) | (a == 1)",
        [(1, 2), (0, 3), (2, 2), (3, 4), (1, 9)],
    ),
    "chosen": (
        "def f(a):\n    return 1.0 if a > 0 else (2 if a < -1 else a)",
        [(1.5,), (-2.0,), (-0.5,)],
    ),
    "down": (
        "def f(x):\n    s = 0.0\n    for i in range(len(x) - 1, -1, -1):\n"
        "        s = s * 2 + x[i]\n    return s, i",
        [(np.arange(4.0),)],
    ),
    "steps": (
        "def f(n, k):\n    s = 0\n    for i in range(n, -n, k):\n        s = 3 * s + i\n"
        "    for i in range(0, n, 3):\n        s = s - i\n    return s",
        [(7, -2), (-7, 3), (5, -5), (0, 1), (4, 1)],
    ),
    "leaves": (
        "def f(x, y):\n    k = -1\n    for i in range(len(x)):\n        if x[i] > y:\n"
        "            k = i\n            break\n        if x[i] < 0:\n"
        "            continue\n        y = y + x[i]\n    return k, y",
        [(np.array([1.0, -1.0, 2.0, 9.0]), 3.0), (np.zeros(0), 1.0)],
    ),
    "while_true": (
        "def f(n):\n    k = 0\n    while True:\n        k = k + 1\n"
        "        if k * k > n:\n            return k\n",
        [(0,), (50,)],
    ),
    "from_the_end": (
        "def f(x, k):\n    x[-1] += x[k]\n    return x[k - 1], x[-2]",
        [(np.arange(5.0), 0), (np.arange(5.0), -2)],
    ),
    "parameter": (
        "def f(n, x):\n    for i in range(3):\n        n = n + x\n    return n",
        [(1, 2), (1, 0.5)],
    ),
    "swapped": (
        "def f(n):\n    a, b = 0, 1\n    for i in range(n):\n        a, b = b, a + b\n    return a",
        [(10,)],
    ),
    "swapped_elements": (
        "def f(x, X, k):\n    x[0], x[k] = x[k], -x[0]\n"
        "    X[0], y, X[1, :2] = X[2], x[0], x[1:3]\n"
        "    (X[2, 0], x[k]) = X.shape\n    return y",
        [
            (np.arange(5.0), np.arange(9.0).reshape(3, 3), 2),
            (np.arange(5.0), np.arange(9.0).reshape(3, 3), -1),
        ],
    ),
    "powers": (
        "def f(x, k):\n    return x**2, x**3, x**-1, x**k, x**0.5, 2**k, k % 3, -k // 3, -k % 3",
        [(2.5, 3), (0.5, 4)],
    ),
    "of_numpy": (
        "def f(x):\n"
        "    return np.exp(x) + np.sqrt(x) * np.divide(x, 0.0) - np.inf, np.float32(x) * 2",
        [(2.0,), (0.0,)],
    ),
    "truth": (
        "def f(x, n):\n    m = np.zeros(len(x), dtype=np.bool_)\n"
        "    for i in range(len(x)):\n        m[i] = x[i] > n\n    return m",
        [(np.arange(4.0), 1)],
    ),
    "parts": (
        "def f(x, k):\n    y = x[1:k]\n    z = x[:2]\n    y[0] = 5.0\n"
        "    return y, z, x[k:].shape[0], x.T",
        [(np.arange(6.0), 4)],
    ),
    "rows": (
        "def f(X, i):\n    r = X[i]\n    s = 0.0\n    for j in range(X.shape[1]):\n"
        "        s += r[j] * X[i, j]\n    return s, r",
        [(np.arange(6.0).reshape(2, 3), 1)],
    ),
    "new_axes": (
        "def f(X, i):\n    return X[:, None, 1:], X[None], X[i, None], X[i][None, :].shape[0]",
        [(np.arange(6.0).reshape(2, 3), 1)],
    ),
    "slices_with_steps": (
        "def f(x, k):\n    return x[::2], x[k::-1], x[:k:3], x[::-k], x[5:1:-2], x[1:k:2].shape[0]",
        [(np.arange(9.0), 4), (np.arange(3.0), 1)],
    ),
    "strided": (
        "def f(x):\n    s = 0.0\n    for i in range(len(x)):\n"
        "        s += x[i] / (i + 1)\n    return s",
        [(np.arange(8.0)[::2],), (np.arange(8.0)[::-1],)],
    ),
    "list": (
        "def f(n):\n    xs = [1.0]\n    for i in range(n):\n        xs.append(i * 1.0)\n"
        "    s = xs.pop()\n    xs[0] = 7.0\n"
        "    return len(xs), xs[0], xs[-1] + s, xs[::-1][0]",
        [(3,), (5,)],
    ),
    "empty_lists": (
        "def f(n):\n    xs = []\n    ys = [0][:0]\n    while len(xs) < n:\n"
        "        xs.append((len(xs), 0.5))\n        ys.append(n)\n    zs = []\n"
        "    if n > 2:\n        zs = ys\n    return len(xs), len(zs), xs[0][1]",
        [(1,), (4,)],
    ),
    "lists_of_arrays": (
        "def f(x, n):\n    xs = []\n    y = x\n    for i in range(n):\n"
        "        y = y + x * 0.5\n        xs.append(y)\n    xs[0][1] = 9.0\n"
        "    return xs[0], xs[-1], xs[1:][0], [xs, xs][1][0], len([xs, [y]][1])",
        [(np.arange(3.0), 2)],
    ),
    "comprehensions": (
        "def f(x, n):\n    xs = [x[i] * n for i in range(len(x))]\n"
        "    ys = [[x * k for x in xs] for k in range(n)]\n    x = 3\n"
        "    return x, ys[1][2], [a - b for a, b in zip(xs, ys[0])][1], len(ys), "
        "[x for x in [len(ys), x]][1]",
        [(np.arange(3.0), 2), (np.arange(4.0), 3)],
    ),
    "parts_of_lists": (
        "def f(n, k):\n    start, stop, step = slice(None, k, None).indices(n)\n"
        "    return start, stop, step",
        [(5, 3), (2, 4), (5, -2)],
    ),
    "whole_arrays": (
        "def f(x, y):\n    z = x\n    z = z * 2.0 + y\n    return z, x, -x",
        [(np.arange(3.0), np.ones(3)), (np.ones((2, 3)), np.arange(3.0))],
    ),
    "complex": ("def f(z, x):\n    return z * z + x * 2j, z.real, abs(z)", [(1 + 2j, 3.0)]),
}


@pytest.mark.parametrize("name", [name for name, (_, calls) in PROGRAMS.items() if calls])
def test_computes_what_python_computes(name):
    text, calls = PROGRAMS[name]
    plain, compiled = both(text)
    for args in calls:
        ours, theirs = (
            [a.copy() if isinstance(a, np.ndarray) and a.base is None else a for a in args]
            for _ in range(2)
        )
        with np.errstate(all="ignore"):
            wanted = plain(*theirs)
        found = compiled(*ours)
        for a, b in (
            zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
        ):
            np.testing.assert_allclose(
                a, b, rtol=1e-6 if np.asarray(b).dtype == np.float32 else 1e-14
            )
        for a, b in zip(ours, theirs):
            np.testing.assert_array_equal(a, b)
    assert is_direct(compiled)


def jumps(text: str, *args) -> int:
    """How many jumps on a condition machine code makes, whose loops are told from them by their
    count.
    """
    _, compiled = both(text)
    compiled(*args)
    (code,) = compiled.inspect_asm().values()
    return len(re.findall(r"\n\s+j(?!mp)", code[:code.index(".size")]))


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="counts jumps of x86")
@pytest.mark.parametrize("number", ["x * y if abs(x) < 1.0 else y - 0.5", "np.sign(x) * y"])
def test_what_is_chosen_of_two_numbers_needs_no_jump(number):
    assert jumps(f"def f(x, y):\n    return {number}", 1.5, 2.5) == 0


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="counts jumps of x86")
def test_choices_by_one_condition_make_one_jump_at_most():
    """LLVM jumps where two choices share a condition and the processor has no registers of masks
    (AVX-512).
    """
    number = "(y if abs(x) < 1.0 else 0.0) + (0.0 if abs(x) < 1.0 else np.sign(x))"
    assert jumps(f"def f(x, y):\n    return {number}", 1.5, 2.5) <= 1


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_signs_are_those_of_numpy(kind):
    plain, compiled = both("def f(x):\n    return np.sign(x)")
    for x in map(kind, (2.5, -1e-40, 0.0, -0.0, np.inf, -np.inf, np.nan)):
        assert (
            np.copysign(1.0, compiled(x)) == np.copysign(1.0, plain(x))
            and type(compiled(x)) is float
        )
        np.testing.assert_array_equal(compiled(x), plain(x))
    assert is_direct(compiled)


@pytest.mark.parametrize(
    "text, error",
    [
        ("def f(n, x):\n    for i in range(0, 9, n):\n        x = x + 1\n    return x", ValueError),
        (
            "def f(n, x):\n    if n == 0:\n        raise IndexError('at', 3, n)\n    return x",
            IndexError,
        ),
        ("def f(n, x):\n    if n == 0:\n        raise TypeError\n    return x", TypeError),
    ],
)
def test_raises_what_python_raises(text, error):
    plain, compiled = both(text)
    assert compiled(2, 1.0) == plain(2, 1.0)
    with pytest.raises(error) as ours:
        compiled(0, 1.0)
    with pytest.raises(error) as theirs:
        plain(0, 1.0)
    assert ours.value.args == theirs.value.args or "range" in str(ours.value)
    assert is_direct(compiled)


@pytest.mark.parametrize("text", [
    "def f(n):\n    raise ValueError(-1, n)",
    "def f(n):\n    while True:\n        n = n + 1\n        if n > 3:\n"
    "            raise ValueError(n)",
], ids=["at-once", "in-a-loop"])
def test_what_never_returns_is_compiled(text):
    plain, compiled = both(text)
    with pytest.raises(ValueError) as ours:
        compiled(1)
    with pytest.raises(ValueError) as theirs:
        plain(1)
    assert ours.value.args == theirs.value.args
    assert is_direct(compiled)


def test_a_raise_says_its_line():
    plain, compiled = both("def f(n):\n    if n > 0:\n        raise ValueError('no')\n    return n")
    with pytest.raises(ValueError) as error:
        compiled(1)
    assert error.traceback[-1].lineno + 1 == 3


@pytest.mark.parametrize(
    "text",
    [
        "def f(x, n):\n    y = np.copy(x)\n    for i in range(n):\n        y = np.copy(y)\n"
        "        y[0] = i\n    return y",
        "def f(x, n):\n    t = x\n    for i in range(n):\n        u = np.copy(t)\n"
        "        if i == 2:\n            break\n        if i == 1:\n            continue\n"
        "        t = u\n    return t",
        "def f(x, n):\n    a = np.copy(x)\n    b = np.copy(x)\n    for i in range(n):\n"
        "        a, b = b, a\n        if a[0] > 100.0:\n            return b, a, x\n"
        "    return a, b, x",
        "def f(x, n):\n    x = np.copy(x)[1:]\n    if n > 2:\n        x = np.copy(x[1:])\n"
        "    return x.T",
        "def f(x, n):\n    y = np.copy(x) if n > 2 else x\n    z = y\n"
        "    return z[0] + np.copy(z)[1] + len(np.copy(y)) + np.copy(x).shape[0]",
        "def f(x, n):\n    if n > 100:\n        y = np.copy(x)\n    return x",
        "def f(x, n):\n    p, q = np.copy(x), x\n    p, q = q, p\n    return p",
        "def f(x, n):\n    xs = []\n    for i in range(n + 1):\n        xs.append(np.copy(x))\n"
        "    xs[0] = np.copy(xs[-1])\n    y = xs.pop()\n    return y",
        "def f(x, n):\n    xs = [np.copy(x) for i in range(n + 1)]\n"
        "    ys = [xs, [y + x for y in xs[::-1]]]\n    return ys[1].pop()",
        "def f(x, n):\n    xs = [np.copy(x), x]\n    while len(xs) < n:\n        xs.append(xs[0])\n"
        "        if len(xs) == 4:\n            return xs[2]\n    return xs[0]",
    ],
    ids=[
        "in-a-loop",
        "leaves-a-trip",
        "swapped",
        "parameter",
        "chosen",
        "on-one-path",
        "parameter-among-several",
        "a-list",
        "lists-of-lists",
        "a-list-of-the-same",
    ],
)
def test_what_is_allocated_is_freed(text, request):
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    plain, compiled = both(text)
    x = np.arange(5.0)
    compiled(x, 1)
    assert is_direct(compiled)
    for n in (0, 1, 5):
        before = rtsys.get_allocation_stats()
        found = compiled(x, n)
        wanted = plain(x, n)
        for a, b in zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]:
            np.testing.assert_array_equal(a, b)
        del found, a
        after = rtsys.get_allocation_stats()
        assert after.alloc - before.alloc == after.free - before.free
        assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


HOLDING = {
    "a-name": "def f(x, n):\n    y = np.copy(x)\n    z = checked(n)\n    return y[z]",
    "a-slot": "def f(x, n):\n    y = np.copy(x)\n    for i in range(n):\n        y = np.copy(y)\n"
    "        y[0] = checked(i)\n    return y",
    "in-a-loop": "def f(x, n):\n    s = 0.0\n    for i in range(n):\n        y = np.copy(x)\n"
    "        if i == 1:\n            z = np.copy(x)\n"
    "            s += z[checked(n)]\n"
    "        s += y[checked(i)]\n    return s",
    "raises-itself": "def f(x, n):\n    y = np.copy(x)\n    if n > 2:\n        z = np.copy(y)\n"
    "        if n > 4:\n            raise ValueError(z[0], n)\n    return y",
    "arguments": "def f(x, n):\n"
    "    return first(np.copy(x), checked(n)) + first(np.copy(x), 0) * np.copy(x)[checked(n)]",
    "more-than-a-word-has-bits": "def f(x, n):\n"
    + "".join(
        f"    y{k} = np.copy(x)\n    s{k} = y{k // 2}[checked(n - {k % 3})]\n" for k in range(150)
    )
    + "    return "
    + " + ".join(f"s{k} * y{k}[0]" for k in range(150))
    + " + x[checked(n)]",
    "lists": "def f(x, n):\n    xs = [np.copy(x), np.copy(x)]\n    for i in range(n):\n"
    "        xs.append(np.copy(xs[i]))\n"
    "    ys = [xs, [first(y, checked(n)) + y for y in xs]]\n"
    "    return ys[0][1][0]",
    "tuples": "def f(x, n):\n    a, b = np.copy(x), checked(n)\n"
    "    t = a, (np.copy(a), first(np.copy(x), checked(n)))\n    return t[1][0]",
}


@pytest.mark.parametrize("name", HOLDING)
def test_what_is_held_is_freed_where_something_raises(name, request):
    _nrt_python.memsys_enable_stats()
    request.addfinalizer(_nrt_python.memsys_disable_stats)
    decorated = "@njit(error_model='numpy', pipeline_class=Effort)\n"
    text = (f"{decorated}def checked(k):\n    if k > 4:\n        raise ValueError('no', k)\n"
            f"    return k\n{decorated}def first(y, k):\n    return y[k]\n") + HOLDING[name]
    _, compiled = both(text, njit=njit, Effort=Effort)
    x = np.arange(5.0)
    compiled(x, 2)
    assert is_direct(compiled)
    before = rtsys.get_allocation_stats()
    with pytest.raises(ValueError):
        compiled(x, 6)
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free


def test_a_list_of_which_nothing_is_known_yet_is_left_to_numba():
    """A function of the module would be compiled for it."""
    text = ("@njit(pipeline_class=Effort)\ndef among(xs, n):\n    return len(xs) + n\n"
            "def f(n):\n    xs = []\n    k = among(xs, n)\n    xs.append(n * 0.5)\n"
            "    return k + among(xs, n)")
    _, compiled = both(text, njit=njit, Effort=Effort)
    assert compiled(3) == 7 and not is_direct(compiled)


@pytest.mark.parametrize(
    "text, args",
    [
        ("def f(x):\n    y = x * 2.0\n    y += x\n    return y", (np.arange(3.0),)),
        (
            "def f(n):\n    xs = [1]\n    for i in range(n):\n        xs.append(i * 0.5)\n"
            "    return xs[0] + xs[-1]",
            (3,),
        ),
        (
            "def f(n):\n    ys = [i * 0.5 for i in range(n)] if n > 2 else [1.0]\n    return ys[0]",
            (3,),
        ),
        ("def f(n):\n    ys = [i * 0.5 for i in range(n) if i > 1]\n    return ys[0]", (4,)),
        (
            "def f(x):\n    s = 0.0\n    for v in x:\n        s += v\n    return s",
            (np.arange(3.0),),
        ),
        ("def f(n):\n    return n in (1, 2), n is None", (2,)),
        ("def f(n):\n    return " + " + ".join(["n"] * 700), (2.0,)),
        ("def f(x):\n    x[()] = 2.0\n    x[()] += 1.0\n    return x[()]", (np.array(3.0),)),
        ("def f(n):\n    return 2**-1, (-1)**0.5, ~True, 9223372036854775807 + 1", (2,)),
        ("def f(n):\n    return 1 if False else 2.5, (n | 0) if True else 2.5", (2,)),
        ("def f(n, *others):\n    return n + others[0]", (2, 3)),
    ],
    ids=[
        "added-to-in-place",
        "a-list-that-changes",
        "not-always-made",
        "with-a-condition",
        "over-an-array",
        "membership",
        "a-long-sum",
        "without-axes",
        "constants",
        "chosen-beforehand",
        "any-number",
    ],
)
def test_the_rest_goes_the_way_of_numba(text, args):
    plain, compiled = both(text)
    np.testing.assert_array_equal(compiled(*args), plain(*args))
    assert not is_direct(compiled)


def test_a_target_of_two_names_is_left_to_numba():
    with pytest.raises(NotDirect):
        Bindings(ast.parse("def f(x):\n    for a, b in x:\n        pass").body[0])


def test_gradients_of_loops_go_this_way():
    def program(u, k, sweeps):
        u = u.copy()
        for _ in range(sweeps):
            for i in range(1, len(u) - 1):
                if u[i] > 0.5:
                    u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
        return np.sum(np.tanh(u) * u)

    u = np.linspace(0.0, 1.0, 9)
    gradient = s2s.jit(s2s.grad(program, argnums=(0, 1)), cache=False)
    for a, b in zip(gradient(u, 0.2, 3), s2s.grad(program, argnums=(0, 1))(u, 0.2, 3)):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    (native,) = [
        each
        for each in s2s.runtime.numba.native_module._entries
        if each.py_func.__name__ == "program_grad"
    ]
    assert is_direct(native)


def distance_to_plane(origin, slope):
    if abs(slope) < 1e-9:
        return None
    t = (-0.4 - origin) / slope
    return t if t > 1e-4 else None


def nearest_of_planes(x):
    best = 5.0
    for k in range(3):
        t = distance_to_plane(x[0] * k, x[1])
        if t is not None and t < best:
            best = t
    return best * x[1]


def test_gradients_of_numbers_that_may_be_none_go_this_way():
    """What stands for the number where nobody reads it was None, of which Numba made an optional
    number: a ray tracer took 22 seconds to compile, and takes 5.
    """
    gradient = s2s.jit(s2s.grad(nearest_of_planes), cache=False)
    np.testing.assert_allclose(gradient(np.array([-0.5, 1.0])), [-1.0, 0.0])
    np.testing.assert_allclose(gradient(np.array([0.5, 1.0])), [0.0, 5.0])
    (native,) = [
        each
        for each in s2s.runtime.numba.native_module._entries
        if each.py_func.__name__ == "nearest_of_planes_grad"
    ]
    assert is_direct(native)


def of_determinants(A, B):
    S, T = A @ A.T, np.array([[A[0, 0], 2.0], [A[1, 1], A[0, 1]]])
    return np.log(np.linalg.det(S)) + np.linalg.det(T) ** 2 + np.sum(np.linalg.det(B))


def test_gradients_of_determinants_go_this_way(monkeypatch):
    A, B = (
        np.linspace(-1.0, 2.0, 16).reshape(4, 4) + 3 * np.eye(4),
        np.arange(12.0).reshape(3, 2, 2),
    )
    wanted = s2s.grad(of_determinants, argnums=(0, 1))(A, B)
    monkeypatch.setattr(
        DirectLowering, "forget", lambda state: pytest.fail("it goes the way of Numba")
    )
    found = s2s.jit(s2s.grad(of_determinants, argnums=(0, 1)), cache=False)(A, B)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_numpys_function_of_a_number_is_no_loop():
    def f(x):
        return np.exp(x) + np.arctan2(x, 2.0)

    native = s2s.jit(f, cache=False)
    assert native(0.5) == pytest.approx(np.exp(0.5) + np.arctan2(0.5, 2.0), rel=1e-15)
    (library,) = [
        o.library for o in s2s.runtime.numba.native_module._entries[-1].overloads.values()
    ]
    functions = [
        function
        for module in library.modules()
        for function in module.functions
        if not function.is_declaration
    ]
    assert functions and not any("for.cond" in str(function) for function in functions)


@pytest.mark.parametrize(
    "head, is_short",
    [
        ("range(3)", True),
        ("range(1, 7)", True),
        ("range(3, -1, -1)", True),
        ("range(8)", False),
        ("range(40)", False),
        ("range(n)", False),
        ("range(n, 40)", False),
        ("range(9, -1, -1)", False),
        ("range(n - 1, -1, -1)", False),
    ],
)
def test_loops_of_few_trips_are_seen(head, is_short):
    """LLVM unrolls them in a run of its own."""
    (function,) = ast.parse(f"def f(x, n):\n    for i in {head}:\n        x[i] = 0.0\n").body
    assert Unrolling(function).short == is_short


@pytest.mark.parametrize(
    "text, left, is_short",
    [
        ("for i in range(3):\n for j in range(n):\n  x[j] += 1", ["i", "j"], False),
        (
            "for i in range(3):\n for j in range(2):\n  for k in range(n):\n   x[k] += 1",
            ["i", "j", "k"],
            False,
        ),
        (
            "for i in range(3):\n for j in range(2):\n  x[j] += 1\n while n > 0:\n  n -= 1",
            ["i"],
            True,
        ),
        ("for i in range(3):\n for j in range(i):\n  x[j] += 1", [], True),
        ("for i in range(n):\n for j in range(i, 4):\n  x[j] += 1", [], True),
        (
            "for i in range(4):\n if x[i] > 0:\n  for j in range(n):\n   x[j] += 1",
            ["i", "j"],
            False,
        ),
        ("for i in range(3):\n x[checked_place(i, n)] += 1", [], False),
    ],
)
def test_loops_around_long_ones_are_not_unrolled(text, left, is_short):
    (function,) = ast.parse(
        "def f(x, n):\n" + "\n".join(f" {line}" for line in text.splitlines())
    ).body
    found = Unrolling(function)
    assert sorted(loop.target.id for loop in found.left) == left and found.short == is_short


def test_llvm_leaves_loops_around_long_ones():
    """A kernel of 3 x 3 over channels: one loop over them, not nine."""
    def spread(x, y):
        for i in range(len(x)):
            for j in range(3):
                for k in range(3):
                    for n in range(len(y)):
                        x[i] += y[n] * (1 + j) / (2 + k)
        return x

    native = s2s.jit(spread, cache=False)
    x, y = np.zeros(5), np.arange(9.0)
    np.testing.assert_allclose(native(x, y), spread(np.zeros(5), y), rtol=1e-13)
    (library,) = [
        o.library for o in s2s.runtime.numba.native_module._entries[-1].overloads.values()
    ]
    code = next(
        str(f)
        for module in library.modules()
        for f in module.functions
        if not f.is_declaration and "fdiv" in str(f) and "cpython" not in f.name
    )
    assert code.count("fdiv") <= 8


def test_arrays_are_made_and_multiplied_in_functions_of_the_module():
    def layers(A, B, x):
        C = A @ B
        D = C @ A
        y = (D @ B).reshape(-1)
        z = np.zeros((len(x), 3))
        for i in range(len(x)):
            for j in range(3):
                z[i, j] = x[i] * y[j]
        return np.sum(np.reshape(z, (3, len(x))), axis=0), D

    native = s2s.jit(layers, cache=False)
    given = np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3) - 5.0, np.linspace(0, 1, 5)
    for ours, theirs in zip(native(*given), layers(*given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    (library,) = [
        o.library for o in s2s.runtime.numba.native_module._entries[-1].overloads.values()
    ]
    code = library.get_llvm_str()
    assert code.count("call i32 @numba_xxgemm") == 1
    # its declaration, and a call for each rank
    assert code.count("NRT_MemInfo_alloc_aligned(") <= 4


def test_loops_whose_trips_hand_nothing_on_are_not_repeated():
    def scaled(x, y):
        z = np.empty(len(x))
        for i in range(len(x)):
            z[i] = x[i] * 1.25 + y[i]
        return z

    native = s2s.jit(scaled, cache=False)
    for n in (0, 1, 2, 7, 64, 129):
        np.testing.assert_allclose(
            native(np.arange(float(n)), np.ones(n)), np.arange(float(n)) * 1.25 + 1.0, rtol=1e-15
        )
    (library,) = [
        o.library for o in s2s.runtime.numba.native_module._entries[-1].overloads.values()
    ]
    code = next(
        str(f)
        for module in library.modules()
        for f in module.functions
        if not f.is_declaration and "fmul" in str(f) and "cpython" not in f.name
    )
    assert code.count("fmul") <= 3  # of a vector, of what is left of one, of a number


@pytest.mark.machine_code
def test_slices_are_read_several_elements_at_a_time():
    """No slice begins at a negative index, whatever its bounds: LLVM is not to ask of each element
    whether it counts from the end.
    """
    def added(x, w, first, n):
        y = np.zeros(n)
        for k in range(len(w)):
            y += w[k] * x[first + k:first + k + n]
        return y

    native = s2s.jit(added, cache=False)
    x, w = np.arange(30.0) ** 2, np.array([1.0, 2.0, -3.0])
    for first, n in ((0, 28), (2, 11), (-20, 16), (40, 0), (-60, 0)):
        np.testing.assert_array_equal(native(x, w, first, n), added(x, w, first, n))
    for first, n in ((25, 4), (-2, 5), (-31, 3)):  # they end with the array, or begin with it
        with pytest.raises(ValueError):
            added(x, w, first, n)
        with pytest.raises(ValueError):
            native(x, w, first, n)
    (library,) = [
        o.library for o in s2s.runtime.numba.native_module._entries[-1].overloads.values()
    ]
    code = next(
        str(f)
        for module in library.modules()
        for f in module.functions
        if not f.is_declaration and "fmul" in str(f) and "cpython" not in f.name
    )
    assert "gather" not in code and re.search(r"fmul \w+ <\d+ x double>", code)


def test_what_is_called_is_compiled_for_the_flags_of_each():
    x = np.random.default_rng(0).standard_normal(10001) * 1e3
    text = "def f(x):\n    return np.sum(x)"
    found = []
    for fastmath in ({"contract"}, {"contract", "reassoc", "nsz", "arcp"}, {"contract"}):
        _, compiled = both(text)
        found.append(
            njit(
                error_model="numpy",
                nogil=True,
                pipeline_class=Effort,
                no_cfunc_wrapper=True,
                fastmath=fastmath,
            )(compiled.py_func)(x)
        )
    assert found[0] == found[2] == np.add.accumulate(x)[-1]
    assert found[1] != found[0]


def long_function(count):
    """So many loops one after the other, each of which carries a number and writes an array, in
    branches and under names of their own.
    """
    lines = ["def f(x):", "    a = np.zeros(len(x))", "    s = 0.0"]
    for k in range(count):
        lines += [
            f"    t{k} = s * 0.5",
            "    for i in range(1, len(x)):",
            f"        u = a[i - 1] * {k % 3 - 1}.25 + t{k}",
            f"        if u > {k % 5}.0:",
            f"            u = u - {k % 4}.5",
            f"        a[i] = a[i] * 0.5 + u * x[i - 1] + s{k % 7 if k > 7 else ''} * 0.25",
            "        s += a[i] * 0.0625",
            f"    s{k % 7} = s",
        ]
        if k % 11 == 10:
            lines += [
                f"    if s > {k % 6}.0:",
                f"        s = s - {k}.0",
                "    else:",
                f"        t{k} = s",
                f"    s = s + t{k} * 0.125",
            ]
    return s2s.from_source("\n".join([*lines, "    return s + np.sum(a)"]), {"np": np})


@pytest.mark.parametrize("count", [20, 40])
def test_long_functions_compute_what_python_computes(count, monkeypatch):
    """Rests stand between loops, and names that are read no more are forgotten."""
    monkeypatch.setattr(
        DirectLowering, "forget", lambda state: pytest.fail("it goes the way of Numba")
    )
    f, x = long_function(count), np.linspace(0.1, 0.9, 6)
    np.testing.assert_allclose(s2s.jit(f, cache=False)(x), f(x), rtol=1e-12)
    np.testing.assert_allclose(s2s.jit(s2s.grad(f), cache=False)(x), s2s.grad(f)(x), rtol=1e-9)


@pytest.mark.parametrize(
    "text, over",
    [
        ("t = x\nu = t\nreturn u", {0: ["x"], 1: ["t"], 2: ["u"]}),
        ("t = x\nt = t + 1\nt += 2\nreturn t", {0: ["x"], 3: ["t"]}),
        ("for i in range(3):\n    t = x\nu = 1\nreturn u", {0: ["i", "t", "x"], 2: ["u"]}),
        ("for i in range(3):\n    if i > 1:\n        t = x\nreturn t", {0: ["i", "x"], 1: ["t"]}),
        (
            "t = 0.0\nfor i in range(3):\n    t = t + x\nx = t\nt = x\nreturn t",
            {1: ["i", "x"], 3: ["x"], 4: ["t"]},
        ),
    ],
)
def test_names_that_are_read_no_more(text, over):
    (tree,) = ast.parse("def f(x):\n    " + text.replace("\n", "\n    ")).body
    found = Bindings(tree).over
    assert {
        k: sorted(set(names)) for (block, k), names in found.items() if block == id(tree.body)
    } == over
    # whatever the text reads below it is bound again before
    for (block, k), names in found.items():
        if block == id(tree.body):
            for name in names:
                rest = [
                    n
                    for stmt in tree.body[k + 1 :]
                    for n in ast.walk(stmt)
                    if isinstance(n, ast.Name) and n.id == name
                ]
                assert not rest or any(isinstance(n.ctx, ast.Store) for n in rest)


def test_llvm_does_not_go_back_through_all_loops(monkeypatch):
    """Each stretch of loops ends where two ways meet."""
    texts = []
    monkeypatch.setattr(
        compiler,
        "in_pieces",
        lambda pieces, *more: (
            texts.append("\n".join(pieces.defined.values())),
            in_pieces(pieces, *more),
        )[1],
    )
    s2s.jit(long_function(STRETCH // 2), cache=False)(np.ones(5))
    s2s.jit(long_function(3 * STRETCH), cache=False)(np.ones(5))
    rests = [text.count('asm sideeffect ""') for text in texts]
    assert rests[-1] - rests[0] == 3 * 2


def test_calls_that_are_asked_for_their_lengths_go_this_way():
    """What asks whether a call of many sections is worth threads has the smallest of many sizes in
    it, and the largest of two.
    """
    from s2s.back.print.printer import Module
    from s2s.runtime.numba.native_module import decorated
    from s2s.runtime.threads.parallel_threshold import least

    module = Module("def f(x):\n    return x[0]\n", "f", {})
    text = decorated(
        module, False, False, {"MoreWork": ["min(max(a0.shape[0] // 64, 0), a0.shape[0]) > 1000"]}
    ).text
    assert "larger as max" in text and "smaller as min" in text
    assert (
        eval(least(["3", "1", "2"])) == 1 and eval(least(["4"])) == 4 and "min(" not in least(["4"])
    )
    assert all(
        len(node.args) == 2
        for node in ast.walk(ast.parse(least(list("abcdefg"))))
        if isinstance(node, ast.Call)
    )


def test_a_long_function_is_prepared_by_list():
    """LLVM is told once, where a module has many blocks."""
    from llvmlite import binding

    s2s.jit(long_function(BLOCKS // 3 + 1), cache=False)(np.ones(5))
    assert binding.llvm_version_info[0] > 22 or binding.s2s_works_by_list


class Lowered(event.Listener):
    """The functions that Numba lowers, each of which takes it a tenth of a second or so."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        if "lowering" in event.data["name"]:
            self.names.append(event.data["name"].partition("[")[2].rstrip("]"))

    def on_end(self, event):
        pass


def accepted_or_not(p, end):
    """Steps of a state of two numbers, which are accepted or not, and are as long as their error
    lets them.
    """
    y, t, h = np.array([1.0, 0.0]), 0.0, 0.1
    while t < end:
        k1 = np.array([y[1], p[1] * (1 - y[0] ** 2) * y[1] - p[0] * y[0]])
        z = y + h * k1
        k2 = np.array([z[1], p[1] * (1 - z[0] ** 2) * z[1] - p[0] * z[0]])
        error = np.max(np.abs(0.5 * h * (k2 - k1)))
        if error < 1e-2:
            y = y + 0.5 * h * (k1 + k2)
            t = t + h
        h = h * min(2.0, max(0.3, 0.9 * np.sqrt(1e-2 / (error + 1e-12))))
    return y[0] ** 2 + y[1]


def there_and_back(A, x, n):
    """What is appended on the way there is read on the way back."""
    gains, V = [], A
    for _ in range(n):
        V = np.tanh(A @ V)
        gains.append(V)
    squares = [np.sum(g * g) for g in gains]
    total = 0.0
    for k in range(n):
        x = gains[-1 - k] @ x
        total = total + np.sum(x * x) * squares[k]
    return total


ALONE = {
    "while_with_arrays": (s2s.grad(accepted_or_not), (np.array([1.0, 0.5]), 2.0)),
    "lists_of_arrays": (s2s.grad(there_and_back), (np.eye(3) * 0.5 + 0.1, np.arange(3.0), 4)),
    "powers": (lambda x: x**3 + 0.5 * x**7 + (x + 2.0) ** -2, (np.linspace(0.1, 2.0, 9),)),
    "complex_products": (
        lambda x: np.sum(np.abs((x + 2j) * (1j * x)) * x),
        (np.linspace(0.1, 2.0, 9),),
    ),
    "parts_of_rows": (
        lambda x, w: x[:, 1:5] @ w + x[:, ::2] @ w[:, 0][:, None],
        (np.arange(72.0).reshape(9, 8), np.arange(12.0).reshape(4, 3)),
    ),
    "rows_from_everywhere": (
        lambda x, v: x[:, 1:5].T @ v[::2],
        (np.arange(72.0).reshape(9, 8), np.arange(18.0)),
    ),
    "other_orders": (
        lambda x: np.reshape(np.transpose(x, (1, 2, 0)), (-1, len(x))) * 2.0,
        (np.arange(24.0).reshape(2, 3, 4),),
    ),
    "copies": (
        lambda x: x.copy() + np.transpose(x.copy(), (0, 2, 1)).copy(),
        (np.arange(18.0).reshape(2, 3, 3),),
    ),
    "einsum": (
        lambda E, t: np.einsum("ab,aic,bid->cd", E, t, t),
        (np.eye(12), np.arange(432.0).reshape(12, 3, 12)),
    ),
}


ALLOCATING = "_call_allocator", "_ol_array_allocate"  # of Numba's, once in a process


@pytest.mark.parametrize("name", ALONE)
def test_numba_compiles_nothing_beside_the_program(name, tmp_path, monkeypatch):
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path))
    f, args = ALONE[name]
    with event.install_listener("numba:run_pass", Lowered()) as lowered:
        found = s2s.jit(f)(*args)
    np.testing.assert_allclose(found, f(*args), rtol=1e-13)
    assert (
        len([each for each in lowered.names if not each.startswith(("with_room", *ALLOCATING))])
        == 1
    ), lowered.names
