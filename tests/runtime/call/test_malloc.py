"""Memory that compiled code frees stays with the process: the next call need not have it cleared
again.
"""

import numpy as np
import pytest

import s2s
from s2s.runtime.call.malloc import keep_freed_memory

resource = pytest.importorskip("resource")


def compounded(x, n):
    total = 1.0
    for i in range(n):
        total = np.sin(total * x) + 1.0
    return total


@pytest.mark.compile
@pytest.mark.skipif(
    not keep_freed_memory(), reason="the allocator is not glibc's, or the user's to set"
)
def test_a_tape_of_many_megabytes_is_not_new_memory_at_each_call():
    n = 8_000_000  # 64 MB
    gradient = s2s.jit(s2s.grad(compounded))
    gradient(0.7, n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    gradient(0.7, n)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 1000  # of 16,000 pages
