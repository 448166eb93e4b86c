"""What is saved has one order, whatever the order in which memory was given out."""

import numpy as np
import pytest

import s2s


def rates(u, th):
    x, y = u[0], u[1]
    return np.stack([th[0] * x - th[1] * x * y, th[2] * x * y - th[3] * y])


STEPPED = """
def stepped(th, u):
    total = 0.0
    for k in range(4):
        u = u + 0.1 * rates(u + 0.05 * rates(u, th), th)
        total = total + np.mean(u**2)
    return total
"""


@pytest.mark.lengthy
def test_what_a_call_saves_has_one_order():
    texts = set()
    for _ in range(6):
        slope = s2s.grad(s2s.from_source(STEPPED, {"np": np, "rates": rates}))
        slope(np.ones(4), np.ones((2, 9)))
        texts.add(slope.source)
    assert len(texts) == 1
