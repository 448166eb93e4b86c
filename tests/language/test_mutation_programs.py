"""Programs that write in place, as their authors write them: stencils, factorisations, sorts,
buffers in turn, multigrid.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from judge import judge

import s2s

X = np.linspace(0.3, 1.7, 6)
X8 = np.linspace(0.3, 1.9, 8)
Y = np.cos(np.arange(6.0))
A = np.sin(np.arange(12.0) + 1).reshape(3, 4)
S = np.sin(np.arange(16.0) + 1).reshape(4, 4) + 4 * np.eye(4)
G = np.cos(np.arange(25.0)).reshape(5, 5)
PROGRAMS = []


def case(*args, compiled=False):
    """Record the program below with these arguments; some are compiled, too."""
    def record(function):
        PROGRAMS.append(pytest.param(function, args, False, id=function.__name__))
        if compiled:
            PROGRAMS.append(pytest.param(function, args, True, id=f"{function.__name__} compiled",
                                         marks=[pytest.mark.compile]))
        return function
    return record


# -------------------------------------------------- rows and arrays that a loop carries, fresh rows


@case(A)
def carried_row(a):
    a = a.copy()
    row = a[0]
    for i in range(1, len(a)):
        row[1:] = row[1:] * a[i, :-1]
        row = a[i]
        row[0] += 1
    return a


@case(A, compiled=True)
def carried_row2(a):
    a = a * 1.0
    prev = a[0]
    for i in range(1, a.shape[0]):
        cur = a[i]
        for j in range(a.shape[1]):
            cur[j] += 0.5 * prev[j]
        prev = cur
    return np.sum(a * a)


@case(A)
def carried_row3(a):
    a = a * 1.0
    prev = a[0]
    for i in range(1, a.shape[0]):
        cur = a[i]
        cur += prev
        prev *= 2
        prev = cur
    return np.sum(a * a)


@case(X, Y)
def swap_inner(x, y):
    a, b = x.copy(), y.copy()
    for k in range(3):
        for i in range(2):
            b[1:] = a[:-1] * 0.5 + b[1:]
            a, b = b, a
        a[0] = b[1] * 2
        b[3] += a[2]
    return np.sum(a * b * b)


@case(X, Y)
def swap_inner2(x, y):
    a, b = x.copy(), y.copy()
    for k in range(3):
        for i in range(2):
            a, b = b, a
        a[0] = b[1] * 2
    a[2] = b[0]
    return np.sum(a * b * b)


@case(X)
def fresh_row(x):
    rows = []
    row = []
    for v in x:
        row.append(v * v)
        if len(row) == 2:
            rows.append(row)
            row = []
    return rows[0][0] * rows[1][1] + rows[2][0]


@case(X, compiled=True)
def fresh_row2(x):
    rows = []
    row = np.zeros(2)
    k = 0
    for v in x:
        row[k] = v * v
        k += 1
        if k == 2:
            rows.append(row)
            row = np.zeros(2)
            k = 0
    return np.sum(np.array(rows) ** 2)


@case(X)
def fresh_row3(x):
    rows = []
    row = np.zeros(2)
    for i in range(len(x)):
        row[i % 2] += x[i]
        if i % 2 == 1:
            rows.append(row)
            row = np.zeros(2)
    s = 0.0
    for r in rows:
        s += r[0] * r[1]
    return s


@case(X)
def slice_objects(x):
    s = slice(1, None)
    y = x.copy()
    y[s] = y[:-1] * 2
    t = slice(None, None, 2)
    return np.sum(y[t] ** 2) + np.sum(y[s] * x[s])


@case(A)
def s_(a):
    y = a.copy()
    i = np.s_[1:, ::2]
    y[i] = y[i] * 3
    y[np.index_exp[0, 1:]] += 1
    return np.sum(y * y)


@case(A)
def ix_(a):
    y = a.copy()
    y[np.ix_([0, 2], [1, 3])] *= 2
    s = a[np.ix_(np.array([0, 1]), np.array([0, 2]))]
    return np.sum(y * y) + np.sum(s**3)


@case(A)
def ndindex(a):
    y = a.copy()
    for i, j in np.ndindex(a.shape):
        y[i, j] = y[i, j] ** 2 + y[i - 1, j]
    for idx in np.ndindex(*a.shape):
        y[idx] *= 2
    for i, j in np.ndindex(2, 3):
        y[i, j] += 1
    return np.sum(y * y)


@case(A, compiled=True)
def ndenumerate(a):
    y = np.zeros_like(a)
    for (i, j), v in np.ndenumerate(a):
        y[i, j] = v * v * (i + 1)
    for idx, v in np.ndenumerate(a):
        y[idx] += v
    return np.sum(y * y)


@case(X, 3)
def slices_from_variables(x, n):
    y = x.copy()
    interior = slice(1, -1)
    left, right = slice(0, -2), slice(2, None)
    for _ in range(n):
        y[interior] = y[interior] + 0.1 * (y[left] - 2 * y[interior] + y[right])
    return np.sum(y * y)


@case(X, 3)
def slice_in_loop(x, n):
    y = x.copy()
    for k in range(n):
        s = slice(k, k + 3)
        y[s] *= y[k]
    for s in (slice(0, 2), slice(2, 4), slice(4, 6)):
        y[s] += np.sum(y[s])
    return np.sum(y * y)


# ----------------------------------------------------------------------------------- whole programs


@case(X8, 0.1, 3)
def stencil_ghost_cells(x, k, n):
    u = np.zeros(len(x) + 2)
    inner = u[1:-1]
    inner[:] = x
    for _ in range(n):
        u[0], u[-1] = inner[-1], inner[0]
        inner += k * (u[2:] - 2 * inner + u[:-2])
    return np.sum(inner ** 2)


@case(G, 0.1, 2)
def stencil_2d_ghost(a, k, n):
    u = np.zeros((a.shape[0] + 2, a.shape[1] + 2))
    c = u[1:-1, 1:-1]
    north, south, west, east = u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]
    c[...] = a
    for _ in range(n):
        u[0] = u[1]; u[-1] = u[-2]; u[:, 0] = u[:, 1]; u[:, -1] = u[:, -2]
        c += k * (north + south + east + west - 4 * c)
    return np.sum(c * c)


@case(X8, 0.2, 3)
def ping_pong(x, k, n):
    u, v = x.copy(), np.empty_like(x)
    for t in range(n):
        v[0], v[-1] = u[0], u[-1]
        for i in range(1, len(u) - 1):
            v[i] = u[i] + k * (u[i-1] - 2*u[i] + u[i+1]) * u[i]
        u, v = v, u
    u[0] *= 2
    return np.sum(u * u) + v[1]


@case(X8, 0.2, 3)
def ping_pong_with_views(x, k, n):
    u, v = x.copy(), x.copy()
    for t in range(n):
        uc, vc = u[1:-1], v[1:-1]
        vc[:] = uc + k * (u[:-2] - 2 * uc + u[2:])
        u, v = v, u
    return np.sum(u * u)


@case(S)
def lu_in_place(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return np.prod(np.diag(a))


@case(S)
def lu_with_row_views(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        pivot = a[k]
        for row in a[k + 1:]:
            row[k] /= pivot[k]
            row[k + 1:] -= row[k] * pivot[k + 1:]
    return np.sum(a * a)


@case(S)
def lu_pivoting(a):
    a = a.copy()
    n = len(a)
    p = np.arange(n)
    for k in range(n - 1):
        m = k + np.argmax(np.abs(a[k:, k]))
        if m != k:
            a[[k, m]] = a[[m, k]]
            p[[k, m]] = p[[m, k]]
        a[k+1:, k] /= a[k, k]
        a[k+1:, k+1:] -= np.outer(a[k+1:, k], a[k, k+1:])
    return np.sum(a * a) + p[0]


@case(S)
def lu_swap_rows_tuple(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        m = k
        for i in range(k+1, n):
            if abs(a[i, k]) > abs(a[m, k]):
                m = i
        if m != k:
            for j in range(n):
                a[k, j], a[m, j] = a[m, j], a[k, j]
        for i in range(k+1, n):
            f = a[i, k] / a[k, k]
            a[i] -= f * a[k]
    return a[0,0]*a[1,1]*a[2,2]*a[3,3]


@case(S)
def householder_qr(a):
    r = a.copy()
    n = r.shape[0]
    for k in range(n - 1):
        x = r[k:, k]
        v = x.copy()
        v[0] += np.sign(x[0]) * np.sqrt(np.sum(x * x))
        v /= np.sqrt(np.sum(v * v))
        block = r[k:, k:]
        block -= 2 * np.outer(v, v @ block)
    return np.sum(np.abs(np.diag(r)))


@case(S)
def gram_schmidt_columns(a):
    q = a.copy()
    for j in range(q.shape[1]):
        v = q[:, j]
        for i in range(j):
            w = q[:, i]
            v -= np.dot(w, v) * w
        v /= np.sqrt(np.dot(v, v))
    return np.sum(q * np.cos(q))


@case(S)
def givens(a):
    r = a.copy()
    n = len(r)
    for j in range(n):
        for i in range(n - 1, j, -1):
            c, s = r[i-1, j], r[i, j]
            h = np.hypot(c, s)
            c, s = c / h, s / h
            top, bottom = r[i-1], r[i]
            t = c * top + s * bottom
            bottom[:] = -s * top + c * bottom
            top[:] = t
    return np.sum(r ** 2 * np.arange(n))


@case(S)
def cholesky_in_place(a):
    l = a @ a.T
    n = len(l)
    for j in range(n):
        l[j, j] = np.sqrt(l[j, j])
        l[j+1:, j] /= l[j, j]
        for k in range(j+1, n):
            l[k:, k] -= l[k:, j] * l[k, j]
    return np.sum(np.tril(l))


@case(X8, compiled=True)
def fft_butterflies(x):
    z = x + 0j
    n = len(z)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j |= bit
        if i < j:
            z[i], z[j] = z[j], z[i]
    size = 2
    while size <= n:
        w = np.exp(-2j * np.pi / size)
        for start in range(0, n, size):
            f = 1.0 + 0j
            half = size // 2
            for k in range(start, start + half):
                t = f * z[k + half]
                z[k + half] = z[k] - t
                z[k] = z[k] + t
                f *= w
        size *= 2
    return np.sum(np.abs(z) ** 4)


@case(X8)
def haar_in_place(x):
    a = x.copy()
    h = len(a)
    while h > 1:
        even, odd = a[:h:2].copy(), a[1:h:2].copy()
        a[:h // 2] = (even + odd) / 2
        a[h // 2:h] = (even - odd) / 2
        h //= 2
    return np.sum(a ** 3)


@case(X8)
def lifting_views(x):
    s = x.copy()
    even, odd = s[::2], s[1::2]
    odd -= even
    even += odd / 2
    odd[:-1] -= 0.1 * even[1:]
    return np.sum(s ** 2)


@case(X, Y, X, Y)
def thomas(a, b, c, d):
    b = b + 4
    d = d.copy()
    n = len(d)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    d[-1] /= b[-1]
    for i in range(n - 2, -1, -1):
        d[i] = (d[i] - c[i] * d[i + 1]) / b[i]
    return np.sum(d * d)


@case(10 * np.abs(G))
def sandpile(a):
    a = a.copy()
    while np.any(a >= 4):
        over = a >= 4
        a[over] -= 4
        a[1:][over[:-1]] += 1
        a[:-1][over[1:]] += 1
        a[:, 1:][over[:, :-1]] += 1
        a[:, :-1][over[:, 1:]] += 1
    return np.sum(a * a)


@case(X)
def insertion_sort(x):
    a = np.cos(5 * x)
    for i in range(1, len(a)):
        key = a[i]
        j = i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = key
    return np.sum(a * np.arange(6))


@case(X)
def bubble_sort_flag(x):
    a = np.cos(5 * x)
    swapped = True
    while swapped:
        swapped = False
        for i in range(len(a) - 1):
            if a[i] > a[i + 1]:
                a[i], a[i + 1] = a[i + 1], a[i]
                swapped = True
    return np.sum(a * np.arange(6))


def _sift(a, lo, hi):
    root = lo
    while 2 * root + 1 <= hi:
        child = 2 * root + 1
        if child + 1 <= hi and a[child] < a[child + 1]:
            child += 1
        if a[root] < a[child]:
            a[root], a[child] = a[child], a[root]
            root = child
        else:
            return


@case(X)
def heap_sort(x):
    a = np.cos(5 * x)
    n = len(a)
    for lo in range(n // 2 - 1, -1, -1):
        _sift(a, lo, n - 1)
    for hi in range(n - 1, 0, -1):
        a[0], a[hi] = a[hi], a[0]
        _sift(a, 0, hi - 1)
    return np.sum(a * np.arange(6))


def _quick(a, lo, hi):
    if lo >= hi:
        return
    p = a[hi]
    i = lo
    for j in range(lo, hi):
        if a[j] < p:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[hi] = a[hi], a[i]
    _quick(a, lo, i - 1)
    _quick(a, i + 1, hi)


@case(X)
def quick_sort(x):
    a = np.cos(5 * x)
    _quick(a, 0, len(a) - 1)
    return np.sum(a * np.arange(6))


@dataclass
class Particles:
    pos: np.ndarray
    vel: np.ndarray
    mass: np.ndarray


@case(
    Particles(
        np.sin(np.arange(6.0)).reshape(3, 2),
        np.cos(np.arange(6.0)).reshape(3, 2),
        np.array([1.0, 2.0, 3.0]),
    ),
    0.1,
    2,
)
def leapfrog_dataclass(p, dt, n):
    pos, vel = p.pos.copy(), p.vel.copy()
    for _ in range(n):
        acc = np.zeros_like(pos)
        for i in range(len(pos)):
            for j in range(len(pos)):
                if i != j:
                    d = pos[j] - pos[i]
                    acc[i] += p.mass[j] * d / (np.sum(d * d) + 0.1) ** 1.5
        vel += dt * acc
        pos += dt * vel
    return np.sum(pos ** 2) + np.sum(p.mass[:, None] * vel ** 2)


class Sim:
    def __init__(self, x, k):
        self.u = x.copy()
        self.v = np.zeros_like(x)
        self.k = k
    def force(self):
        f = np.zeros_like(self.u)
        f[1:-1] = self.k * (self.u[:-2] - 2 * self.u[1:-1] + self.u[2:])
        return f
    def step(self, dt):
        self.v += 0.5 * dt * self.force()
        self.u += dt * self.v
        self.v += 0.5 * dt * self.force()


@case(X, 0.5, 3, compiled=True)
def leapfrog_class(x, k, n):
    s = Sim(x, k)
    for _ in range(n):
        s.step(0.1)
    return np.sum(s.u ** 2) + np.sum(s.v ** 2)


class Buffers:
    def __init__(self, x):
        self.cur = x.copy()
        self.new = np.empty_like(x)
    def step(self, k):
        self.new[1:-1] = self.cur[1:-1] + k * (self.cur[:-2] + self.cur[2:])
        self.new[0] = self.cur[0]
        self.new[-1] = self.cur[-1]
        self.cur, self.new = self.new, self.cur


@case(X, 0.5, 3)
def swap_attributes(x, k, n):
    b = Buffers(x)
    for _ in range(n):
        b.step(k)
    return np.sum(b.cur ** 2)


@case(X, 0.5, 3)
def swap_in_dict(x, k, n):
    d = {"a": x.copy(), "b": np.zeros_like(x)}
    for _ in range(n):
        d["b"][1:] = d["a"][:-1] * k + d["a"][1:]
        d["a"], d["b"] = d["b"], d["a"]
    return np.sum(d["a"] ** 2 * d["b"])


@case(X, 0.5, 3, compiled=True)
def swap_in_list(x, k, n):
    b = [x.copy(), np.zeros_like(x)]
    for t in range(n):
        src, dst = b[t % 2], b[(t + 1) % 2]
        dst[1:] = src[:-1] * k + src[1:]
    return np.sum(b[n % 2] ** 2)


@case(X, 0.5, 3)
def swap_list_items(x, k, n):
    b = [x.copy(), np.zeros_like(x)]
    for t in range(n):
        b[1][1:] = b[0][:-1] * k + b[0][1:]
        b[0], b[1] = b[1], b[0]
    return np.sum(b[0] ** 2)


@case(X, 0.5, 3, compiled=True)
def double_buffer_2d(x, k, n):
    u = np.zeros((2, len(x)))
    u[0] = x
    for t in range(n):
        old, new = u[t % 2], u[(t + 1) % 2]
        new[1:-1] = old[1:-1] + k * (old[:-2] - 2 * old[1:-1] + old[2:])
    return np.sum(u[n % 2] ** 2)


@case(X, 0.5, 4)
def double_buffer_cur_index(x, k, n):
    u = np.zeros((2, len(x)))
    u[0] = x
    cur = 0
    for t in range(n):
        new = 1 - cur
        for i in range(1, len(x) - 1):
            u[new, i] = u[cur, i] + k * (u[cur, i-1] - u[cur, i+1]) * u[cur, i]
        cur = new
    return np.sum(u[cur] ** 2)


@case(G, 0.3, 2)
def red_black(a, w, n):
    u = a.copy()
    for _ in range(n):
        for color in (0, 1):
            for i in range(1, u.shape[0] - 1):
                s = 1 + (i + color) % 2
                u[i, s:-1:2] = (1 - w) * u[i, s:-1:2] + w * 0.25 * (
                    u[i-1, s:-1:2] + u[i+1, s:-1:2] + u[i, s-1:-2:2] + u[i, s+1::2])
    return np.sum(u * u)


@case(G, 0.3, 2)
def red_black_views(a, w, n):
    u = a.copy()
    red1, red2 = u[1:-1:2, 1:-1:2], u[2:-1:2, 2:-1:2]
    for _ in range(n):
        red1 += w * (u[:-2:2, 1:-1:2] + u[2::2, 1:-1:2] - 2 * red1)
        red2 *= 1 + w
    return np.sum(u * u)


def _smooth(u, f, n):
    for _ in range(n):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i-1] + u[i+1] + f[i])


@case(np.linspace(0.1, 0.9, 9))
def v_cycle_lists(f0):
    us = [np.zeros(9), np.zeros(5), np.zeros(3)]
    fs = [f0.copy(), np.zeros(5), np.zeros(3)]
    for l in range(2):
        u, f = us[l], fs[l]
        _smooth(u, f, 2)
        r = np.zeros_like(u)
        r[1:-1] = f[1:-1] + u[:-2] - 2 * u[1:-1] + u[2:]
        fs[l + 1][1:-1] = r[2:-1:2] * 4
        us[l + 1][:] = 0
    _smooth(us[2], fs[2], 4)
    for l in range(1, -1, -1):
        us[l][::2] += us[l + 1]
        us[l][1::2] += 0.5 * (us[l + 1][:-1] + us[l + 1][1:])
        _smooth(us[l], fs[l], 2)
    return np.sum(us[0] ** 2)


def _scale_rows(m, s):
    for i in range(m.shape[0]):
        m[i] *= s[i]
    return m


@case(A, np.array([1., 2., 3.]))
def writes_and_returns(a, s):
    m = a.copy()
    r = _scale_rows(m, s)
    r[0, 0] = m[1, 1] * 3
    q = _scale_rows(m[:2], s[1:])
    q += r[1:]
    return np.sum(m * r)


@case(A, np.array([1., 2., 3.]))
def writes_into_argument(a, s):
    _scale_rows(a, s)
    a[1] = _scale_rows(a[1:], s)[0]
    return np.sum(a * a)


@case(X)
def prefix_sums_through_view(x):
    s = np.zeros(len(x) + 1)
    t = s[1:]
    t[:] = x
    for i in range(1, len(t)):
        t[i] += t[i - 1]
    return np.sum(s ** 2)


@case(X, Y)
def lcs_like_dp_rows(x, y):
    prev = np.zeros(len(y) + 1)
    cur = np.zeros(len(y) + 1)
    for i in range(len(x)):
        for j in range(len(y)):
            cur[j + 1] = max(prev[j + 1], cur[j]) + 0.1 * x[i] * y[j] + prev[j]
        prev, cur = cur, prev
        cur[:] = 0
    return prev[-1]


@case(X, Y)
def dtw_rows_rebound(x, y):
    prev = np.full(len(y) + 1, 1e3)
    prev[0] = 0.0
    for i in range(len(x)):
        cur = np.full(len(y) + 1, 1e3)
        for j in range(len(y)):
            cost = (x[i] - y[j]) ** 2
            cur[j + 1] = cost + min(prev[j + 1], cur[j], prev[j])
        prev = cur
    return prev[-1]


@case(X, 3)
def ring_buffer(x, n):
    ring = np.zeros(3)
    head = 0
    s = 0.0
    for v in x:
        ring[head] = v * v
        head = (head + 1) % 3
        s += np.mean(ring) * ring[head - 1]
    return s


@case(X)
def shift_register(x):
    h = np.zeros(3)
    out = np.zeros_like(x)
    for i in range(len(x)):
        h[1:] = h[:-1]
        h[0] = x[i]
        out[i] = h[0] - 0.5 * h[1] * h[2]
    return np.sum(out ** 2)


@case(X)
def biquad_state_views(x):
    z = np.zeros(4)
    fwd, bwd = z[:2], z[2:]
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = 0.2 * x[i] + fwd[0] * 0.3 + bwd[1] * 0.1
        fwd[1] = fwd[0]
        fwd[0] = x[i]
        bwd[:] = bwd[::-1]
        bwd[0] = y[i]
    return np.sum(y ** 2)


@case(A)
def transpose_in_place_square(a):
    m = a[:, :3] + 0
    n = len(m)
    for i in range(n):
        for j in range(i + 1, n):
            m[i, j], m[j, i] = m[j, i], m[i, j]
    t = m.T
    t[0] += m[0]
    return np.sum(m * np.arange(3))


@case(G)
def rotate_layers(a):
    m = a.copy()
    n = len(m)
    for layer in range(n // 2):
        first, last = layer, n - layer - 1
        for i in range(first, last):
            off = i - first
            top = m[first, i]
            m[first, i] = m[last - off, first]
            m[last - off, first] = m[last, last - off]
            m[last, last - off] = m[i, last]
            m[i, last] = top
    return np.sum(m * np.arange(25).reshape(5, 5))


@case(X, np.array([2, 0, 1, 2]))
def scatter_gather(x, idx):
    h = np.zeros(3)
    np.add.at(h, idx, x[:4])
    x = x.copy()
    x[idx] -= h[idx]
    v = x[2:]
    v[idx[1:]] *= 2
    return np.sum(x * x) + h[0]


@case(X)
def views_in_a_list_written(x):
    u = x.copy()
    parts = [u[:2], u[2:4], u[4:]]
    for k, p in enumerate(parts):
        p *= k + 1
        p[0] += u[-1]
    parts[0][1] = parts[2][0]
    return np.sum(u * u)


@case(X)
def views_in_a_list_at_run_time(x):
    u = x.copy()
    parts = []
    for k in range(3):
        parts.append(u[2 * k:2 * k + 2])
    s = 0.0
    for p in parts:
        s += p[0] * p[1]
    return s


@case(X)
def namespace_alias(x):
    ns = SimpleNamespace(u=x.copy())
    ns.v = ns.u[1:]
    ns.w = ns.u
    ns.v[0] = 3 * ns.u[0]
    ns.w *= 2
    ns.u = ns.u * ns.v[0]
    ns.w[2] = 1.0
    return np.sum(ns.u) + np.sum(ns.v * ns.w[1:])


@case(X, 3)
def aug_assign_rebinding_trap(x, n):
    y = x
    for _ in range(n):
        y = y * 1.1
        y += x
    return np.sum(y)


@case(X)
def accumulate_alias_of_argument(x):
    y = x
    y = y + 0
    z = y
    z *= 2
    return np.sum(x * y)


@case(X)
def conditional_copy(x):
    y = x if x[0] > 1 else x.copy()
    y[0] = 5 * x[1]
    return np.sum(x * y)


@case(X, 1)
@case(X, 0)
def conditional_in_place(x, flag):
    def work(u, inplace):
        if not inplace:
            u = u.copy()
        u[1:] += u[:-1]
        return u
    a = x * 1
    b = work(a, flag)
    return np.sum(a * b)


@case(G)
def game_of_neighbours(a):
    n = np.zeros_like(a)
    n[1:] += a[:-1]
    n[:-1] += a[1:]
    n[:, 1:] += a[:, :-1]
    n[:, :-1] += a[:, 1:]
    b = a.copy()
    b[n > 0.5] *= n[n > 0.5]
    b[(n < 0) & (a > 0)] = 0.1
    return np.sum(b * b)


@case(X8)
def bit_reversal_views(x):
    y = x.copy().reshape(2, 2, 2)
    z = y.transpose(2, 1, 0)
    z[0, 1, 1] += 2 * y[0, 0, 1]
    z[1] *= z[0]
    w = z.copy().reshape(-1)
    return np.sum(w * np.arange(8)) + np.sum(y * y)


@case(X8)
def reshaped_particles(q):
    q = q.copy()
    p = q.reshape(-1, 2)
    for i in range(len(p)):
        p[i, 0] += 0.1 * p[i, 1]
        for j in range(i):
            d = p[i] - p[j]
            p[i] += 0.01 * d
            p[j] -= 0.01 * d
    return np.sum(q * q)


@case(X, 4)
def krylov_basis(x, m):
    n = len(x)
    V = np.zeros((m + 1, n))
    H = np.zeros((m + 1, m))
    V[0] = x / np.sqrt(np.sum(x * x))
    for j in range(m):
        w = V[j] * np.arange(1, n + 1)
        for i in range(j + 1):
            H[i, j] = np.dot(V[i], w)
            w -= H[i, j] * V[i]
        H[j + 1, j] = np.sqrt(np.dot(w, w))
        V[j + 1] = w / H[j + 1, j]
    return np.sum(H)


@case(X)
def conjugate_gradient_in_place(b):
    n = len(b)
    x = np.zeros(n)
    r = b.copy()
    p = r.copy()
    rs = r @ r
    d = np.arange(1.0, n + 1)
    for _ in range(3):
        ap = d * p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        p *= new / rs
        p += r
        rs = new
    return np.sum(x * x)


@case(X)
def rk4_workspace(y0):
    n = len(y0)
    work = np.empty((4, n))
    k1, k2, k3, k4 = work
    y = y0.copy()
    def rhs(y, out):
        out[:-1] = y[1:]
        out[-1] = -np.sin(y[0])
    for _ in range(2):
        rhs(y, k1)
        rhs(y + 0.05 * k1, k2)
        rhs(y + 0.05 * k2, k3)
        rhs(y + 0.1 * k3, k4)
        y += 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(y * y)


@case(X)
def adams_bashforth_rotating(y0):
    y = y0.copy()
    f0, f1, f2 = np.zeros_like(y), np.zeros_like(y), np.zeros_like(y)
    for step in range(4):
        f0[:] = -y * np.cos(y)
        if step < 2:
            y += 0.1 * f0
        else:
            y += 0.1 * (23 * f0 - 16 * f1 + 5 * f2) / 12
        f0, f1, f2 = f2, f0, f1
    return np.sum(y * y) + np.sum(f1)


@case(X)
def history_deque(y0):
    hist = [np.zeros_like(y0) for _ in range(3)]
    y = y0.copy()
    for step in range(5):
        hist.insert(0, np.sin(y))
        hist.pop()
        y += 0.1 * (hist[0] - 0.5 * hist[1] + 0.1 * hist[2])
    return np.sum(y * y)


@case(G, 3)
def jacobi_convergence(a, n):
    u = np.zeros_like(a)
    new = u.copy()
    for it in range(n):
        new[1:-1, 1:-1] = 0.25 * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] + a[1:-1, 1:-1]
        )
        if np.max(np.abs(new - u)) < 1e-8:
            break
        u, new = new, u
    return np.sum(u * u)


@case(G, 3)
def jacobi_rebind_copy(a, n):
    u = a.copy()
    for it in range(n):
        old = u
        u = u.copy()
        u[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    return np.sum(u * u)


@case(X, Y)
def min_plus_swap_if(x, y):
    lo, hi = x.copy(), y.copy()
    for i in range(len(x)):
        if lo[i] > hi[i]:
            lo[i], hi[i] = hi[i], lo[i]
    if np.sum(lo) > 0:
        lo, hi = hi, lo
    lo[0] = 2 * hi[1]
    return np.sum(lo * hi * lo)


@case(A)
def rows_sorted_in_place(a):
    a = np.cos(3 * a)
    for r in a:
        r.sort()
    a[:, 0].sort()
    return np.sum(a * np.arange(4))


@case(A)
def triangular_solve_views(a):
    l = np.tril(a[:, :3]) + 3 * np.eye(3)
    b = a[:, 3].copy()
    for i in range(3):
        for j in range(i):
            b[i] -= l[i][j] * b[j]
        b[i] /= l[i][i]
    return np.sum(b ** 2)


@case(A)
def nested_subscript_writes(a):
    a = a.copy()
    for i in range(1, 3):
        for j in range(1, 4):
            a[i][j] += 0.5 * a[i - 1][j - 1]
            a[i][1:][0] *= 1.1
    a[1:][0][2] = a[0][0]
    a.T[1][2] = 4 * a[2].sum()
    return np.sum(a * a)


@case(X)
def window_views(x):
    u = x.copy()
    s = 0.0
    for i in range(len(u) - 2):
        w = u[i:i + 3]
        w[1] = w[0] * w[2]
        s += np.sum(w)
    return s


@case(X, compiled=True)
def parts_of_complex_numbers(x):
    z = np.exp(1j * x)
    z.real[1:] *= x[0]
    z.imag = z.real - z.imag * x
    for i in range(1, len(x)):
        z[i:].imag[0] = np.sin(z.real[i - 1] * x[i])
    w = z if x[0] > 0.2 else z * 2
    w.real[0] += x[2]
    return np.sum(np.abs(z)**2 * x) + np.sum((w * w).imag)


@case(X, compiled=True)
def parts_in_single_precision(x):
    z = np.exp(1j * x).astype(np.complex64)
    z.real[2] = -0.0
    y = x.astype(np.float32)
    y.real[:2] += 1
    return np.sum(np.copysign(1.0, z.real)) * np.sum(x**2)


@pytest.mark.compile
def test_a_part_is_written_to_the_sign_of_a_zero():
    def f(x):
        z = x * (1 + 0j)
        z.real = -0.0
        z.imag[:2] = -np.inf
        return z

    expected = f(X)
    for got in (s2s.jvp(f)(X, X)[0], s2s.jit(f)(X)):
        for a, b in ((got.real, expected.real), (got.imag, expected.imag)):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


@pytest.mark.parametrize("function, args, compiled", PROGRAMS)
def test_programs(function, args, compiled):
    judge(function, *args, compiled=compiled)
