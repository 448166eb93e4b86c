"""`jax_function`: a program as a differentiable function of JAX arrays.

Two primitives of JAX's: `s2s` calls a program (leaf_program.py), `s2s_linear` one that is linear in
its last operands, a tangent.  Traced code calls back to Python for either (`jax.pure_callback`).

    jvp        s2s(xs; f), xs_dot             ->  s2s(xs; f), s2s_linear(xs, xs_dot; f's tangent)
    transpose  s2s_linear(xs, xs_dot), y_bar  ->  s2s(xs, y_bar; f's pullback)
    vmap       s2s(xs; f)                     ->  s2s(xs; s2s.vmap of f)

Considered: `jax.custom_vjp` and `jax.custom_jvp`, of which a function can have one only, and the
former refuses `jax.jvp` and `jax.jacfwd`.  A custom_jvp whose tangents are
`jax.custom_derivatives.linear_call` has both modes, but not twice: linear_call has no derivative in
what it is not linear in.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from ..eval_shape import ShapeDtype
from ..lazy_import import later
from .leaf_program import Family, LeafProgram, carries_derivative, unflatten

jax = later("jax")
jnp = later("jax.numpy")
jex = later("jax.extend.core")
ad = later("jax.interpreters.ad")
batching = later("jax.interpreters.batching")
mlir = later("jax.interpreters.mlir")


def jax_function(f: Callable) -> Callable:
    """Return `f`, a function that s2s can differentiate, as a function of JAX arrays.

    JAX's and NumPy's arrays may stand wherever `f` takes numbers or arrays, in containers too, and
    the result has JAX's in the places of its numbers and arrays; what else is passed, Python's
    numbers among it, reaches `f` as it is, and has no derivative.  An `f` that is `s2s.jit` of a
    function is compiled, and all its derivatives with it.

        @s2s.jax_function
        def root(a):
            x = a
            while abs(x * x - a) > 1e-12:
                x = 0.5 * (x + a / x)
            return x

        jax.jit(jax.grad(root))(2.0 * jnp.ones(()))      # which jax.lax.while_loop does not have

    It works under `jax.jit`, where it is a `jax.pure_callback`, and in `jax.grad`, `jvp`, `vjp`,
    `jacfwd`, `jacrev` and `hessian`, to any order; `jax.vmap` of it is `s2s.vmap`.  Cotangents that
    nobody asks for are not computed.

    Dtypes and shapes are those of `f` on NumPy's arrays, an array of no axes is a NumPy number; but
    JAX has no float64 unless `jax_enable_x64` is set.  Integers and booleans have no derivative.
    Where `f` writes to an argument, it writes to a copy.  Raises UnsupportedError where the shape
    of a result depends on what an array holds, and, as `f` is read when it is first called,
    whatever `s2s.vjp` of it raises.
    """
    family = Family(f)

    @functools.wraps(f, updated=())
    def function(*args, **kwargs):
        program, given = LeafProgram.of(family, family.arguments(args, kwargs),
                                        (jax.Array, np.ndarray, np.generic))
        arrays = [jnp.asarray(x) for x in given]
        leaves, structure = program.shapes([_spec(x) for x in arrays])
        found = iter(primitives().call.bind(*arrays, program=program))
        return unflatten(structure, iter([next(found) if isinstance(x, ShapeDtype) else x
                                          for x in leaves]))

    return function


def _spec(x) -> ShapeDtype:
    return ShapeDtype(x.shape, x.dtype)


@dataclass(eq=False)
class Transpose:
    """The transpose of a tangent of `program` by the leaves `wanted`, for lanes along axes of the
    primals: `lanes` has the axes of each vmap, the innermost first.
    """

    program: LeafProgram
    wanted: tuple[int, ...]
    lanes: tuple = ()

    def by(self, needed: Sequence[int], results: int) -> LeafProgram:
        """Return the program (*xs, *y_bars) -> the x_bars of these among `wanted`."""
        back = self.program.pullback([self.wanted[k] for k in needed], results)
        for axes in self.lanes:
            back = back.batched((*axes, *(0,) * results))
        return back


def run(*arrays, program: LeafProgram, **_) -> list:
    """Return the results of a program for JAX's or NumPy's arrays, as NumPy's arrays."""
    leaves, _ = program.run([np.asarray(x)[()] if x.ndim == 0 else np.asarray(x) for x in arrays])
    return [np.asarray(y) for y in leaves if isinstance(y, NUMBERS)]


NUMBERS = np.ndarray, np.generic, bool, int, float, complex


def avals(*xs, program: LeafProgram, **_) -> list:
    """Return the shapes and dtypes of the results of a program, as JAX has them."""
    leaves, _ = program.shapes([_spec(x) for x in xs])
    return [jax.core.ShapedArray(y.shape, jax.dtypes.canonicalize_dtype(y.dtype))
            for y in leaves if isinstance(y, ShapeDtype)]


def called_back(*xs, program: LeafProgram, **_) -> tuple:
    """Trace a call of the program from compiled code."""
    made = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in avals(*xs, program=program)]

    def call(*arrays):
        return tuple([np.asarray(y, m.dtype) for y, m in zip(run(*arrays, program=program), made)])

    return jax.pure_callback(call, tuple(made), *xs, vmap_method="sequential")


@functools.cache
def primitives() -> SimpleNamespace:
    """Return JAX's primitives `call` and `linear`, made when JAX is needed."""
    found = SimpleNamespace(call=jex.Primitive("s2s"), linear=jex.Primitive("s2s_linear"))
    for primitive in (found.call, found.linear):
        primitive.multiple_results = True
        primitive.def_impl(lambda *xs, **params: [jnp.asarray(y) for y in run(*xs, **params)])
        primitive.def_abstract_eval(avals)
        mlir.register_lowering(primitive, mlir.lower_fun(called_back, multiple_results=True))
        ad.primitive_jvps[primitive] = functools.partial(differentiate, primitive)
    ad.primitive_transposes[found.linear] = transpose
    batching.primitive_batchers[found.call] = batch
    batching.primitive_batchers[found.linear] = batch_linear
    return found


def differentiate(primitive, xs: Sequence, dots: Sequence, *, program: LeafProgram,
                  **params) -> tuple:
    """Return the results of a primitive, and their tangents."""
    ys = primitive.bind(*xs, program=program, **params)
    wanted = tuple([k for k, (x, dot) in enumerate(zip(xs, dots))
                    if type(dot) is not ad.Zero and carries_derivative(x.dtype)])
    found = iter(primitives().linear.bind(*xs, *(dots[k] for k in wanted),
                                          program=program.tangent(wanted),
                                          back=Transpose(program, wanted)))
    return ys, [next(found) if carries_derivative(y.dtype)
                else ad.Zero(jax.core.ShapedArray(y.shape, jax.dtypes.float0)) for y in ys]


def transpose(y_bars: Sequence, *operands, program: LeafProgram, back: Transpose) -> list:
    """Return the cotangents of the operands in which `linear` is linear, its last ones."""
    count = len(operands) - len(back.wanted)
    xs, dots = operands[:count], operands[count:]
    bars = [jnp.zeros(bar.aval.shape, bar.aval.dtype) if type(bar) is ad.Zero else bar
            for bar in y_bars]
    needed = [k for k, dot in enumerate(dots) if ad.is_undefined_primal(dot)]
    found = iter(primitives().call.bind(*xs, *bars, program=back.by(needed, len(bars))))
    return [None] * count + [next(found) if k in needed else None for k in range(len(dots))]


def batch(xs: Sequence, axes: Sequence, *, program: LeafProgram) -> tuple:
    """Return the results for all lanes, and the axes along which they have them."""
    ys = primitives().call.bind(*xs, program=program.batched(axes))
    return ys, (0,) * len(ys)


def batch_linear(operands: Sequence, axes: Sequence, *, program: LeafProgram,
                 back: Transpose) -> tuple:
    """Do the same for `linear`, each lane with a direction of its own, so that it has a cotangent
    of its own.
    """
    count = len(operands) - len(back.wanted)
    lanes = next(x.shape[axis] for x, axis in zip(operands, axes) if axis is not None)
    dots = [jnp.broadcast_to(x, (lanes, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(operands[count:], axes[count:])]
    own = tuple(axes[:count])
    ys = primitives().linear.bind(
        *operands[:count], *dots, program=program.batched((*own, *(0,) * len(dots))),
        back=Transpose(back.program, back.wanted, (*back.lanes, own)))
    return ys, (0,) * len(ys)
