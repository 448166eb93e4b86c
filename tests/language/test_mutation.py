"""Writing into arrays in every way that NumPy has, seen through every name that shares the
memory.
"""

import numpy as np
import pytest
from judge import judge

import s2s

X = np.linspace(0.3, 1.7, 6)
Y = np.cos(np.arange(6.0))
A = np.sin(np.arange(12.0) + 1).reshape(3, 4)
M = A > 0.2
I = np.array([1, 3, 1, 0])  # noqa: E741
PROGRAMS = []


def case(*args, compiled=False):
    """Record the program below with these arguments; some are compiled, too."""
    def record(function):
        marks = [pytest.mark.compile] if compiled else []
        PROGRAMS.append(pytest.param(function, args, False, id=function.__name__))
        if compiled:
            PROGRAMS.append(
                pytest.param(function, args, True, id=f"{function.__name__} compiled", marks=marks)
            )
        return function
    return record


@case(X, Y)
def out_ufunc(x, y):
    z = np.empty_like(x)
    np.multiply(x, y, out=z)
    np.sin(z, z)
    np.add(z, x, out=z)
    return z


@case(A, A + 0.3, compiled=True)
def out_where(a, b):
    c = np.zeros_like(a)
    np.divide(a, b, out=c, where=b > 0.5)
    np.log(a, out=c, where=a > 0.1)
    return c


@case(A)
def out_sum(a):
    s = np.zeros(4)
    np.sum(a, axis=0, out=s)
    t = a.sum(axis=1, out=np.zeros(3))
    m = np.zeros((3, 3))
    np.matmul(a, a.T, out=m)
    np.clip(m, 0.1, 0.9, out=m)
    np.dot(a, s, out=t)
    return np.sum(m) + np.sum(t * t)


@case(X, Y)
def copyto(x, y):
    z = np.zeros_like(x)
    np.copyto(z, x)
    np.copyto(z, y, where=x > 1)
    np.copyto(z[1:3], z[2:4])
    return z


@case(X, 0.7, compiled=True)
def put_in_turn(x, v):
    z = x.copy()
    np.put(z, [0, 2], v)
    z.put(np.array([1, -1]), x[2:4])
    return z


@case(A, X)
def put_and_fill_diagonal(a, x):
    z = a.copy()
    np.put(z, np.array([5, 0, 11, 3, 7, 2, 2, 1]), x)
    np.fill_diagonal(z, x[0])
    np.fill_diagonal(z[:, 1:], x)
    return z


@case(A, X, M)
def place_and_putmask(a, x, m):
    z = a.copy()
    np.putmask(z, z < 0, x[1])
    np.place(z, m, x)
    np.place(z, z > 1, [0.5])
    z[m] *= x[0]
    z[z < 0.3] += 1
    return z


@case(X, Y, I, compiled=True)
def ufunc_at(x, y, i):
    x = x.copy()
    np.add.at(x, i, y[:4])
    np.subtract.at(x, i, y[1:5] * x[0])
    np.multiply.at(x, i, y[2:])
    np.multiply.at(x, i, 1.5)
    np.maximum.at(x, i, y[1:5])
    np.negative.at(x, i)
    np.divide.at(x, np.array([0, 0]), 2.0)
    return x


@case(X)
def sort_a_view(x):
    x = np.cos(3 * x)
    y = x[::-1]
    y.sort()
    x[1:].sort()
    return x * np.arange(6)


@case(A)
def sort_along_axes(a):
    a = a.copy()
    a.sort(axis=0)
    a[1].sort()
    a.T[2].fill(a[0, 0])
    return a


@case(A, X)
def shape_views(a, x):
    a = a.copy()
    f = a.reshape(-1)
    f[1] = x[0]
    f[::3] += x[1:5]
    g = a.ravel()
    g[-2:] *= x[:2]
    e = x.reshape(2, 3)
    e = e.copy()
    t = np.swapaxes(e, 0, 1)
    t[1, :] = f[:2]
    u = np.moveaxis(a[None], 0, 2)
    u[0, 1, 0] = x[5]
    w = np.expand_dims(f, 0)
    w[0, 4] = 2 * x[2]
    q = a.flat
    q[::5] = x[3]
    a.flat[2] = x[4] * a.flat[1]
    b = np.flip(a, 1)
    b[0] = a[1]
    k = np.squeeze(w)
    k[3] = k[4]
    return np.sum(a * a) + np.sum(e * np.cos(e))


@case(A, X, compiled=True)
def split_into_views(a, x):
    a = a.copy()
    l, r = np.split(a, 2, axis=1)
    l[:] = r * x[0]
    p, q, s = np.split(x.copy(), 3)
    p += q
    q[0] = s[1] * p[0]
    u, v = np.split(a, [1])
    u[0, 0] = x[5]
    v *= u[0, 1]
    return np.sum(a * a) + p[0] * q[0] + s[0]


@case(A)
def read_only_views_follow(a):
    a = a.copy()
    d = np.diagonal(a)
    b = np.broadcast_to(a[0], (3, 4))
    a[0, 0] = a[1, 1] * 2
    a[0, 1] = 5 * a[2, 2]
    return np.sum(d * d) + np.sum(b * a)


@case(X, Y)
def views_of_all(x, y):
    x = x.copy()
    z = np.asarray(x)
    z[0] = y[1]
    w = np.atleast_2d(x)
    w[0, 1] = y[2]
    v = np.atleast_1d(x)
    v[2] *= y[3]
    r = x.real
    r[3] = 3 * y[1]
    c = x.squeeze()
    c[4] = x[3]
    s = x.astype(np.float64, copy=False)
    s[5] = y[0]
    return x


@case(X)
def overlapping_slices(x):
    x = x.copy()
    x[1:] += x[:-1]
    x[:-1] *= x[1:]
    x[::2] -= x[1::2]
    x[::-1] += x
    x += x[::-1]
    x[1:4] = x[0:3]
    x **= 2
    x -= x[0]
    return x


@case(X, I)
def integer_arrays_that_repeat(x, i):
    x = x.copy()
    x[i] = x[:4] * 2
    x[i] += 1.5
    x[i] *= x[1:5]
    x[[0, 1]] = x[[1, 0]]
    x[i[1]] -= x[i[0]]
    return x


@case(A, compiled=True)
def rows_are_views(a):
    a = a.copy()
    a[[0, 2]] = a[[2, 0]]
    a[0], a[1] = a[1].copy(), a[0].copy()
    a[1], a[2] = a[2], a[1]
    for r in a:
        r[:] = r * r[0]
        r += 1
    for i, r in enumerate(a):
        r[i] = r[i - 1]
    for r, s in zip(a, a[::-1]):
        r[1:] += s[:-1]
    for c in a.T:
        c[0] *= c[1]
    for r in reversed(a):
        r -= a[0]
    return a


def axpy(y, x, c):
    y += c * x
    y[0] = x[0]


def callee_two(a):
    axpy(a[1:], a[:-1], 2.0)
    axpy(a, a, 0.5)


@case(X, compiled=True)
def callee_given_overlapping_views(x):
    x = x.copy()
    callee_two(x)
    return x


@case(X)
def two_closures_share_an_array(x):
    x = x.copy()
    y = x[1:]
    def put(i, v):
        x[i] = v
    def get(i):
        return y[i]
    put(2, get(0) * 3)
    g = lambda k: y[k] * x[k]
    put(1, g(1))
    y[0] += get(1)
    return x * y[0]


@case(X)
def containers_share_an_array(x):
    x = x.copy()
    p = (x, [x[2:], x])
    p[1][0][0] = 1.5 * x[0]
    p[0][1] = p[1][0][0]
    p[1][1][-1] *= x[1]
    for q in p[1]:
        q += 1
        q[0] = x[3]
    return x


@case(X)
def nan_to_num_in_place(x):
    y = x / 2
    np.nan_to_num(y, copy=False)
    y[0] = 2 * x[1]
    return y


@case(A, I)
def put_along_an_axis(a, i):
    a = a.copy()
    np.put_along_axis(a, np.array([[0], [2], [1]]), a[:, :1] * 2, axis=1)
    return a


@case(X, A)
def parts_of_an_array(x, a):
    x = x.copy()
    p, q, r, s = np.array_split(x, 4)
    p += r[0]
    s[0] = q[1] * p[0]
    a = a.copy()
    u, v = np.vsplit(a[:2], 2)
    u[0] = v[0] * x[0]
    w, z = np.hsplit(a, 2)
    w[:, 0] *= z[:, 1]
    return np.sum(x * x) + np.sum(a * a * a)


@case(A, compiled=True)
def diagonals(a):
    a = a.copy()
    i = np.arange(3)
    a[i, i] = 2.0 * a[i, i + 1]
    a.flat[::5] += 1
    a.T.flat[1] = 3 * a[0, 0]
    f = a.reshape(-1)
    for k in range(f.size - 1):
        f[k + 1] = f[k] * 0.5 + f[k + 1]
    return a


@case(X, 5, compiled=True)
def view_in_a_while_loop(x, n):
    x = x.copy()
    y = x[1:]
    i = 0
    while i < n:
        y[i] = y[i] * x[i]
        i += 1
    z = x[::-1]
    z[0] = x[0]
    for k in range(2):
        z[k + 1] = z[k] * y[-1]
    return x


@case(A, compiled=True)
def views_in_loop(a):
    a = a.copy()
    for j in range(a.shape[1]):
        col = a[:, j]
        col[1:] -= col[:-1]
        col[0] *= 2
        t = a.T[j]
        t[-1] = col[0]
    w = a[::2, 1:]
    w[:, ::2] *= a[1, 1]
    w[1][0] = w[0][1] + w[-1, -1]
    return a


@case(A, compiled=True)
def views_of_views(a):
    a = a.copy()
    for p in a:
        for k, v in enumerate(p):
            p[k] = v * p[0]
    b = a[1:]
    c = b[:, 1:]
    d = c.T
    d[0, 1] = a[0, 0]
    d[1:] += a[1, 1]
    d[::-1][0] = 2.5 * a[2, 0]
    e = b[None, :, 1]
    e[0] = a[:2, 2] ** 2
    e[0, 0] += a[0, 1]
    return a


@case(A, np.array([True, False, True]))
def masks(a, m):
    a = a.copy()
    b = a[:, 1:3]
    b[m] = a[0, :2] * 3
    b[m, 1] *= 2
    b[[2, 0], [0, 1]] = a[1, 1]
    c = a[1:]
    c[c > 0] = c[c > 0] * 2
    c[:, [0, 3]] += a[0, [1, 1]]
    return a


@case(X)
def names_of_one_array(x):
    x = x.copy()
    y = z = x[2:]
    y[0] = z[1] * 2
    (y if True else x)[1] = 5 * x[0]
    z += y
    del y
    x[z.size] = z[0]
    x[-1], z[0] = z[0], x[-1]
    return x


@case(X)
def named_views(x):
    x = x.copy()
    (y := x[1:])[0] = 2 * x[3]
    x[0] = (y := x[3:])[0] * y[1]
    y *= 2
    return x


# ------------------------------------------------------------------ arrays that a condition chooses


@case(X, Y, 0.5)
@case(X, Y, -0.5)
def chosen(x, y, s):
    a = x.copy()
    b = y.copy()
    c = a if s > 0 else b
    c[0] = 3 * s
    c[1:3] *= a[1]
    c += b[0]
    return np.sum(a * a) + np.sum(b * c)


@case(X, Y, 0.5)
@case(X, Y, -0.5, compiled=True)
def chosen_views(x, y, s):
    a = x.copy()
    b = y.copy()
    if s > 0:
        c = a[1:]
    else:
        k = len(b) - 3
        c = b[k:]
    c[0] = 3 * s
    d = c[1:]
    d[0] = c[0] * a[2]
    d *= 2
    return np.sum(a * a * b) + np.sum(b * b) + c[1]


@case(X, Y, 0.5)
@case(X, Y, -0.5)
def chosen_or_fresh(x, y, s):
    a = x.copy()
    c = a if s > 0 else y * 2
    d = c if x[0] > 0 else a
    c[0] = s
    d[1] = 2 * s + c[0]
    for i in range(3):
        c[i + 1] += c[i] * d[2]
    return np.sum(a * a) + np.sum(c * d)


@case(A, 0.5)
@case(A, -0.5)
def chosen_rows(a, s):
    a = a.copy()
    best = a[0]
    if a[1, 1] > s:
        best = a[1]
    if a[2, 0] > best[0]:
        best = a[2]
    best *= s
    best[0] = a[0, 1]
    for r in a:
        t = r if r[0] > 0 else best
        t[1] = r[2] * 2
    return a


@case(X, Y, 0.3)
@case(X, Y, -0.3, compiled=True)
def chosen_in_loop(x, y, s):
    a = x.copy()
    b = y.copy()
    for i in range(5):
        c = a if a[i] > b[i] + s else b
        c[i + 1] = c[i] * 0.5 + s
        (a if s > 0 else b)[i] += 1
    return np.sum(a * a) + np.sum(b * b * b)


def larger(p, q):
    if p[0] > q[0]:
        return p
    return q


@case(X, Y)
@case(Y, X)
def from_callee(x, y):
    a = x.copy()
    b = y.copy()
    larger(a, b)[1:] *= 2
    larger(a[2:], b[1:])[0] = a[0]
    p = [a, b]
    if x[1] > y[1]:
        p = [b, a]
    p[0][0] = 5 * x[2]
    p[1][1] = p[0][0] * y[3]
    np.add(a, b, out=larger(b, a))
    return a * b


@case(X, Y, 0.3)
@case(X, Y, -0.3)
def chosen_self(x, y, s):
    a = x.copy()
    c = a[::-1] if s > 0 else a
    c[0] = 2 * y[0]
    c[1:] += a[:-1]
    t = a.reshape(2, 3).T if s > 0 else a[:6].reshape(3, 2)
    t[0, 1] = y[1]
    return a * np.arange(6)


# --------------------------------------------------------------------- arrays that a loop exchanges


@case(X, 4, compiled=True)
def two_buffers(u, n):
    cur = u.copy()
    prev = np.zeros_like(u)
    for _ in range(n):
        prev[1:] = cur[:-1] * 0.5 + cur[1:]
        prev, cur = cur, prev
    return np.sum(cur * prev)


@case(X, 4)
def three_buffers(u, n):
    a, b, c = u.copy(), u * 2, np.zeros_like(u)
    for _ in range(n):
        for i in range(1, len(u) - 1):
            c[i] = 2 * b[i] - a[i] + 0.1 * (b[i - 1] - b[i]) * b[i + 1]
        a, b, c = b, c, a
    return np.sum(b * a) + c[1]


@case(X, 4)
def buffers_that_others_saw(u, n):
    a, b = u.copy(), np.zeros_like(u)
    kept, total = [], 0.0
    for t in range(n):
        b[1:] = a[:-1] * 0.5 + t
        kept.append(a.copy())
        a, b = b, a
        total += a[t] * kept[t][1]
    return total * b[2]


def test_exchanged_buffers_are_not_copied():
    value, _ = s2s.jvp(two_buffers)(X, 4, X, 0)
    source = s2s.value_and_grad(two_buffers)
    source(X, 4)
    forward = source.source.partition("# backwards")[0]
    assert forward.count(".copy()") == 1, forward
    assert value == two_buffers(X, 4)


@case(X, 0.2, 3, compiled=True)
def heat(u, k, n):
    u, v = u.copy(), np.zeros_like(u)
    for _ in range(n):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
        v[0] = u[0]
        v[-1] = u[-1]
        u, v = v, u
    return np.sum(u * u)


@case(X, 4, compiled=True)
def exchanged_until_settled(x, n):
    a, b = x.copy(), np.empty_like(x)
    i = 0
    while i < n:
        b[:] = a * a * 0.9
        b[0] = a[-1]
        if np.max(np.abs(b - a)) < 1e-3:
            break
        a, b = b, a
        i += 1
    return np.sum(a) + b[1]


@case(X, Y, 3)
def exchanged_if_better(x, y, n):
    best, cur = x.copy(), np.empty_like(x)
    for i in range(n):
        cur[:] = best + y * np.sin(i)
        if np.sum(cur) < np.sum(best) + 1:
            best, cur = cur, best
        cur[0] += best[1]
    return best * cur


@case(X, Y, 0.4)
def exchanged_beside_names_that_see_it(x, y, t):
    a, b = x.copy(), y.copy()
    v, d = a[1:3], {"b": b}
    if t > 0:
        a, b = b, a
    a[1] = 7 * b[1]
    v[0] += a[1]
    d["b"][0] = v[1] * b[2]
    return a - 2 * b + v[0] + d["b"] * 3


@case(X, Y, 0.4)
def exchanged_twice(x, y, t):
    a, b, c = x.copy(), y.copy(), x * y
    if t > 0:
        a, b = b, a
        if t > 0.2:
            b, c = c, b
        b[0] = a[1] * c[2]
    else:
        c = a
    a[1] = b[0] * 2
    c[3] += a[1]
    b[2] *= c[3]
    return a + 2 * b + 3 * c


@case(X, 3)
def added_to_items_that_have_other_names(x, n):
    z, rows = 2 * x, []
    pair = [z, z]
    pair[0] += x[0]
    pair[1] *= pair[0]
    tail = {"rest": x[2:].copy()}
    heads = [tail["rest"], tail["rest"][:1]]
    heads[0] -= z[2:]
    heads[1] *= 3.0
    for i in range(n):
        rows.append(x * i)
    for i in range(n):
        rows[i] += z
        rows[i % 2] *= x
    return z * rows[0] + rows[1] * rows[-1] + np.sum(tail["rest"])


@case(1.3, X, 3)
def arrays_of_no_axes(t, x, n):
    z = np.array(t * t)
    w, total, first = z, np.zeros(()), x.copy()
    w += 4.0
    v = first[1:2].reshape(())
    u = np.squeeze(first[2:3], 0)
    for i in range(n):
        total += x[i] * z
        z[...] = z * np.sin(z)
    v *= total
    u -= v
    both = [z, z]
    both[0] += 1.0
    return np.sum(first * z) + w * total[()] + both[1]


@case(X, 3)
def an_array_of_no_axes_on_one_path(x, n):
    a, y, s = x.copy(), 0.5, np.asarray(x[0] * x[1])
    if n > 2:
        y = a[..., 0]
    for i in range(n):
        s = s + y if i % 2 else s * y
    return y * np.sum(a) + s


@case(X)
def parts_of_complex_arrays_that_are_made_anew(x):
    z = x * (1 + 2j)
    real, imag = z.real, np.imag(z)
    z = z * 2  # not in the memory of z, which `real` still reads
    z[1] += x[0]
    w = x * 1j
    more = np.imag(w) * 1.0
    w *= 3
    return np.sum(real**3 * z.real) + np.sum(imag * np.abs(z)) + np.sum(more**2 * w.imag)


@case(X, Y, 2, compiled=True)
@case(X, Y[:4], 3, compiled=True)
@case(X, Y, 1, compiled=True)
@case(X, Y[:4], 6, compiled=True)
def windows_added_in_place(x, w, n):
    y, z = np.ones(n), np.zeros((2, n))
    for k in range(len(w) - n + 1):
        y += w[k] * x[k:k + n]
        z[:, k - 1:] *= np.sin(x[k:k + 1])
        z[1] -= x[k:k + n] * y
        z += y
    return np.sum(y**2) + np.sum(z**3)


@pytest.mark.lengthy
def test_what_is_added_in_place_is_as_long_as_what_it_is_added_to():
    def convolved(x, w):
        y = np.zeros(len(x) - len(w) + 1)
        for k in range(len(w)):
            y += w[k] * x[k:k + len(y)]
        return np.sum(y**2)

    lowered = s2s.grad(convolved, argnums=(0, 1)).lower(X, Y[:3])
    assert "append" not in lowered.source  # the length of the sum would be saved
    forward = s2s.jit(convolved).lower(X, Y[:3]).loops
    assert (
        forward.count("for i in range(") == 2
        and "np.empty(" not in forward
        and "spread_length" not in forward
    )
    for f in (s2s.grad(convolved), s2s.jit(s2s.grad(convolved))):
        with pytest.raises(ValueError):
            f(X, np.ones(8))


@pytest.mark.lengthy
def test_no_more_than_its_length_is_written_in_place():
    def grown(x, y):
        z = x[:1] + 0.0
        z += y
        return np.sum(z**2)

    def spread(x, y, n):
        z = np.zeros(n)
        z += x[1:] * y
        return np.sum(z**2)

    for f, args in [(grown, (X, Y)), (spread, (X, Y[1:], 1)), (spread, (X, Y[1:], 4))]:
        for made in (s2s.grad(f), s2s.jit(s2s.grad(f)), s2s.jit(f)):
            with pytest.raises((ValueError, s2s.S2SError)):
                made(*args)
    assert s2s.jit(spread)(X[:2], Y[:1], 4) == pytest.approx(spread(X[:2], Y[:1], 4))


def test_the_sweep_back_exchanges_what_the_program_exchanged():
    slope = s2s.grad(heat, argnums=(0, 1))
    slope(X, 0.2, 3)
    assert slope.source.count(".copy()") == 1, slope.source


@pytest.mark.parametrize("function, args, compiled", PROGRAMS)
def test_writes(function, args, compiled):
    judge(function, *args, compiled=compiled)
