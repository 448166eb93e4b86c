"""`s2s.torch_function` against differences (gradcheck) and the same programs in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import s2s
from s2s.interop import torch_function


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (pip install s2s[torch])")


def relax(u, k, sweeps):
    """Writes into a copy, element by element, in nested loops, with a branch."""
    u = u.copy()
    for _ in range(sweeps):
        for i in range(1, len(u) - 1):
            if u[i] < 1.5:
                u[i] = u[i] + k * (u[i - 1] - 2 * u[i] + u[i + 1])
    return np.sum(u * u), u[1:-1] * k


def waves(z):
    return np.sum(np.abs(z) ** 2 * np.real(z)), z * z


def doubles(torch, *values):
    return [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in values]


def test_both_modes_twice_against_differences(torch):
    f = s2s.torch_function(relax)
    u, k = doubles(torch, [0.3, 1.0, 2.0, 0.7], 0.2)
    assert torch.autograd.gradcheck(lambda u, k: f(u, k, 2), (u, k), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda u, k: f(u, k, 2), (u, k), check_fwd_over_rev=True)


def test_complex_numbers_by_the_convention_of_pytorch(torch):
    z = torch.tensor([0.5 + 1j, -0.2 - 0.4j], requires_grad=True, dtype=torch.complex128)
    f = s2s.torch_function(waves)
    assert torch.autograd.gradcheck(f, (z,), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (z,))
    assert torch.allclose(f(torch.conj(z.detach()))[1], torch.conj(z.detach()) ** 2)


@pytest.mark.parametrize("name", ["grad", "jacrev", "jacfwd", "hessian"])
def test_transformations_of_pytorch(torch, name):
    def g(x, k):
        h = torch.tanh(x * k)
        return (h * torch.sin(h)).sum()

    f = s2s.torch_function(lambda x, k: np.sum(np.tanh(x * k) * np.sin(np.tanh(x * k))))
    x, k = torch.randn(3, 4, dtype=torch.float64), torch.tensor(0.7, dtype=torch.float64)
    of, vmap = getattr(torch.func, name), torch.func.vmap
    assert torch.allclose(of(f)(x, k), of(g)(x, k))
    assert torch.allclose(vmap(of(f), (1, None))(x, k), vmap(of(g), (1, None))(x, k))


@pytest.mark.compile
def test_trees_and_dtypes_in_native_code(torch):
    @s2s.torch_function
    @s2s.jit
    def f(p, n):
        h = p["w"]
        for _ in range(n):
            h = np.tanh(p["w"] * h + p["b"][0])
        return {"total": np.sum(h), "which": np.argmax(h), "text": "as it is"}

    w, b = torch.tensor([0.5, 1.5], requires_grad=True), torch.tensor(0.25)
    found = f({"w": w, "b": (b,)}, 2)
    expected = torch.tanh(w * torch.tanh(w * w + b) + b).sum()
    assert found["total"].dtype == torch.float32 and found["text"] == "as it is"
    assert not found["which"].requires_grad and found["which"] == 1
    found["total"].backward()
    (slope,) = torch.autograd.grad(expected, w)
    assert torch.allclose(found["total"], expected) and torch.allclose(w.grad, slope)
    assert w.grad.dtype == torch.float32 and b.grad is None


def test_memory_is_shared_but_not_with_results(torch):
    x = torch.arange(6.0).reshape(2, 3).T
    array = torch_function._array_of(x)
    assert np.shares_memory(array, x.numpy()) and array.strides == (4, 12)
    assert torch_function._tensor_of(array, [], None).data_ptr() == x.data_ptr()
    assert torch_function._tensor_of(array[1:], [array], None).data_ptr() != x[1:].data_ptr()
    f = s2s.torch_function(lambda x: (x, x[::-1], x.T))
    y, reverse, transposed = f(x)
    y += 1.0
    assert torch.equal(x, torch.arange(6.0).reshape(2, 3).T) and torch.equal(reverse, x.flip(0))
    assert torch.equal(transposed, x.T)


def test_arguments_that_are_written_to_stay(torch):
    def f(x):
        x[0] = x[1] * x[2]
        return np.sum(x)

    (x,) = doubles(torch, [1.0, 2.0, 3.0])
    s2s.torch_function(f)(x).backward()
    assert x.tolist() == [1.0, 2.0, 3.0] and x.grad.tolist() == [0.0, 4.0, 3.0]


def test_refusals(torch):
    f = s2s.torch_function(lambda x: np.sum(x * x))
    with pytest.raises(s2s.UnsupportedError, match="a torch.strided tensor of torch.bfloat16 on "
                                                   "cpu\nInstead: pass a dense one of a dtype"):
        f(torch.ones(3, dtype=torch.bfloat16))
    with pytest.raises(s2s.UnsupportedError, match="a torch.sparse_coo tensor of torch.float32"):
        f(torch.ones(3).to_sparse())
    with pytest.raises(s2s.UnsupportedError, match="a tensor of PyTorch's older vmap(.|\n)*"
                                                   "Instead: batch by torch.func.vmap"):
        torch.autograd.functional.jacobian(f, torch.ones(3), vectorize=True)
