"""Data in every container that Python has, in whole little programs, each judged in every mode and
order.
"""

from __future__ import annotations

import copy
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from enum import Enum
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from judge import judge

import s2s

CASES = []


def case(*args, wrt=None):
    def keep(f):
        CASES.append(pytest.param(f, args, wrt, id=f.__name__))
        return f

    return keep


class Act(Enum):
    TANH = 1
    RELU = 2


@dataclass
class Layer:
    W: np.ndarray
    b: np.ndarray
    act: Act = Act.TANH

    def __call__(self, x):
        z = self.W @ x + self.b
        return np.tanh(z) if self.act is Act.TANH else np.maximum(z, 0.0)


rng = np.random.default_rng(0)
A = rng.normal(size=(3, 2))
b = rng.normal(size=3)
C = rng.normal(size=(2, 3))
c = rng.normal(size=2)
x2 = np.array([0.3, -0.7])


@case([Layer(A, b), Layer(C, c, Act.RELU)], x2)
def net(layers, x):
    for layer in layers:
        x = layer(x)
    return np.sum(x * x)


@case({"l1": (A, b), "l2": (C, c)}, x2)
def net2(params, x):
    for name, (W, b) in params.items():
        x = np.tanh(W @ x + b)
    return np.sum(x)


@case([(A, b), (C, c)], x2)
def net3(params, x):
    for W, b in params[:-1]:
        x = np.tanh(W @ x + b)
    W, b = params[-1]
    return np.sum(W @ x + b)


@dataclass(frozen=True)
class Body:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0

    @property
    def kinetic(self):
        return 0.5 * self.mass * np.sum(self.vel**2)

    def kicked(self, f, dt):
        return replace(self, vel=self.vel + dt * f / self.mass)

    def drifted(self, dt):
        return replace(self, pos=self.pos + dt * self.vel)


@case(Body(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 2.0), 0.1, 5, wrt=0)
def orbit(body, dt, n):
    for _ in range(n):
        r = np.sqrt(np.sum(body.pos**2))
        body = body.kicked(-body.pos / r**3, dt).drifted(dt)
    return body.kinetic - 1 / np.sqrt(np.sum(body.pos**2))


@case(Body(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 2.0), 0.1)
def as_result(body, dt):
    b2 = body.drifted(dt)
    return {
        "before": body.kinetic,
        "after": b2,
        "list": [b2.pos, 2.0 * b2.vel],
        "n": 3,
        "none": None,
    }


@dataclass
class Norm:
    x: np.ndarray
    scale: float = 2.0
    total: float = field(init=False)
    log: list = field(default_factory=list)

    def __post_init__(self):
        self.total = self.scale * np.sum(self.x)


@case(x2, 1.5)
def post(x, s):
    n = Norm(x * x, s)
    m = Norm(x)
    return n.total * m.total


class Base:
    def __init__(self, k):
        self.k = k

    def f(self, x):
        return self.k * x


class Derived(Base):
    shift = 0.5

    def __init__(self, k, j):
        super().__init__(k)
        self.j = j

    def f(self, x):
        return super().f(x) + self.j * self.shift

    @classmethod
    def make(cls, k):
        return cls(k, 2 * k)

    @staticmethod
    def sq(x):
        return x * x


@case(1.3, 0.7)
def inherit(k, x):
    d = Derived.make(k)
    return d.sq(d.f(x)) + Derived.sq(x)


class Vec:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, o):
        return Vec(self.x + o.x, self.y + o.y)

    def __mul__(self, s):
        return Vec(self.x * s, self.y * s)

    __rmul__ = __mul__

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __getitem__(self, k):
        return (self.x, self.y)[k]

    def __len__(self):
        return 2

    def dot(self, o):
        return self.x * o.x + self.y * o.y


@case(1.3, 0.7)
def vectors(a, b):
    u = Vec(a, b)
    v = 2.0 * (u + Vec(1.0, a) * b)
    v += u
    return v.dot(-u) + v[0] + len(v)


@case(0.7)
def ns(x):
    p = SimpleNamespace(a=x, b=SimpleNamespace(c=np.array([x, 2 * x, 1.0])))
    p.b.c[1] += x * x
    p.a = p.a * p.b.c[1]
    q = p
    q.a *= 2.0
    return p.a + np.sum(p.b.c)


@case(0.7, 4)
def loop_member(x, n):
    d = {"s": x, "h": np.zeros(3), "k": 0}
    for i in range(n):
        d["h"][i % 3] += d["s"] * x
        d["s"] = np.sin(d["s"]) + d["h"][0]
        d["k"] += 1
    return d["s"] + np.sum(d["h"] ** 2) + d["k"]


@case(0.7, 4)
def loop_alias(x, n):
    h = np.zeros(3)
    d = {"h": h, "s": x}
    for i in range(n):
        h[i % 3] = d["s"]
        d["s"] = d["s"] + np.sum(d["h"])
    return d["s"] * h[1]


@case(0.7, 1.2)
def dict_methods(x, y):
    d = {"a": x}
    d.update(b=y, c=x * y)
    d.setdefault("d", 3.0 * x)
    d.setdefault("a", 99.0)
    z = d.pop("c") + d.pop("zz", 1.0)
    e = d | {"a": d["a"] * 2, "q": z}
    total = 0.0
    for k, v in e.items():
        if k in ("a", "q"):
            total = total + v * v
        else:
            total += v
    for i, k in enumerate(e):
        total = total + (i + 1) * e.get(k, 0.0)
    if "nope" not in e:
        total = total + len(e) * x
    return total + sum(e.values()) + max(e.values())


P3 = namedtuple("P3", "x y z", defaults=(2.0,))


class Q(NamedTuple):
    w: float
    g: float = 3.0

    def val(self):
        return self.w * self.g


@case(P3(0.3, 0.5), Q(1.5))
def nt(p, q):
    x, y, z = p
    p2 = p._replace(x=y * z)
    r = Q(w=p2.x)
    d = p2._asdict()
    return p2.x * p2[1] + r.val() * q.val() + d["z"] + sum(p2) + len(p)


@case(0.7)
def generic_attr(x):
    p = SimpleNamespace(a=x, b=2 * x)
    t = 0.0
    for name in ("a", "b", "c"):
        if hasattr(p, name):
            t = t + getattr(p, name) ** 2
        else:
            setattr(p, name, t)
    t = t + getattr(p, "zz", x)
    for k, v in vars(p).items():
        t = t + v
    return t


@case(0.7)
def copies(x):
    d = {"a": np.array([x, 2 * x]), "b": {"c": x}}
    e = copy.copy(d)
    f = copy.deepcopy(d)
    e["a"][0] = 5 * x
    f["a"][1] = 7 * x
    e["b"]["c"] = x * x
    return np.sum(d["a"]) * f["b"]["c"] + d["b"]["c"] + np.sum(f["a"])


@case(0.7)
def eq(x):
    a = (x, 2.0)
    b = (x, 2.0)
    t = 0.0
    if a == b:
        t = t + x * x
    if [1, 2] + [3] == [1, 2, 3]:
        t = t + x
    if (1, 2) < (1, 3):
        t = t + x
    return t * len(a * 2)


@case(Body(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 2.0))
def dcs(body):
    d = asdict(body)
    p, v, m = astuple(body)
    t = 0.0
    for f in fields(body):
        if f.name != "mass":
            t = t + np.sum(getattr(body, f.name) * 2.0)
    return np.sum(d["pos"] * v) * m + t


@case(x2)
def odict(x):
    d = OrderedDict(a=x, b=x * x)
    dd = defaultdict(float)
    dd["q"] += np.sum(x)
    dd["q"] += x[0]
    return np.sum(d["b"]) * dd["q"] + dd["new"]


class Acc:
    def __init__(self):
        self.items = []
        self.total = 0.0

    def add(self, x):
        self.items.append(x)
        self.total += x
        return self


@case(0.7)
def chain(x):
    a = Acc()
    a.add(x).add(x * x).add(2.0)
    return a.total * a.items[1] + len(a.items)


@case(0.7, 5)
def acc_loop(x, n):
    a = Acc()
    for i in range(n):
        a.add(x * i)
    return a.total + np.sum(np.array(a.items) ** 2)


@case(1.2)
def cond_obj(x):
    p = SimpleNamespace(v=x) if x > 1 else SimpleNamespace(v=-x)
    p.v = p.v * 3
    return p.v**2


@case({"a": 1.0, "b": np.ones(2)}, {"a": 2.0, "b": np.array([1.0, 3.0])})
def two(p, q):
    return sum(np.sum(p[k] * q[k]) for k in p)


@case(0.5, 3)
def while_state(x, n):
    st = SimpleNamespace(x=x, k=0)
    while st.k < n:
        st.x = st.x * st.x + 0.1
        st.k += 1
        if st.x > 10:
            break
    return st.x


@case(0.5, 3)
def state_if_loop(x, n):
    st = {"x": x, "best": 10.0}
    for i in range(n):
        st["x"] = np.cos(st["x"])
        if st["x"] < st["best"]:
            st["best"] = st["x"] * x
    return st["best"]


@case([A, A + 1, A * 2], 3)
def runtime_index(ws, n):
    t = 0.0
    for k in range(n):
        t = t + np.sum(np.sin(ws[k]))
    return t


@case(0.5)
def nested_fn(x):
    cfg = {"lr": x, "f": np.tanh, "name": "adam", "none": None}

    def step(v, cfg):
        cfg["count"] = 2.0
        return v - cfg["lr"] * cfg["f"](v)

    r = step(2.0 * x, cfg)
    if cfg["name"] == "adam" and cfg["none"] is None:
        r = r * 2
    return r * cfg["count"]


@case(0.5, 4)
def adam(x, n):
    m = {"w": 0.0, "b": np.zeros(2)}
    p = {"w": x, "b": np.array([x, 1.0])}
    for t in range(1, n + 1):
        g = {k: 2 * v for k, v in p.items()}
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in m}
        p = {k: p[k] - 0.1 * m[k] / (1 - 0.9**t) for k in p}
    return np.sum(p["b"]) * p["w"]


@pytest.mark.parametrize("f, args, wrt", CASES)
def test_data(f, args, wrt):
    judge(f, *args, wrt=wrt)


@pytest.mark.compile
@pytest.mark.parametrize(
    "f, args, wrt",
    [
        c
        for c in CASES
        if c.id
        in {
            "net",
            "net2",
            "orbit",
            "inherit",
            "loop_alias",
            "dict_methods",
            "adam",
            "copies",
            "cond_obj",
            "runtime_index",
            "vectors",
        }
    ],
)
def test_data_compiled(f, args, wrt):
    judge(f, *args, wrt=wrt, compiled=True, second=f.__name__ not in ("net", "net2", "orbit"))


# ------------------------------------------------------------------ what comes back, and from where


def dense(p, x):
    return np.sum(np.tanh(p.W @ x + p.b)) if p.act is Act.TANH else p.b[0]


def test_derivatives_have_the_class_and_the_fixed_members_of_the_argument():
    g = s2s.grad(dense)(Layer(A, b), x2)
    assert type(g) is Layer and g.act is Act.TANH and g.W.shape == A.shape
    g = s2s.grad(lambda o: o["a"] * o["b"])(OrderedDict(b=1.0, a=2.0))
    assert type(g) is OrderedDict and list(g.items()) == [("b", 2.0), ("a", 1.0)]
    assert s2s.grad(lambda o: o.a * o.b)(SimpleNamespace(a=1.0, b=2.0)) == SimpleNamespace(
        a=2.0, b=1.0
    )
    assert s2s.grad(lambda o: o[0] * o[1]["x"])([1.0, {"x": 2.0, "z": None, "e": "s"}]) == [
        2.0,
        {"x": 1.0, "z": None, "e": "s"},
    ]
    assert s2s.grad(lambda p: p.x * p.y)(P3(2.0, 3.0)) == P3(3.0, 2.0, 0.0)


def test_integers_are_refused_and_allowed_on_request():
    def f(p):
        return p["w"] * p["n"]

    with pytest.raises(s2s.TypeMismatchError, match=r"p\['n'\] is no float") as caught:
        s2s.grad(f)({"w": 1.0, "n": 3})
    assert "allow_int=True" in str(caught.value)
    assert s2s.grad(f, allow_int=True)({"w": 1.0, "n": 3}) == {"w": 3.0, "n": 0.0}


def test_the_source_takes_and_makes_the_containers_themselves():
    g = s2s.grad(lambda p: p["w"] * p["b"])
    g({"w": 2.0, "b": 3.0})
    assert 'return {"w": ' in g.source and 'p["b"]' in g.source


def test_a_container_given_as_an_argument_stays_as_it_is():
    def f(d):
        d["a"] = d["a"] * 2
        d["x"][0] = d["a"]
        d["l"].append(3.0)
        del d["q"]
        return np.sum(d["x"]) * sum(d["l"])

    given = {"a": 1.0, "l": [1.0, 2.0], "x": np.ones(2), "q": 5.0}
    kept = copy.deepcopy(given)
    g = s2s.grad(f)(given)
    assert (
        g["a"] == 12.0 and g["q"] == 0.0 and g["l"] == [3.0, 3.0] and g["x"].tolist() == [0.0, 6.0]
    )
    assert (
        given.keys() == kept.keys()
        and given["l"] == kept["l"]
        and given["x"].tolist() == kept["x"].tolist()
    )


class Registered:
    def __init__(self, a, b, tag):
        self.a, self.b, self.tag = a, b, tag

    def area(self):
        return self.a * self.b


s2s.tree.register(
    Registered, lambda t: ((t.a, t.b), t.tag), lambda tag, children: Registered(*children, tag)
)


def test_registered_classes_and_static_fields():
    g = s2s.grad(lambda t: t.area() * (2 if t.tag == "x" else 3))(Registered(2.0, 3.0, "x"))
    assert vars(g) == {"a": 6.0, "b": 4.0, "tag": "x"}

    @dataclass
    class Config:
        w: np.ndarray
        n: int = field(default=2, metadata={"static": True})

    g = s2s.grad(lambda c: sum(np.sum(c.w**c.n) for _ in range(c.n)))(Config(np.ones(2), 3))
    assert type(g) is Config and g.n == 3 and g.w.tolist() == [9.0, 9.0]


def test_vmap_with_trees_of_axes():
    X = np.arange(8.0).reshape(4, 2) / 10
    p = Layer(A, b)
    np.testing.assert_allclose(s2s.vmap(dense, in_axes=(None, 0))(p, X), [dense(p, x) for x in X])
    stacked = Layer(np.stack([A, 2 * A]), b)
    np.testing.assert_allclose(
        s2s.vmap(dense, in_axes=(Layer(0, None, None), None))(stacked, x2),
        [dense(Layer(w, b), x2) for w in stacked.W],
    )
    g = s2s.vmap(s2s.grad(dense), in_axes=(None, 0))(p, X)
    assert type(g) is Layer and g.W.shape == (4, 3, 2) and g.act is Act.TANH

    def f(d, x):
        return {"y": d["a"] * x, "z": [d["b"][0] * x, np.sum(d["b"][0])]}

    y = s2s.vmap(f, in_axes=(None, 0), out_axes={"y": 0, "z": [1, None]})(
        {"a": 2.0, "b": (np.ones(2),)}, np.arange(3.0)
    )
    assert y["y"].shape == (3,) and y["z"][0].shape == (2, 3) and y["z"][1] == 2.0
    with pytest.raises(s2s.TypeMismatchError, match="no tree like"):
        s2s.vmap(f, in_axes=({"a": 0}, 0))({"a": np.ones(2), "b": (np.ones(2),)}, np.ones(2))


@pytest.mark.lengthy
def test_matrices_of_derivatives_of_trees():
    def f(d):
        return {"y": d["a"] ** 2, "z": d["b"] * d["a"]}

    at = {"a": 2.0, "b": np.array([1.0, 3.0])}
    forward, backward = s2s.jacfwd(f)(at), s2s.jacrev(f)(at)
    assert s2s.tree.structure(forward) == s2s.tree.structure(backward)
    for m, n in zip(s2s.tree.leaves(forward), s2s.tree.leaves(backward)):
        np.testing.assert_allclose(m, n)
    assert forward["z"]["b"].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    h = s2s.hessian(lambda d: d["a"] ** 2 * np.sum(d["b"]))(at)
    assert (
        h["a"]["a"] == 8.0
        and h["b"]["a"].tolist() == [4.0, 4.0]
        and h["b"]["b"].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    )


@pytest.mark.compile
def test_compiled_code_takes_and_returns_containers():
    g = s2s.jit(s2s.value_and_grad(dense))
    for scale in (1.0, 2.0):
        value, bar = g(Layer(A, scale * b), x2)
        assert type(bar) is Layer and bar.act is Act.TANH
        np.testing.assert_allclose(value, dense(Layer(A, scale * b), x2))
        np.testing.assert_allclose(bar.W, s2s.grad(dense)(Layer(A, scale * b), x2).W)


# ---------------------------------------------------------------------------------- what is refused


def keys_in_a_branch(x, n):
    d = {"a": x}
    if x > 0:
        d["b"] = x
    return d["a"]


def kinds_in_branches(x, n):
    d = {"a": x} if x > 0 else SimpleNamespace(a=x)
    return x * len((d,))


def keys_in_a_loop(x, n):
    d = {"a": x}
    for i in range(n):
        d["b"] = x
    return d["a"]


def kinds_in_a_loop(x, n):
    d = {"a": x}
    for i in range(n):
        d = {"b": x}
    return d["a"]


def missing_keys(x, n):
    d = {"a": x}
    return d["b"]


def missing_attributes(x, n):
    return SimpleNamespace(a=x).b


@dataclass(frozen=True)
class Frozen:
    a: float


def frozen_fields(x, n):
    p = Frozen(x)
    p.a = 2.0
    return p.a


def fields_of_a_namedtuple(x, n):
    p = P3(x, x)
    p.x = 2.0
    return p.x


class Magic:
    def __getattr__(self, name):
        return 1.0


def magic(x, n):
    return Magic().anything * x


@pytest.mark.parametrize(
    "f, message, remedy",
    [
        (
            keys_in_a_branch,
            "d is a dict with the keys 'a', 'b' on one path and a dict with the keys 'a' on "
            "another",
            "on all paths",
        ),
        (
            kinds_in_branches,
            "a dict with the keys 'a' on one path and a SimpleNamespace with the attributes a on "
            "another",
            "on all paths",
        ),
        (
            keys_in_a_loop,
            "a dict with the keys 'a' before the loop and a dict with the keys 'a', 'b' after a "
            "trip",
            "before the loop",
        ),
        (
            kinds_in_a_loop,
            "a dict with the keys 'a' before the loop and a dict with the keys 'b' after a trip",
            "keys or attributes",
        ),
        (missing_keys, "'b' is not among the keys 'a'", "use one of them"),
        (missing_attributes, "'SimpleNamespace' object has no attribute 'b'", "it has a"),
        (
            frozen_fields,
            "cannot assign to field 'a' of Frozen, which is frozen",
            "use dataclasses.replace",
        ),
        (fields_of_a_namedtuple, "can't set attribute", "use _replace"),
        (magic, "Magic defines __getattr__", "plain attributes"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_refused(f, message, remedy):
    with pytest.raises(s2s.S2SError) as caught:
        s2s.grad(f)(1.0, 3)
    assert message in str(caught.value) and remedy in caught.value.remedy
    assert caught.value.line is not None and caught.value.line.text.strip() in str(caught.value)


class Bead:
    def __init__(self, x):
        self.x = x

    def energy(self):
        return self.x * self.x


def beads(x, n):
    chain = [Bead(x[k]) for k in range(2)]
    total = 0.0
    for _ in range(n):
        for b in chain:
            b.x = b.x * 1.1
        total = total + sum(b.energy() for b in chain)
    return total


def test_the_target_of_an_inner_loop_over_objects_is_bound_anew_in_each_trip():
    judge(beads, np.array([0.3, 0.5]), 3)
