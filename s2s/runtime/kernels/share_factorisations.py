"""Common subexpression elimination for factorisations: linear algebra on the same matrix shares its
factors, triangles are not factored.

    t = np.linalg.solve(A, b)                   lu, p = lapack_factors(A)
    b_bar = np.linalg.solve(A.T, t_bar)         t = lapack_solution(lu, p, b)
    d = np.linalg.slogdet(A)[1]       becomes   b_bar = lapack_solution_of_transposed(lu, p, t_bar)
                                                d = lapack_log(lu, p)
    L = np.linalg.cholesky(K)                   L = lapack_cholesky(K)
    c = np.linalg.solve(L.T, e)                 c = lapack_solution_of_upper(L.T, e)

The derivative of every solve is another system with the same matrix or its transpose, so sharing
halves the time of a gradient; a triangular solve takes a number of operations proportional to the
size of the matrix, and has smaller errors. `.loops` and exported files keep NumPy's calls. A matrix
is factored at its first use, and the factors are reused by later ops in the same block or inside.
The factorisation of a loop-invariant matrix is hoisted: an implicit scheme of 20 steps, L u' = R u,
factored L in each of them, and again in each step of its gradient. If the loop has no trip, the
hoisted factorisation is wasted, and its error is not the program's: then the interpreted form
decides (runtime/call/native_function.py, Note [Where an error came from]).

Considered: an op for the factors in the differentiated program, which every reader of the source
would meet; SciPy has it, NumPy has not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...ir.graph import Block, Function, Op, Value
from ...ir.types import Array, Scalar
from ...ops.core.record import Record
from ...ops.linalg import determinant, solve
from ...ops.program.recursive_callee import whole_program
from .lapack import (
    lapack_cholesky,
    lapack_cofactors,
    lapack_determinant,
    lapack_factors,
    lapack_inverse,
    lapack_inverse_or_nan,
    lapack_is_indefinite,
    lapack_is_singular,
    lapack_log,
    lapack_sign,
    lapack_solution,
    lapack_solution_of_lower,
    lapack_solution_of_transposed,
    lapack_solution_of_upper,
)

DTYPES = ("float64", "float32", "complex128", "complex64")
# op -> the kernel that computes it
FROM_FACTORS = {solve.inv: lapack_inverse, determinant.inverse: lapack_inverse_or_nan,
                solve.singular: lapack_is_singular, determinant.det: lapack_determinant,
                determinant.sign_of_det: lapack_sign, determinant.log_of_det: lapack_log}
FROM_MATRIX = {solve.cholesky: lapack_cholesky, solve.indefinite: lapack_is_indefinite}
# ops with triangular results, and the triangle
TRIANGULAR = {("lapack_cholesky", 0): "lower", ("numpy_qr", 1): "upper"}
FUNCTIONS = (lapack_factors, lapack_solution, lapack_solution_of_transposed,
             lapack_solution_of_lower, lapack_solution_of_upper, lapack_cofactors,
             *FROM_FACTORS.values(), *FROM_MATRIX.values())


def _calls(function: Callable) -> Record:
    return Record(function.__name__, evaluate=function, infer=lambda *xs: [],
                  syntax=lambda *xs: ast.Call(ast.Name(function.__name__, ast.Load()), list(xs),
                                              []))


RECORDS = {function: _calls(function) for function in FUNCTIONS}


@dataclass
class Scope:
    """A block being rewritten: its own values, the known factors of matrices, and the ops emitted
    so far.
    """

    block: Block
    repeats: bool  # whether it is a loop body
    known: dict[Value, list[Value]] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)

    def __post_init__(self):
        self.own = {*self.block.params, *(y for op in self.block.ops for y in op.outputs)}


def share_factorisations(lowered: Function) -> Function:
    """Call LAPACK for the linear algebra of `lowered`, a loop form, with shared factors, in place.
    """
    for each in whole_program(lowered):
        with_factors(each.block)
    return lowered


def with_factors(block: Block, around: Sequence[Scope] = (), repeats: bool = False) -> None:
    """Rewrite the ops in `block` as calls of lapack.py; `around` are the enclosing scopes,
    outermost first.
    """
    scopes = [*around, Scope(block, repeats)]
    ops = scopes[-1].ops
    for op in block.ops:
        for inner in op.blocks:
            with_factors(inner, scopes, op.name in ("for", "while"))
        if op.record in FROM_MATRIX and is_plain(op):
            op.record = RECORDS[FROM_MATRIX[op.record]]
        elif op.record in FROM_FACTORS and is_plain(op):
            op.inputs = factors(op, op.inputs[-1], scopes)
            op.record = RECORDS[FROM_FACTORS[op.record]]
        elif op.name == "cofactors" and is_plain(op):
            det, a = op.inputs
            op.inputs = [det, *factors(op, a, scopes), a]
            op.record = RECORDS[lapack_cofactors]
        elif op.name == "solve" and is_plain(op):
            a, b = op.inputs
            base, is_transposed = untransposed(a)
            triangle = TRIANGULAR.get((base.op.name, base.op.outputs.index(base))
                                      if base.op is not None else None)
            if triangle is not None:
                is_lower = (triangle == "lower") != is_transposed
                op.record = RECORDS[lapack_solution_of_lower if is_lower
                                    else lapack_solution_of_upper]
            else:
                op.inputs = [*factors(op, base, scopes), b]
                op.record = RECORDS[lapack_solution_of_transposed if is_transposed
                                    else lapack_solution]
        ops.append(op)
    block.ops = ops


def is_plain(op: Op) -> bool:
    """Whether the operands are one matrix (not a stack), of one dtype that lapack.py supports."""
    # beside the logarithm of a determinant
    types = [x.type for x in op.inputs if not isinstance(x.type, Scalar)]
    return (all(isinstance(type, Array) and len(type.dims) <= 2 for type in types)
            and len(types[0].dims) == 2 and types[0].dtype in DTYPES
            and {type.dtype for type in types} == {types[0].dtype})


def untransposed(a: Value) -> tuple[Value, bool]:
    """The matrix that `a` is the transpose of, or `a`, and whether it is a transpose."""
    is_transposed = False
    while a.op is not None and a.op.name == "transpose":
        a, is_transposed = a.op.inputs[0], not is_transposed
    return a, is_transposed


def factors(op: Op, a: Value, scopes: Sequence[Scope]) -> Sequence[Value]:
    """The factors of `a`: known ones, or new ones before `op`, hoisted out of loops that do not
    compute `a`.
    """
    found = next((scope.known[a] for scope in reversed(scopes) if a in scope.known), None)
    if found is None:
        home = len(scopes) - 1
        while scopes[home].repeats and a not in scopes[home].own:
            home -= 1
        made = Op(RECORDS[lapack_factors], [a], {}, [], [], op.line)
        found = scopes[home].known[a] = made.outputs
        found += [Value(a.type, "", made), Value(Array("int32", a.type.dims[:1]), "", made)]
        scopes[home].ops.append(made)
    return list(found)
