"""Programs as scientists write them, whose like no other test holds: iterators that are used up,
heaps, tuples in order, axes that live outside, loops that make more of what they carry, copies of
lists in lists."""

# ruff: noqa: B007, B023, B905, C416, C420, E701, E702, FURB118

from __future__ import annotations

import contextlib
import copy
import heapq
import itertools
import math
from collections import defaultdict, deque, namedtuple
from contextlib import suppress
from functools import wraps
from types import SimpleNamespace

import numpy as np
import pytest
from judge import judge

import s2s
from s2s import tree
from s2s.errors import S2SError

CASES, REFUSED = [], []
RNG = np.random.default_rng(3)
State = namedtuple("State", "x v t")
OFFSET, AXES, IDX = 1, (1, 0), [0, 2]
CONFIG = {"axis": 0, "n": 3}


class P:
    dim = 1
    shape = (2, -1)


def case(*args):
    def add(f):
        CASES.append((f, args))
        return f

    return add


class Bag:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)

    def __len__(self):
        return len(self.items)

    def __abs__(self):
        return sum(abs(v) for v in self)

    def __delitem__(self, k):
        del self.items[k]


@case(np.arange(1.0, 6.0))
def bag(x):
    b = Bag([x[0] * 2, x[1], -x[2]])
    p, *q = b
    del b[0]
    return sum(b) * abs(b) + len(b) + p * q[0] + sum(v * w for v, w in zip(b, Bag([1.0, 2.0])))


@case(np.arange(12.0).reshape(3, 4))
def chosen_outside(x):
    return np.sum(x[IDX] ** 2) + np.transpose(x, AXES)[1, 0] + np.sum(x, axis=CONFIG["axis"])[1]


class Dual:
    __slots__ = ("re", "eps")
    def __init__(self, re, eps=0.): self.re, self.eps = re, eps
    def _wrap(f):
        @wraps(f)
        def g(self, o): return f(self, o if isinstance(o, Dual) else Dual(o))
        return g
    @_wrap
    def __add__(self, o): return Dual(self.re+o.re, self.eps+o.eps)
    @_wrap
    def __mul__(self, o): return Dual(self.re*o.re, self.re*o.eps+self.eps*o.re)
    __radd__, __rmul__ = __add__, __mul__
    def __lt__(self, o): return self.re < o.re
    def __repr__(self): return f"{self.re}+{self.eps}e"


@case(np.array([.5, .2, .9]))
def dict_get_key(x):
    d = {"a": x[0], "b": x[1], "c": x[2]}
    r = sorted(d, key=lambda n: n)
    app = []
    add = app.append
    for v in x: add(v*v)
    g = x.dot
    return d[r[1]]+sum(app)+sum(map(d.get, ["a", "b"]))+g(x)


@case(2.0)
def suppressed(a):
    y = a
    with contextlib.suppress(ZeroDivisionError), np.errstate(all="ignore"):
        y = np.log(a)
        y = y+1/(len(str(1))-1)
        y = 100.
    with suppress(KeyError, ValueError):
        if y < 1: raise ValueError("x")
        y = 50.
    return y*a


@case(1.5)
def nested_tuple_list(x):
    h = {"best": None}
    for k in range(4):
        v = math.sin(x*k)
        if h["best"] is None or v > h["best"]: h["best"] = v
    return h["best"]


@case(1.3)
def dual_in_dual(x):
    f = lambda d: d*d*3+d*x+2
    y = f(Dual(x, 1.))
    z = min([Dual(3., x), Dual(x, 2.)], key=lambda d: d.re)
    return y.eps+y.re+z.eps


@case(np.array([1., .5, .25]), 6)
def ring_buffer(c, n):
    buf = deque([0.]*3, maxlen=3)
    out = []
    for k in range(n):
        buf.appendleft(1.0 if k == 0 else 0.0)
        out.append(sum(a*b for a, b in zip(c, buf)))
        buf[0] = buf[0]+out[-1]
    return sum(o*o for o in out)+len(buf)


@case(np.linspace(0.1, 0.9, 5))
def weighed_in_turn(x):
    w = itertools.cycle([1, -1])
    return sum(a * b for a, b in zip(x, w)) + sum(dict.fromkeys(["a", "b"], x[0]).values())


@case(RNG.normal(size=6), np.array([0,0,1,2,2,2]))
def setd(v, ids):
    groups = {}
    for i, x in zip(ids, v):
        groups.setdefault(int(i), []).append(x*x)
    return sum(np.log(1+sum(g)) for g in groups.values())


@case(np.arange(5.)+1, 2)
def dels(x, k):
    a = list(x); b = [x[0]*2, x[1], 7.]
    del a[k], b[0]
    del a[-1]
    d = {i: v for i, v in enumerate(x)}
    del d[k]
    c = [1., x[0], x[1], x[2], 5.]
    del c[1:3]
    del c[::2]
    return sum(a)*b[0] + sum(d.values())*sum(c)


@case(np.arange(5.)+1)
def first_of(x):
    a = next(v*v for v in x if v > 2)
    b = next((v for v in x if v > 20), -1.)
    c = next((i for i, v in enumerate(x) if v > 3), None)
    it = iter(x)
    s = next(it)
    s += next(it)*2
    for v in it: s += v/3
    return a*b + s*x[c]


@case(np.arange(5.)+1)
def iter_loops(x):
    n = 0
    s = 0.
    pairs = zip(x, x[1:])
    a, b = next(pairs)
    while n < 2:
        c, d = next(pairs)
        s += c*d
        n += 1
    return s*a+b


@case(np.arange(6.)+1, 3)
def branch_once(x, n):
    m = map(np.sin, x)
    if n > 2: s = sum(m)
    else: s = max(m)
    return s


@case(np.arange(6.)+1, 3)
def loop_once(x, n):
    s = 0.
    for k in range(n):
        m = (v*k for v in x)
        s += sum(m)
        z = zip(x, range(n))
        for a, b in z: s += a*b
    return s


@case(np.array([3.,1.,2.,5.,.5]))
def heap_sched(x):
    h = []
    for i, v in enumerate(x): heapq.heappush(h, (v*v, i))
    t = 0.0
    while h:
        c, i = heapq.heappop(h)
        t += c*(i+1)/(1+t)
    return t


@case(np.array([3.,1.,2.,5.,.5]))
def heap_floats(x):
    h = list(x*x)
    heapq.heapify(h)
    a = heapq.heappop(h)
    b = heapq.heappushpop(h, 2.5)
    c = heapq.heapreplace(h, x[0]*.1)
    d = heapq.nlargest(2, x)
    e = heapq.nsmallest(2, x, key=lambda v: -v)
    return a + b*c + h[0] + d[1]*e[0] + h[-1]


@case(np.array([1.,2.,.5,3.,1.5]), 3)
def dijkstra_heap(w, target):
    graph = {0: [(1, 0), (2, 1)], 1: [(3, 3)], 2: [(1, 2), (3, 4)], 3: []}
    dist = {n: math.inf for n in graph}
    dist[0] = 0.0
    pq = [(0.0, 0)]
    while pq:
        d, u = heapq.heappop(pq)
        if d > dist[u]: continue
        for v, e in graph[u]:
            nd = d+w[e]
            if nd < dist[v]:
                dist[v] = nd
                heapq.heappush(pq, (nd, v))
    return dist[target]


@case(np.array([3.,1.,2.,1.,.5]), np.array([3,1,2,0,4]))
def tuples_sorted(x, k):
    p = [(v, int(i)) for v, i in zip(x, k)]
    q = sorted(p)
    r = sorted(p, reverse=True)
    s = sorted(p, key=lambda t: (-t[1] % 2, t[0]))
    p.sort()
    lo = min(p); hi = max(p)
    return (
        sum(j * v * v for j, (v, _) in enumerate(q))
        + r[0][0] * r[1][1]
        + s[0][0]
        + p[2][0] * lo[0]
        + hi[1] * hi[0]
    )


@case(np.array([3.,1.,2.,1.,.5]))
def min_pair(x):
    d, i = min((abs(v-1.4), i) for i, v in enumerate(x))
    return d*x[i]


@case(1.5, 2.5)
def static_pairs(a, b):
    c = [(a, 1), (b, 2), (a*b, 0)]
    c.sort(key=lambda t: t[1])
    m = max(c)
    return c[0][0]*m[0] + sorted([(2, a), (1, b)])[0][1]


@case(1.5)
def grow_tuple(x):
    t = ()
    for k in range(3): t += (x**k,)
    return sum(t)


@case(1.5)
def grow_dict(x):
    d = {}
    for k in range(3):
        if "a" not in d: d["a"] = x
        else: d["b"] = d["a"]*k
    return d["a"]+d["b"]


@case(1.5)
def late_object(x):
    o = None
    for k in range(3):
        o = (x*k, o)
    return o[0]*o[1][0]


@case(np.array([1., 2.]))
def copies(x):
    d = {"a": x, "b": [x*2, x*3]}
    e = copy.deepcopy(d); f = copy.copy(d)
    e["b"][0][0] = 7.
    f["b"].append(x)
    d["a"] = d["a"]**2
    return np.sum(d["a"])+np.sum(e["b"][0]*x)+len(d["b"])*np.sum(f["a"])


@case(np.array([1., 2.]), 3)
def copies_rt(x, n):
    rows = []
    for k in range(n): rows.append(x*k)
    deep = copy.deepcopy(rows); sh = copy.copy(rows)
    deep[0][0] = 5.
    rows.append(x*x)
    sh.append(x)
    t = 0.
    for r in rows: t += np.sum(r**2)
    for r in deep: t += np.sum(r**3)
    return t+len(sh)*sh[1][1]+len(rows)


@case(np.array([1., 2.]))
def copies_known(x):
    a = [x[0], x[1]]; b = copy.copy(a); c = copy.deepcopy(a)
    b.append(3.); c[0] = 9.
    m = [[x[0], 1.], [x[1], 2.]]
    k = copy.deepcopy(m); s = copy.copy(m)
    k[0][0] = 5.; s[1][1] = x[0]
    return sum(a)*sum(b)+sum(c)*m[0][0]+k[0][0]*m[1][1]


@case(np.array([1.,2.,.5,3.,1.5]), 3)
def dijkstra(w, target):
    graph = {0: [(1, 0), (2, 1)], 1: [(3, 3)], 2: [(1, 2), (3, 4)], 3: []}
    dist = {0: 0.0}
    pq = [(0.0, 0)]
    seen = []
    while pq:
        d, u = min(pq)
        pq.remove((d, u))
        if u in seen: continue
        seen.append(u)
        if u == target: break
        for v, e in graph[u]:
            nd = d+w[e]
            if v not in dist or nd < dist[v]:
                dist[v] = nd; pq.append((nd, v))
    return dist[target]


@case(np.linspace(.1,1,5))
def global_counter(x):
    count = 0
    def f(v):
        nonlocal count
        count += 1
        return math.sin(v)*count
    return sum(f(v) for v in x)


@case(np.linspace(.1,1,5), 2)
def generators_in(x, k):
    pairs = ((a, b) for a in x for b in x if a < b)
    tot = 0.
    for a, b in pairs: tot += a/b
    it = iter(x); first = next(it); rest = list(it)
    tot += first*sum(rest)
    return tot*max((v for v in x if v > .2), default=0.)


@case(State(np.array([0.,1.]), np.array([1.,0.]), 0.0), 0.1)
def verlet(s, h):
    acc = lambda x: -x/np.linalg.norm(x)**3
    traj = [s]
    for _ in range(5):
        x, v, t = traj[-1]
        vh = v+h/2*acc(x)
        xn = x+h*vh
        traj.append(traj[-1]._replace(x=xn, v=vh+h/2*acc(xn), t=t+h))
    *_, last = traj
    E = lambda st: 0.5*st.v @ st.v - 1/np.linalg.norm(st.x)
    return E(last)-E(traj[0])+last.t*last.x[0]


@case(np.array([[4.,1.,0.],[1.,3.,.5],[0.,.5,2.]]), np.array([1.,2.,3.]))
def lu_crout(A, b):
    A = A.copy(); n = A.shape[0]; perm = list(range(n))
    for k in range(n):
        piv = max(range(k, n), key=lambda i: abs(A[i, k]))
        if piv != k:
            A[[k, piv]] = A[[piv, k]]
            perm[k], perm[piv] = perm[piv], perm[k]
        for i in range(k+1, n):
            A[i, k] /= A[k, k]
            A[i, k+1:] -= A[i, k]*A[k, k+1:]
    y = b[perm]
    for i in range(n): y[i] -= A[i, :i] @ y[:i]
    for i in reversed(range(n)):
        y[i] = (y[i]-A[i, i+1:] @ y[i+1:])/A[i, i]
    return np.sum(y**2)


@case(np.arange(6.).reshape(2,3)+1)
def statics(x):
    a = np.concatenate([x, x], axis=P.dim)
    b = np.sum(x, axis=CONFIG["axis"])
    c = np.expand_dims(x, OFFSET)
    d = np.moveaxis(x, 0, OFFSET)
    e = np.cumsum(x, axis=P.dim)
    f = np.diag(x @ x.T, k=OFFSET)
    g = x.reshape(P.shape)
    h = np.roll(x, OFFSET, axis=CONFIG["axis"])
    i = np.linalg.norm(x, axis=P.dim)
    j = np.split(x, CONFIG["n"], axis=1)[0]
    k = x.mean(P.dim, keepdims=True)
    return a.sum()+b[0]*c.sum()+d[1,0]+e[0,2]+f[0]+g.sum()+h[0,0]+i[1]+j[0,0]+k[0,0]


@case(np.array([.1,.9,.4]), "abc")
def strings_zip(x, s):
    names = ["alpha", "beta", "gamma"]
    d = {}
    for n, v in zip(names, x): d[n] = v*v
    t = 0.
    for k, c in enumerate(s):
        if c in "ab": t += x[k]
    for name, (lo, hi) in {"alpha": (0, 1), "beta": (1, 2)}.items(): t += d[name]*(hi-lo)
    return t + d["gamma"]


@case(RNG.normal(size=5), np.array([0, 2, 1, 2, 0]))
def default_list_rt(x, g):
    d = defaultdict(list)
    for k, v in zip(g, x): d[k].append(v)
    tot = 0.
    for k, vs in d.items():
        m = sum(vs)/len(vs)
        tot += k*sum((v-m)**2 for v in vs)
    return tot


def refuse(*args):
    def add(f):
        REFUSED.append((f, args))
        return f

    return add


@refuse(np.linspace(.1,.9,5))
def twice(x):
    m = map(lambda v: v*v, x)
    return sum(m) + 10*sum(m)


@refuse(np.linspace(.1,.9,5))
def twice_gen(x):
    m = (v*v for v in x)
    a = 0.
    for v in m:
        a += v
        if a > .1: break
    return a + 10*sum(m)


@refuse(np.linspace(.1,.9,5))
def twice_zip(x):
    m = zip(x, x[1:])
    a = list(m); b = list(m)
    return a[0][1] + len(b)


@refuse(np.linspace(.1,.9,5))
def twice_enum(x):
    m = enumerate([1.,2.])
    s = 0.
    for i, v in m: s += v*x[0]
    for i, v in m: s += v*x[1]
    return s


@refuse(np.arange(6.)+1, 3)
def loop_once_wrong(x, n):
    s = 0.
    m = (v for v in x)
    for k in range(n):
        s += sum(m)
    return s


@pytest.mark.lengthy
@pytest.mark.parametrize("f, args", CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_programs_are_right(f, args):
    judge(f, *args)


NATIVE = [dijkstra_heap, tuples_sorted, iter_loops, copies_rt, chosen_outside]


@pytest.mark.compile
@pytest.mark.parametrize("f", NATIVE, ids=lambda f: f.__name__)
def test_compiled_programs_are_right(f):
    judge(f, *next(args for g, args in CASES if g is f), compiled=True, second=False)


def test_an_axis_that_is_rebound_outside_is_seen():
    def f(x):
        return np.sum(x, axis=axis)[0]

    axis, x, g = 0, np.arange(6.0).reshape(2, 3), s2s.grad(f)
    assert g(x).tolist() == [[1, 0, 0], [1, 0, 0]]
    axis = 1
    assert g(x).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_names_need_as_many_members():
    def f(x):
        return sum(v * len(name) for name, v in zip(("a", "bc", "d"), x))

    assert s2s.grad(f)(np.ones(4)).tolist() == [1, 2, 1, 0]
    assert s2s.grad(f)(np.ones(1)).tolist() == [1]
    with pytest.raises(ValueError, match="expected at least 3, got 2"):
        s2s.grad(f)(np.ones(2))


@pytest.mark.parametrize("f, args", REFUSED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_used_up_is_refused_with_a_remedy(f, args):
    with pytest.raises(S2SError) as caught:
        s2s.grad(f)(*args)
    text = str(caught.value)
    assert "^" in text and (
        "make a list of it first: list(...)" in text
        or "call it in a `for` loop of that function" in text
    ), text


def test_a_list_is_the_remedy():
    def f(x):
        m = list(map(np.sin, x))
        return sum(m) + 10.0 * max(m)

    judge(f, np.linspace(0.1, 0.9, 5))


def drawdown(p):
    rows = p.reshape(-1, 1) * p
    fall = np.maximum.accumulate(p) - p
    return (
        fall.max()
        + np.minimum.accumulate(p[::-1])[-1]
        + np.add.reduce(rows)[0]
        + np.maximum.accumulate(rows)[2, 1]
    )


@pytest.mark.lengthy
def test_methods_of_ufuncs_are_right():
    p = np.array([1.0, 1.01, 0.995, 1.02, 1.03])
    assert s2s.value_and_grad(drawdown)(p)[0] == drawdown(p)
    s2s.check_grads(drawdown, (p,), order=2)


def test_namespaces_with_texts_are_trees():
    leaves, structure = tree.flatten(SimpleNamespace(a=1.0, tag="t"))
    assert tree.unflatten(structure, leaves).tag == "t"


def states_but_the_first(x):
    states = []
    for k in range(len(x)):
        states.append(State(x[k], x[k] * k, 0.0))
    total = 0.0
    for s in states[1:]:
        total += s.x * s.v
    return total


def test_a_slice_of_a_list_of_named_tuples_is_right():
    judge(states_but_the_first, np.arange(4.0))


def test_a_map_whose_function_counts():
    def f(x):
        count = 0

        def weighed(v):
            nonlocal count
            count += 1
            return count * v

        return sum(map(weighed, x)) + count

    x = np.linspace(0.1, 0.9, 5)
    value, slope = s2s.value_and_grad(f)(x)
    assert value == f(x) and slope.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
