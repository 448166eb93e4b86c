"""Lists that grow at run time, of dicts, objects and tuples in tuples."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from judge import judge

import s2s


class Pair(NamedTuple):
    first: float
    second: float


@dataclasses.dataclass(frozen=True)
class Wave:
    height: float
    phase: float | Pair = 0.3

    def __call__(self, u):
        return np.tanh(self.height) * np.sin(u + self.phase)


def waves(x, n):
    ws = []
    for i in range(n):
        ws.append(Wave(x * i, x))
    total = 0.0
    for w in ws:
        total = total + w(0.3)
    return total + sum(w(x) for w in ws)


def in_a_comprehension(x, n):
    return sum(w.height * w(0.3) for w in [Wave(np.sin(x), x * i) for i in range(n)])


def dicts(x, n):
    rs = []
    for i in range(n):
        if i != 1:
            rs.append({"u": x * (i + 1), "w": np.array([x, x * x])})
    return sum(r["u"] * r["w"][1] for r in rs) + rs[-1]["u"] ** 2


def named(x, n):
    ps = [Pair(x, x * x)]
    for i in range(n):
        ps.append(Pair(ps[-1].second * 0.5, np.sin(x + i)))
    return sum(p.first * p.second for p in ps)


def nested(x, n):
    ws = []
    for i in range(n):
        ws.append(Wave(x * (i + 1), Pair(x, np.cos(x))))
    total = 1.0
    for w in ws:
        total = total * w.height + w.phase.second * w.phase.first
    return total


def with_texts(x, n):
    rs = []
    for i in range(n):
        rs.append({"name": "a wave", "u": x * (i + 1)})
    total = 0.0
    for r in rs:
        total = total + r["u"] ** 2
    return total * sum(r["u"] for r in rs)


PROGRAMS = [waves, in_a_comprehension, dicts, named, nested, with_texts]


@pytest.mark.parametrize("f", PROGRAMS)
def test_records(f):
    judge(f, 0.4, 4)


@pytest.mark.compile
@pytest.mark.parametrize("f", [waves, dicts, nested])
def test_records_compiled(f):
    judge(f, 0.4, 4, compiled=True, second=f is waves)


@pytest.mark.lengthy
def test_the_cotangent_of_a_record_is_one():
    gradient = s2s.grad(waves)
    gradient(0.4, 4)
    assert "[Wave(height=0.0, phase=0.0) for x in ws]" in gradient.source
    assert "0.0 + " not in gradient.source
    assert "ws.append((" in s2s.jit(waves).lower(0.4, 4).loops
