"""Workers: the time of a psum, and of gradients that workers share the data of, against one worker.

The least of many short runs, for a shared machine: with the load that it has meanwhile.  Beside it
stands JAX's shard_map, in the same run, over as many devices on the CPU, in float64.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from types import FunctionType

import numpy as np

import s2s
from s2s import lax


def mixture(p, x):
    """The mean log-likelihood of a Gaussian mixture, of the points `x`."""
    weights, means, scales = p["weights"], p["means"], p["scales"]
    d = (x[:, None, :] - means) / np.exp(scales)
    logs = weights - np.sum(scales, axis=1) - 0.5 * np.sum(d * d, axis=2)
    top = np.max(logs, axis=1)
    return np.mean(top + np.log(np.sum(np.exp(logs - top[:, None]), axis=1)))


def perceptron(p, x):
    """The mean squared error of a perceptron of two layers, of rows with what they are to give."""
    h = np.tanh(x[:, 1:] @ p["W"] + p["b"])
    return np.mean((np.tanh(h @ p["V"]) - x[:, 0]) ** 2)


def programs(rng: np.random.Generator) -> dict:
    """The name of each program, its loss, its parameters and its data."""
    return {
        "Gaussian mixture": (mixture, {
            "weights": np.zeros(8), "means": rng.normal(size=(8, 4)),
            "scales": np.zeros((8, 4))}, rng.normal(size=(20_000, 4))),
        "perceptron": (perceptron, {
            "W": rng.normal(size=(16, 32)), "b": np.zeros(32), "V": rng.normal(size=32)},
            rng.normal(size=(20_000, 17))),
    }


def least(f: Callable, *args, repeats: int = 60) -> float:
    """The least of the times of f(*args), in seconds."""
    f(*args)
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        f(*args)
        found.append(time.perf_counter() - start)
    return min(found)


def gradient(loss: Callable, workers: int) -> Callable:
    """The gradient of the mean loss of parts of the data."""
    parts = s2s.pmap(loss, in_axes=(None, 0), workers=workers)
    return s2s.jit(s2s.grad(lambda p, x: np.mean(parts(p, x))))


def repeated(x, k):
    for _ in range(k):
        x = lax.psum(x, "i") * 0.5
    return x


def of_jax(count: int) -> None:
    """Print JAX's times over `count` devices, which it has to know before it is imported."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
    try:
        import jax
    except ImportError:
        print("JAX is not installed: pip install -e .[peers]")
        return
    import jax.numpy as jnp
    from jax.sharding import Mesh, PartitionSpec

    jax.config.update("jax_enable_x64", True)
    mesh, lanes, whole = (Mesh(np.array(jax.devices()), "i"), PartitionSpec("i"), PartitionSpec())

    def over_devices(f, specs, out):
        shared = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out,
                                       check_vma=False))
        return lambda *args: jax.block_until_ready(shared(*args))

    def repeated_in_jax(x, k):
        return jax.lax.fori_loop(0, k, lambda _, x: jax.lax.psum(x, "i") * 0.5, x)

    for size, k in ((), 500), ((1000,), 500), ((1_000_000,), 4):
        over, x = over_devices(repeated_in_jax, (lanes, whole), lanes), np.ones((count, *size))
        each = (least(over, x, 2 * k) - least(over, x, k)) / k
        print(f"JAX: psum of {int(np.prod(size)):7} numbers, {count} devices:{each * 1e6:10.1f} us")
    for name, (loss, p, x) in programs(np.random.default_rng(0)).items():
        slope = jax.grad(FunctionType(loss.__code__, {"np": jnp}))
        one = jax.jit(slope)
        alone = least(lambda p, x: jax.block_until_ready(one(p, x)), p, x)
        shared = over_devices(
            lambda p, x: jax.tree.map(lambda y: jax.lax.pmean(y, "i"), slope(p, x)),
            (whole, lanes), whole)
        both = least(shared, p, x)
        print(f"JAX: gradient of a {name}: {alone * 1e3:.2f} ms by one device, {both * 1e3:.2f} ms "
              f"by {count}")


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    count = parser.parse_args().workers
    print(f"{count} workers, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    for workers in count, 2 * len(os.sched_getaffinity(0)):
        over = s2s.pmap(repeated, "i", in_axes=(0, None), workers=workers)
        for size, k in ((), 10_000), ((1000,), 5_000), ((1_000_000,), 4):
            x = np.ones((workers, *size))
            each = (least(over, x, 2 * k) - least(over, x, k)) / k
            print(f"psum of {int(np.prod(size)):7} numbers, {workers} workers:"
                  f"{each * 1e6:10.1f} us")
    x = np.ones(1_000_000)
    print(f"a copy of {len(x)} numbers: {least(np.copyto, np.empty_like(x), x) * 1e6:.1f} us")
    rng = np.random.default_rng(0)
    for name, (loss, p, x) in programs(rng).items():
        plain = least(s2s.jit(s2s.grad(loss), parallel=False), p, x)
        shared = [least(gradient(loss, n), p, s2s.shard(x, count)) for n in (1, count)]
        print(f"gradient of a {name}: {plain * 1e3:.2f} ms by one thread, {shared[0] * 1e3:.2f} ms "
              f"by one worker, {shared[1] * 1e3:.2f} ms by {count}: {shared[0] / shared[1]:.2f} "
              "times")
    sys.stdout.flush()
    of_jax(count)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
