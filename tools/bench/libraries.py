"""What each library makes of a case: two callables on the case's arguments, the function and its
gradient.

A case is a module in cases/, which holds

    arguments(size)     the arguments, NumPy arrays and Python numbers; SIZE is the size at which times are compared
    program(*args)      as a user of NumPy would write it; WRT are the arguments that it is differentiated in
    by_hand()           the adjoint as one would write it in Numba with a week to spare: (value, *gradients)
    in_jax(), in_torch(), in_autograd()     optional: the same program in the idiom of that library

A program of WRT = () differentiates by itself, and is timed as it stands.  STATIC are arguments
that decide the structure, which JAX's jit is told.  KIND says which limit the time of the gradient
has in units of the function's: "loops" of scalars, or "elementwise" passes over arrays; matrix
products have neither.  CALL is there where a call is what is timed.  GROWTH is for growth.py.
Where AXES is there, the program is for one lane and AXES are `vmap`'s in_axes; the other libraries'
versions may be written for all lanes at once (then they say so by returning a vector).  A library
whose gradient is not made in its usual way gives the whole of it: `gradient_in_jax()`.

Everything is imported where it is used: only s2s, NumPy and Numba have to be there.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
LARGE = 1 << 16  # bytes of a gradient that is worth writing into an array of an earlier call
PEERS = {"jax": "JAX", "torch": "PyTorch", "autograd": "autograd"}
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "S2S_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
}


def names() -> list[str]:
    return sorted(path.stem for path in (HERE / "cases").glob("*.py"))


def case(name: str):
    """The module of a case."""
    path = HERE / "cases" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"bench_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def has(module, library: str) -> bool:
    """Whether the case is written for this library, and the library is installed."""
    if library in ("s2s", "hand"):
        return library == "s2s" or hasattr(module, "by_hand")
    written = hasattr(module, f"in_{library}") or hasattr(module, f"gradient_in_{library}")
    return written and importlib.util.find_spec(library) is not None


def calls(module, library: str, args: tuple, one_thread: bool = True) -> dict:
    """name -> a function of no arguments that runs it: "gradient" (value and gradients).

    s2s has "function", too, where the gradient is not all there is, and "reused", the gradient into
    arrays of an earlier call, where these are not small.
    """
    return {
        "s2s": _s2s,
        "hand": _hand,
        "jax": _jax,
        "torch": _torch,
        "autograd": _autograd
    }[library](module, args, one_thread)


def leaves(result) -> list[np.ndarray]:
    """(value, gradients), nested as a library nests them, as a flat list of arrays."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    if isinstance(result, dict):
        return [leaf for key in sorted(result) for leaf in leaves(result[key])]
    if hasattr(result, "detach"):
        result = result.detach().numpy()
    return [np.asarray(result)]


def _s2s(module, args, one_thread):
    import s2s

    s2s.keep_freed_memory()  # as the other libraries do with theirs
    function = module.program
    gradient = s2s.value_and_grad(function, argnums=module.WRT) if module.WRT else function
    if hasattr(module, "AXES"):
        function, gradient = s2s.vmap(function,
                                      in_axes=module.AXES), s2s.vmap(gradient, in_axes=module.AXES)
    gradient, function = s2s.jit(gradient), s2s.jit(function)
    made: list = []  # the result of the first call

    def into_the_first():
        if not made:
            made.append(gradient(*args))
        return gradient(*args, out=made[0])

    found = {"gradient": lambda: gradient(*args)}
    if module.WRT:
        found["function"] = lambda: function(*args)
    if any(isinstance(args[k], np.ndarray) and args[k].nbytes >= LARGE for k in module.WRT):
        found["reused"] = into_the_first
    return found


def _hand(module, args, one_thread):
    by_hand = module.by_hand()
    return {"gradient": lambda: by_hand(*args)}


def _jax(module, args, one_thread):
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    static = getattr(module, "STATIC", ())
    if hasattr(module, "gradient_in_jax"):
        gradient = module.gradient_in_jax()
    elif not module.WRT:
        gradient = module.in_jax()
    else:
        gradient = jax.value_and_grad(module.in_jax(), argnums=module.WRT)
        if hasattr(module, "AXES"):
            gradient = jax.vmap(gradient, in_axes=module.AXES)
    gradient = jax.jit(gradient, static_argnums=static)
    given = [x if k in static else jax.tree.map(jax.numpy.asarray, x) for k, x in enumerate(args)]
    return {"gradient": lambda: jax.block_until_ready(gradient(*given))}


def _torch(module, args, one_thread):
    import torch

    if one_thread:
        torch.set_num_threads(1)

    def tensor(x):
        if isinstance(x, np.ndarray):
            return torch.from_numpy(x.copy())
        if isinstance(x, (tuple, list)):
            return type(x)(map(tensor, x))
        if isinstance(x, dict):
            return {key: tensor(value) for key, value in x.items()}
        return x

    def tensors(x):
        if isinstance(x, (tuple, list)):
            return [leaf for part in x for leaf in tensors(part)]
        if isinstance(x, dict):
            return [leaf for key in sorted(x) for leaf in tensors(x[key])]
        return [x]

    given = [tensor(x) for x in args]
    if hasattr(module, "gradient_in_torch"):
        gradient = module.gradient_in_torch()
        return {"gradient": lambda: gradient(*given)}
    program = module.in_torch()
    for k in module.WRT:
        if isinstance(given[k], float):
            given[k] = torch.tensor(given[k], dtype=torch.float64)
    wanted = [x for k in module.WRT for x in tensors(given[k])]
    for x in wanted:
        x.requires_grad_(True)

    def gradient():
        value = program(*given)
        return value, torch.autograd.grad(value.sum(), wanted)

    return {"gradient": gradient}


def _autograd(module, args, one_thread):
    if hasattr(module, "gradient_in_autograd"):
        gradient = module.gradient_in_autograd()
        return {"gradient": lambda: gradient(*args)}
    from autograd import make_vjp

    program = module.in_autograd()

    def of_wanted(wanted):
        given = list(args)
        for k, x in zip(module.WRT, wanted):
            given[k] = x
        return program(*given)

    def gradient():
        pull, value = make_vjp(of_wanted)(tuple(args[k] for k in module.WRT))
        return value, pull(np.ones_like(value))

    return {"gradient": gradient}


def limit_threads() -> None:
    """One thread for every library that this process has not imported yet."""
    os.environ.update(ONE_THREAD)
