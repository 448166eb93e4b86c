"""s2s: a source-to-source compiler for numerical Python.

    import s2s

    df = s2s.grad(f)        # a function: the derivative of f, as plain Python
    print(df.source)        # the text of it
    fast = s2s.jit(df)      # native code
"""

from . import lax, tree
from .api import (
    check_grads,
    dump,
    from_source,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jit,
    jvp,
    linearize,
    pmap,
    source,
    stages,
    value_and_grad,
    vectorize,
    vjp,
    vmap,
)
from .conventions import Convention, ConventionWarning, conventions
from .derive.implicit import custom_fixed_point, custom_linear_solve, custom_root
from .errors import (
    DerivativeError,
    MemoryCheckError,
    S2SError,
    ShapeMismatchError,
    SourceError,
    TypeMismatchError,
    UnboundAxisError,
    UnsupportedError,
    VerifyError,
)
from .eval_shape import ShapeDtype, eval_shape
from .front import custom_jvp, custom_vjp, defderivative
from .interop.jax_function import jax_function
from .interop.stablehlo import to_stablehlo
from .interop.torch_function import torch_function
from .iterated_map_reduce import NotCompiledWarning, iterated_map_reduce
from .lax import associative_scan, cond, fori_loop, scan, switch, while_loop
from .ops.core.stop_gradient import stop_gradient
from .ops.program.checkpoint import checkpoint
from .runtime.call.malloc import keep_freed_memory
from .runtime.device_arrays import block_until_ready, device_get, device_put
from .runtime.threads.pool import set_threads, threads
from .shards import gather, shard
from .transformed import Lowered, Transformed
from .tree import ravel as ravel_pytree

__version__ = "0.1.0"

__all__ = [
    "Convention",
    "ConventionWarning",
    "DerivativeError",
    "Lowered",
    "MemoryCheckError",
    "NotCompiledWarning",
    "S2SError",
    "ShapeDtype",
    "ShapeMismatchError",
    "SourceError",
    "Transformed",
    "TypeMismatchError",
    "UnboundAxisError",
    "UnsupportedError",
    "VerifyError",
    "associative_scan",
    "block_until_ready",
    "check_grads",
    "checkpoint",
    "cond",
    "conventions",
    "custom_fixed_point",
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "defderivative",
    "device_get",
    "device_put",
    "dump",
    "eval_shape",
    "fori_loop",
    "from_source",
    "gather",
    "grad",
    "hessian",
    "hvp",
    "iterated_map_reduce",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax_function",
    "jit",
    "jvp",
    "keep_freed_memory",
    "lax",
    "linearize",
    "pmap",
    "ravel_pytree",
    "scan",
    "set_threads",
    "shard",
    "source",
    "stages",
    "stop_gradient",
    "switch",
    "threads",
    "to_stablehlo",
    "torch_function",
    "tree",
    "value_and_grad",
    "vectorize",
    "vjp",
    "vmap",
    "while_loop",
]
