"""An oracle for collectives: the program itself, run by Python in a thread for each lane; threads
meet at a barrier and see what the others have.
"""

import functools
import itertools
import threading
import types
from pathlib import Path

import numpy as np

from s2s import lax, tree


def at_once(barrier, works):
    """The results of `works`, by their keys: each runs in a thread, and they meet at `barrier`.

    The first error of one of them is raised.
    """
    found, errors = {}, []

    def one(key, work):
        try:
            found[key] = work()
        except Exception as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=one, args=each) for each in works.items()]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if errors:
        raise errors[0]
    return found


class Lanes:
    """The functions of `lax`, over lanes that are threads, with these axes: {"i": 3, "j": 4}."""

    def __init__(self, sizes):
        self.sizes, self.here = sizes, threading.local()
        self.barrier = threading.Barrier(int(np.prod(list(sizes.values()))))
        self.slots = {}
        for name in ("cond", "switch", "scan", "fori_loop", "while_loop"):
            setattr(self, name, getattr(lax, name))

    def run(self, f, args, in_axes):
        """The results of all lanes, stacked."""
        count = len(self.sizes)

        def lane(place):
            self.here.place = dict(zip(self.sizes, place))
            return f(*(x if axis is None else
                       np.moveaxis(x, range(axis, axis + count), range(count))[place]
                       for x, axis in zip(args, in_axes)))

        places = list(itertools.product(*map(range, self.sizes.values())))
        found = at_once(self.barrier, {place: functools.partial(lane, place) for place in places})
        return tree.map(lambda *xs: np.reshape(np.stack(xs),
                                               (*self.sizes.values(), *np.shape(xs[0]))),
                        *(found[place] for place in places))

    def others(self, x, names):
        """What the lanes along these axes have, in order, the last name counting fastest."""
        names = names if isinstance(names, tuple) else (names,)
        here = self.here.place
        self.slots[tuple(here.values())] = x
        self.barrier.wait()
        found = [self.slots[tuple({**here, **dict(zip(names, k))}.values())]
                 for k in itertools.product(*(range(self.sizes[n]) for n in names))]
        self.barrier.wait()
        return found

    def axis_size(self, names):
        return len(self.others(0, names))

    def axis_index(self, names):
        key = tuple(self.here.place.values())
        return self.others(key, names).index(key)

    def leaves(self, rule, x, names):
        return tree.map(lambda leaf: rule(self.others(leaf, names)), x)

    def psum(self, x, names):
        return self.leaves(lambda xs: np.sum(np.stack(xs), axis=0), x, names)

    def pmean(self, x, names):
        return self.leaves(lambda xs: np.mean(np.stack(xs), axis=0), x, names)

    def pmax(self, x, names):
        return self.leaves(lambda xs: np.max(np.stack(xs), axis=0), x, names)

    def pmin(self, x, names):
        return self.leaves(lambda xs: np.min(np.stack(xs), axis=0), x, names)

    def all_gather(self, x, names, *, axis=0, tiled=False):
        join = np.concatenate if tiled else np.stack
        return self.leaves(lambda xs: join(xs, axis=axis), x, names)

    def psum_scatter(self, x, names, *, scatter_dimension=0, tiled=False):
        total, k, n = self.psum(x, names), self.axis_index(names), self.axis_size(names)
        part = np.split(total, n, scatter_dimension)[k]
        return part if tiled else np.squeeze(part, scatter_dimension)

    def all_to_all(self, x, names, split_axis, concat_axis, *, tiled=False):
        k, n = self.axis_index(names), self.axis_size(names)
        parts = self.others(np.split(x, n, split_axis), names)
        if tiled:
            return np.concatenate([p[k] for p in parts], concat_axis)
        return np.stack([np.squeeze(p[k], split_axis) for p in parts], concat_axis)

    def ppermute(self, x, names, perm):
        k = self.axis_index(names)

        def arriving(xs):
            return next((xs[a] for a, b in perm if b == k), np.zeros_like(xs[0]))

        return self.leaves(arriving, x, names)

    def pshuffle(self, x, names, perm):
        k = self.axis_index(names)
        return self.leaves(lambda xs: xs[perm[k]], x, names)


def with_modules(path, np_module, lax_module):
    """The module at `path`, with these modules as its `np` and `lax`."""
    text = Path(path).read_text().replace("import numpy as np\n", "").replace(
        "from s2s import lax\n", "")
    module = types.ModuleType("programs")
    module.np, module.lax = np_module, lax_module
    exec(compile(text, str(path), "exec"), vars(module))
    return module
