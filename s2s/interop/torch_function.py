"""`torch_function`: a program as a differentiable function of PyTorch tensors.

Forward, backward and tangent are programs of s2s (leaf_program.py), run on the memory of the
tensors; the backward pass is such a function itself, so that it can be differentiated in turn, and
`torch.func.vmap` is s2s's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import UnsupportedError
from ..lazy_import import later
from .leaf_program import Branch, Family, LeafProgram, unflatten

torch = later("torch")
cupy = later("cupy")

TENSOR = object()
NUMBERS = np.ndarray, np.generic, bool, int, float, complex


def torch_function(f: Callable) -> Callable:
    """Return `f`, a function that s2s can differentiate, as a function of PyTorch tensors.

    Tensors may stand wherever `f` takes numbers or arrays, in containers too, and the result has
    tensors in the places of its numbers and arrays; what else is passed reaches `f` as it is.  An
    `f` that is `s2s.jit` of a function is compiled, and all its derivatives with it.

        @s2s.torch_function
        def energy(x, k):
            return 0.5 * k * np.sum((x[1:] - x[:-1]) ** 2)

        x = torch.linspace(0, 1, 5, dtype=torch.float64, requires_grad=True)
        energy(x, 3.0).backward()

    Autograd differentiates it, to any order, and so do `torch.func.grad`, `vjp`, `jvp`, `jacrev`,
    `jacfwd`, `hessian` and `vmap`, which is `s2s.vmap`.  Cotangents of tensors that need no
    gradient are not computed.  Tensors on the CPU are not copied on the way in, nor arrays on the
    way out unless they share memory with an argument or another result.  Those on a GPU need
    `f = s2s.jit(f, target="cuda")`, and their results stay there.

    Dtypes and shapes are those of `f` on NumPy's arrays, a tensor of no axes is a NumPy number; so
    float32 stays float32.  Results of integers and booleans have no derivative.  Where `f` writes
    to an argument, it writes to a copy.  What `torch.compile` compiles calls
    `torch.compiler.disable` of it.  Raises UnsupportedError for tensors that NumPy has no
    array for (bfloat16, sparse ones), and, as `f` is read when it is first called, whatever
    `s2s.vjp` of it raises.
    """
    family = Family(f)

    @functools.wraps(f, updated=())
    def function(*args, **kwargs):
        program, tensors = LeafProgram.of(family, family.arguments(args, kwargs), torch.Tensor)
        call = Call(program)
        found = iter(autograd_function().apply(call, *tensors))
        leaves = iter([next(found) if x is TENSOR else x for x in call.leaves])
        return unflatten(call.structure, leaves)

    return function


@dataclass(eq=False)
class Call:
    """A call of a program, and what its result is beside tensors: its structure, and for each of
    its leaves TENSOR or what it is.
    """

    program: LeafProgram
    structure: Branch | None = None
    leaves: list = field(default_factory=list)

    def run(self, tensors: Sequence) -> tuple:
        """Return the tensors among the leaves of the result."""
        if any(x.is_cuda for x in tensors) and self.program.family.transformed.target != "cuda":
            raise UnsupportedError("a tensor on a GPU, given to a function that runs on the CPU",
                                   None, 'give s2s.jit(f, target="cuda") to torch_function')
        arrays = [_array_of(x) for x in tensors]
        leaves, self.structure = self.program.run(arrays)
        device = next((x.device for x in tensors if x.is_cuda), None)
        results, taken = [], [x for x in arrays if isinstance(x, np.ndarray)]
        for x in leaves:
            is_data = isinstance(x, NUMBERS) or _is_on_gpu(x)
            self.leaves.append(TENSOR if is_data else x)
            if is_data:
                results.append(_tensor_of(x, taken, device))
        return tuple(results)


def _array_of(tensor):
    """Return the memory of a tensor as an array, or its number."""
    try:
        tensor = tensor.detach().resolve_conj().resolve_neg()
    except RuntimeError as error:
        raise UnsupportedError(f"a tensor of PyTorch's older vmap: {error}", None,
                               "batch by torch.func.vmap, jacrev or jacfwd instead of "
                               "is_grads_batched and vectorize") from None
    if tensor.is_cuda and tensor.ndim:
        return cupy.from_dlpack(tensor.contiguous())
    if tensor.is_cuda:
        tensor = tensor.cpu()
    try:
        return tensor.numpy() if tensor.ndim else tensor.numpy()[()]
    except (TypeError, RuntimeError):
        raise UnsupportedError(f"a {tensor.layout} tensor of {tensor.dtype} on {tensor.device}",
                               None, "pass a dense one of a dtype that NumPy has, with "
                               ".to_dense(), .float() or .cpu() for example") from None


def _tensor_of(x, taken: list, device):
    """Return an array or a number as a tensor; a copy where it shares memory with one `taken`."""
    if _is_on_gpu(x):
        return torch.as_tensor(x, device=device)
    array = np.asarray(x)
    if array.ndim:
        if not array.flags.writeable or any(np.may_share_memory(array, other) for other in taken) \
                or any(n < 0 for n in array.strides):
            array = array.copy()
        taken.append(array)
    found = torch.from_numpy(array)
    return found if device is None else found.to(device)


def _is_on_gpu(x) -> bool:
    return hasattr(type(x), "__cuda_array_interface__")


@functools.cache
def autograd_function() -> type:
    """Return the autograd.Function whose first argument is a Call, made when PyTorch is needed."""

    class Program(torch.autograd.Function):
        """The tensors of a call's result, from those of its arguments."""

        @staticmethod
        def forward(call, *tensors):
            return call.run(tensors)

        @staticmethod
        def setup_context(ctx, inputs, output):
            call, *tensors = inputs
            ctx.program = call.program
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(*[y for y in output if not _carries_derivative(y)])
            ctx.results = [(y.shape, y.dtype, y.device) if _carries_derivative(y) else None
                           for y in output]

        @staticmethod
        def backward(ctx, *y_bars):
            needed = [k for k, is_needed in enumerate(ctx.needs_input_grad[1:]) if is_needed]
            # PyTorch's cotangents of complex numbers are the conjugates of s2s's
            bars = [torch.zeros(made[0], dtype=made[1], device=made[2]) if bar is None
                    else bar.conj() for bar, made in zip(y_bars, ctx.results) if made is not None]
            back = Call(ctx.program.pullback(needed, len(bars)))
            x_bars = iter(Program.apply(back, *ctx.saved_tensors, *bars))
            return None, *(next(x_bars).conj() if k in needed else None
                           for k in range(len(ctx.saved_tensors)))

        @staticmethod
        def jvp(ctx, _, *dots):
            given = [k for k, dot in enumerate(dots) if dot is not None]
            ahead = Call(ctx.program.tangent(given))
            y_dots = iter(Program.apply(ahead, *ctx.saved_tensors, *(dots[k] for k in given)))
            return tuple([None if made is None else next(y_dots) for made in ctx.results])

        @staticmethod
        def vmap(info, in_dims, call, *tensors):
            lanes = Call(call.program.batched(in_dims[1:]))
            found = Program.apply(lanes, *tensors)
            call.structure, call.leaves = lanes.structure, lanes.leaves
            return found, (0,) * len(found)

    return Program


def _carries_derivative(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
