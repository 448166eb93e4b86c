"""Items of lists that are made at run time, with names of their own, written through: an item is a
place of its list (s2s/front/domain/item_places.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from judge import judge

import s2s
from s2s.errors import S2SError

X = np.array([0.5, 0.7, -0.3])
PROGRAMS = []


def program(f):
    PROGRAMS.append(f)
    return f


@dataclass
class Body:
    x: np.ndarray
    v: np.ndarray
    m: float

    def kick(self, force, dt):
        self.v += force * dt / self.m

    def drift(self, dt):
        self.x = self.x + dt * self.v


def bodies_of(d):
    bodies = []
    for i in range(len(d)):
        bodies.append(Body(np.array([d[i], i * 1.0]), np.zeros(2), 1.0 + d[i] ** 2))
    return bodies


@program
def bodies(d):
    bs = bodies_of(d)
    for _ in range(3):
        for a in bs:
            for b in bs:
                if a is not b:
                    a.kick(b.x - a.x, 0.1)
        for a in bs:
            a.drift(0.1)
    return sum([np.sum(b.x**2) + b.m * np.sum(b.v**2) for b in bs])


@program
def bodies_by_index(d):
    bs = bodies_of(d)
    for i in range(len(bs)):
        for j in range(len(bs)):
            if i != j:
                bs[i].kick(bs[j].x - bs[i].x, 0.1)
    bs[-1].x[0] *= d[1]
    return sum([np.sum(b.v * b.x) for b in bs])


@program
def links(d):
    chain = []
    for i in range(len(d)):
        chain.append(SimpleNamespace(p=np.zeros(2) + i, q=d[i]))
    for i in range(len(d)):
        chain[i].p[0] += d[i] * 2
        chain[i].q *= 1.0 + d[0]
    return sum([c.p[0] ** 2 * c.q for c in chain])


@program
def rows_of_a_list(d):
    n = len(d)
    grid = [[0.0] * n for _ in range(n)]
    for i in range(n):
        row, above = grid[i], grid[i - 1]
        for j in range(n):
            row[j] = d[i] * d[j] + above[j - 1]
    return sum([sum(row) ** 2 for row in grid])


@program
def arrays(d):
    xs = [d * i for i in range(len(d))]
    for x in xs:
        x[0] *= d[1]
    r = xs[1]
    r[1:] += 1.0
    xs[2] += r
    return sum([np.sum(x**2) for x in xs])


@program
def pairs(d):
    ps = []
    for i in range(len(d)):
        ps.append((d * i, d[i]))
    for p in ps:
        a, b = p
        a[0] += b
    return sum([np.sum(a**2) * b for a, b in ps])


@program
def dicts(d):
    ds = []
    for i in range(len(d)):
        ds.append({"p": np.zeros(2) + d[i], "v": d[i]})
    for e in ds:
        e["p"][0] += e["v"]
        e["v"] += 1
    return sum([e["p"][0] * e["v"] for e in ds])


@program
def objects_in_objects(d):
    xs = []
    for i in range(len(d)):
        xs.append(SimpleNamespace(a=SimpleNamespace(u=d[i], w=np.ones(2)), b=(d[i], np.zeros(2))))
    for x in xs:
        x.a.u = x.a.u * 2
        x.a.w[0] += x.a.u
        x.b[1][1] = x.a.u
    return sum([x.a.u * x.a.w[0] + np.sum(x.b[1]) for x in xs])


@program
def neighbours(d):
    nodes = []
    for i in range(4):
        nodes.append(SimpleNamespace(v=d[i % 3], nb=[(i + 1) % 4, (i + 2) % 4]))
    for _ in range(3):
        for node in nodes:
            for k in node.nb:
                node.v = node.v + 0.1 * nodes[k].v
    return sum([node.v**2 for node in nodes])


@program
def histories(d):
    xs = []
    for i in range(len(d)):
        xs.append(SimpleNamespace(v=d[i], past=[d[i]]))
    for k in range(4):
        for x in xs:
            x.v = x.v * (1.0 + 0.1 * x.past[-1])
            if x.v > 0.4 * k:
                x.past.append(x.v)
    return sum([x.v * sum([p**2 for p in x.past]) for x in xs])


@program
def the_least(d):
    xs = []
    for i in range(len(d)):
        xs.append(SimpleNamespace(p=d * i, q=d[i]))
    k = 0
    for i in range(len(xs)):
        if xs[i].q < xs[k].q:
            k = i
    least = xs[k]
    least.p[0] += d[1]
    least.q *= 2
    return sum([np.sum(x.p * d) + x.q for x in xs])


@program
def grown_while_an_item_has_a_name(d):
    xs = [d * i for i in range(len(d))]
    r = xs[1]
    xs.append(d * d)
    r[0] = d[2] * 3
    return sum([np.sum(x * d) for x in xs])


@program
def taken_out(d):
    stack = []
    for i in range(len(d)):
        stack.append([d[i], 1.0])
    total = 0.0
    while stack:
        a = stack.pop()
        a[0] *= 2
        if a[1] > 0.3:
            stack.append([a[0], a[1] * 0.5])
        total += a[0] * a[1]
    return total


@program
def put_back(d):
    xs = [(d[1], [d[2]]) for _ in range(len(d))]
    if len(xs) > 2:
        x = xs.pop()
        x[1][0] = d[0]
        xs.append(x)
    return sum([x[1][0] ** 2 * x[0] for x in xs])


@program
def items_that_grow(d):
    xs = [[d[0], 1.0] for _ in range(len(d))]
    for i in range(len(xs)):
        xs[i].append(d[i])
    for x in xs:
        x.append(0.3 * x[-1])
    return sum([sum([a**2 for a in x]) for x in xs])


@program
def items_that_shrink(d):
    xs = [d * i for i in range(1, 4)]
    for i in range(len(xs)):
        xs[i] = xs[i][:1] * d[2]
    return sum([np.sum(x * d[0]) for x in xs])


class Joint:
    """Nothing in it but a number."""

    def __init__(self, angle, limits=(-2.5, 2.5)):
        self.angle, self.limits = angle, limits

    def clamp(self):
        low, high = self.limits
        self.angle = min(max(self.angle, low), high)


@program
def objects_of_numbers(d):
    joints = [Joint(2.3 + v) for v in d]
    for i, (joint, v) in enumerate(zip(joints, d)):
        joint.angle += v * i
        joint.clamp()
    for joint in reversed(joints):
        joint.angle *= d[0]
    weights = [({"w": v}, 2) for v in d]
    for weight, k in weights:
        weight["w"] *= d[1] * k
    return sum([j.angle**2 for j in joints]) + sum([w["w"] * k for w, k in weights])


@program
def popped_in_a_branch(d):
    """The other branch has no item of which the next derivative reads the members."""
    xs, y = [SimpleNamespace(v=d[i], p=d * i) for i in range(len(d))], d[0]
    if len(xs) > 3:
        o = xs.pop()
        y = np.tanh(y + o.v)
    return y + np.sum(xs[-1].p ** 2)


@program
def popped_list_written_in_a_branch(d):
    """The copy of a list, as an op defines it, was given no memory: the adjoint read what the
    branch had written.
    """
    xs = [[d[0] * i, 1.0] for i in range(1, len(d) + 1)]
    o = xs.pop()
    if o[0] > 0.0:
        o[-1] *= d[1]
    return o[-1] * d[2]


@program
def joined_with_words_in_them(d):
    """What is no data need not be saved between the halves of a derivative."""
    xs, s = [], 0.0
    for i in range(len(d)):
        xs.append(SimpleNamespace(v=d[i], kind="u"))
    xs = xs + [SimpleNamespace(v=d[0] * d[1], kind="u")]
    for o in xs[1:]:
        s = s + o.v * o.v
    return s


@program
def an_item_from_the_end(d):
    xs = [d * i for i in range(len(d))]
    r = xs[-1]
    xs.append(d * d)
    r[0] = d[2]
    return np.sum(xs[-2])


@pytest.mark.lengthy
@pytest.mark.parametrize("f", PROGRAMS)
def test_programs(f):
    judge(f, X)


@pytest.mark.compile
@pytest.mark.parametrize("f", PROGRAMS)
def test_programs_compiled(f):
    judge(f, X, compiled=True, second=f is joined_with_words_in_them)


def an_item_is_removed(d):
    xs = [d * i for i in range(len(d))]
    r = xs[1]
    xs.pop(0)
    r[0] = d[2]
    return np.sum(xs[0])


def an_item_is_replaced(d):
    xs = [d * i for i in range(len(d))]
    r = xs[1]
    xs[1] = d * 5
    r[0] = d[2]
    return np.sum(xs[1])


def one_object_twice(d):
    xs, x = [], SimpleNamespace(v=d * 1.0)
    for _ in range(len(d)):
        xs.append(x)
    xs[0].v[0] += d[1]
    return np.sum(xs[1].v)


def one_array_in_two_objects(d):
    xs, a = [], d * 2
    for i in range(len(d)):
        xs.append(SimpleNamespace(v=a, w=d[i]))
    xs[1].v[0] += d[1]
    return np.sum(xs[0].v)


def one_item_stored_in_another(d):
    xs = []
    for i in range(len(d)):
        xs.append(SimpleNamespace(p=d * i))
    a, b = xs[0], xs[1]
    a.p = b.p
    a.p[0] += d[0]
    return np.sum(xs[1].p)


@pytest.mark.parametrize("f", [an_item_is_removed, an_item_is_replaced, one_object_twice,
                               one_array_in_two_objects, one_item_stored_in_another])
def test_what_has_no_place_of_its_own_is_refused(f):
    with pytest.raises(S2SError, match="may or may not|changes the order of a list of which r is"):
        s2s.grad(f)(X)


def test_many_items_read_one_after_the_other():
    """Each may share memory with all before it, which are asked once each for what they are."""
    text = ["def f(x, n):", "    g, s = [[x[0], x[1]] for _ in range(n)], 0.0"]
    for k in range(40):
        text += [f"    r = g[{k} % n]", f"    s = s + sum(r) * {k}", "    r = r + [1.0]",
                 "    s = s + len(r)"]
    f = s2s.from_source("\n".join([*text, "    return s", ""]), {})
    np.testing.assert_array_equal(s2s.grad(f)(X[:2], 3), [780.0, 780.0])
