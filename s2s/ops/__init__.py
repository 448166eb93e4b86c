"""The operations of the IR: one record each, in tables by family."""

from .arrays import (  # noqa: F401
    argument_checks,
    axes,
    composite,
    concatenate,
    create,
    cumulative,
    dct,
    einsum,
    fft,
    finite,
    index,
    insert_delete,
    nan_reductions,
    norms,
    quantiles,
    reduce,
    repeat,
    sampled_functions,
    search,
    selection,
    statistics,
)
from .core import cast, control, copy, elementwise, record, shape, stop_gradient  # noqa: F401
from .linalg import decompositions, determinant, eig, matrix_equations, matrix_function, solve  # noqa: F401
from .math import cmath, distance, python_sum, special, ufunc_arguments  # noqa: F401
from .program import (  # noqa: F401
    clock,
    effects,
    list_arrays,
    list_cotangents,
    list_ops,
    list_queries,
    list_slices,
    list_sums,
    opaque_call,
    random,
)
