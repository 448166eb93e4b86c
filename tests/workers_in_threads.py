"""An oracle for workers: generated Python, run in a thread for each worker, in which the functions
between workers are written as their definitions say.
"""

import functools
import threading

import numpy as np
from lanes_in_threads import at_once


class Workers:
    """So many workers that run one program."""

    def __init__(self, count):
        self.count, self.here = count, threading.local()
        self.barrier, self.slots = threading.Barrier(count), [None] * count

    def run(self, t, args):
        """What each worker returns of the generated Python for these arguments."""
        scope = {}
        exec(t.lower(*args).source, scope)
        entry = scope[t.name]
        scope.update({name: getattr(self, name) for name in (
            "my_lanes", "all_lanes", "in_place_of_lanes", "workers_total", "of_first_worker",
            "lanes_sum", "lanes_max", "lanes_min")})

        def worker(k):
            self.here.number = k
            return entry(*args)

        found = at_once(self.barrier, {k: functools.partial(worker, k) for k in range(self.count)})
        return [found[k] for k in range(self.count)]

    def bounds(self, n, k=None):
        busy = max(1, min(self.count, n))
        k = min(self.here.number if k is None else k, busy - 1)
        return slice(k * n // busy, (k + 1) * n // busy)

    def others(self, x, n):
        """What the workers that have lanes of their own show."""
        self.slots[self.here.number] = x
        self.barrier.wait()
        found = self.slots[:max(1, min(self.count, n))]
        self.barrier.wait()
        return found

    def my_lanes(self, x):
        return x[self.bounds(len(x))]

    def all_lanes(self, x, n):
        assert len(x) == len(range(n)[self.bounds(n)])
        return np.concatenate(self.others(x, n))

    def in_place_of_lanes(self, x, n):
        out = np.zeros((n, *x.shape[1:]), x.dtype)
        out[self.bounds(n)] = x
        return out

    def workers_total(self, x, n):
        return sum(self.others(x, n)[1:], self.others(x, n)[0])

    def of_first_worker(self, x, n):
        return x if self.here.number == 0 else np.zeros_like(x)

    def lanes_sum(self, x, n):
        rows = np.concatenate(self.others(x, n))
        return sum(rows[1:], rows[0]) if n else np.zeros(x.shape[1:], x.dtype)

    def lanes_max(self, x, n):
        return np.max(np.concatenate(self.others(x, n)), axis=0)

    def lanes_min(self, x, n):
        return np.min(np.concatenate(self.others(x, n)), axis=0)
