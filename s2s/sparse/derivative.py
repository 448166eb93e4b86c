"""Sparse Jacobians (`SparseJacobian`): the pattern of a program, its colours, one sweep for each
colour, and the entries read from the sweeps.

    pattern     which result depends on which input, found by a run of the program of one sweep
                (pattern.py)
    colours     of the columns, or of the rows where these need fewer; of a Hessian, of both at
                once (colouring.py)
    sweeps      one call of the batched tangents, or cotangents, of the program: a seed for each
                colour (derive/batched_seeds.py)
    entries     each stands alone somewhere in what the sweeps return

A Hessian is the Jacobian of the program that computes the gradient.  Second derivatives could also
be followed through the function itself, as pairs of inputs that meet in a product (Walther 2008),
which is finer where a gradient cancels; but the gradient is there already, and what it says is
right for every op and every rule.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from types import MethodType

import numpy as np

from .. import pipeline
from ..call.argnums import as_method, name_of, numbers, resolve_argnums
from ..call.flatten import spread
from ..errors import DerivativeError, S2SError, TypeMismatchError, UnsupportedError
from ..front import definition_line
from ..ir.graph import Block, Function, walk
from ..ir.types import Static
from ..lazy_import import later
from ..ops.program.custom_rules import is_ruled
from ..persist.pickled_sources import place_of
from ..specialisation import normalised
from ..transformed import Transformed
from .colouring import columns, symmetric
from .leaves import Leaves, Structure, join_columns, places, split_columns
from .pattern import Pattern, pattern_of, program

sparse = later("scipy.sparse")
KEPT = 8  # the most plans to keep, for arguments of different lengths


@dataclass
class Plan:
    """The plan of a sparse derivative for arguments like those of a call.

    `pattern` is a Boolean csr_array, `colours` the colour of each column ("columns"), row ("rows")
    or both ("symmetric"), -1 where there is no entry.  `reusable` says that it holds for all
    arguments with the same lengths and integers.  Entry k of the pattern is `compressed[sweep[k],
    place[k]]`.
    """

    pattern: sparse.csr_array
    shapes: list[tuple[int, ...]]  # of the results, in the order of generated code
    reusable: bool
    mode: str
    colours: np.ndarray
    sweep: np.ndarray = field(repr=False)
    place: np.ndarray = field(repr=False)

    @functools.cached_property
    def sweeps(self) -> int:
        """The number of colours."""
        return int(self.colours.max(initial=-1)) + 1

    @functools.cached_property
    def seeds(self) -> np.ndarray:
        """A row for each colour: 1 where something has it."""
        found = np.zeros((self.sweeps, self.colours.size))
        (coloured,) = np.nonzero(self.colours >= 0)
        found[self.colours[coloured], coloured] = 1.0
        return found

    def filled(self, compressed: np.ndarray) -> sparse.csr_array:
        """Assemble the derivative from the results of the sweeps."""
        data = compressed[self.sweep, self.place]
        return sparse.csr_array((data, self.pattern.indices.copy(), self.pattern.indptr.copy()),
                                shape=self.pattern.shape)

    def __str__(self) -> str:
        m, n = self.pattern.shape
        kept = ("kept for the next call" if self.reusable else "found again at each call, as "
                "floats decide it")
        return (f"{m} x {n}, {self.pattern.nnz} entries, {self.sweeps} sweeps over {self.mode}; "
                f"{kept}")


def make_plan(matrix: sparse.csr_array, shapes: list[tuple[int, ...]], reusable: bool,
              modes: Collection[str]) -> Plan:
    """Colour a pattern, and locate each entry in the results of the sweeps.

    `modes` are what there is to choose from: "symmetric", or "columns", "rows" or both.
    """
    matrix.sort_indices()
    row, column = sparse.coo_array(matrix).coords
    mode = colours = None
    if "symmetric" in modes:
        mode, colours = "symmetric", symmetric(matrix)
        _, inverse, counts = np.unique(row * (colours.max(initial=0) + 1) + colours[column],
                                       return_inverse=True, return_counts=True)
        alone = (counts == 1)[inverse]  # alone in its row with its colour
        mirror = sparse.csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr),
                                  shape=matrix.shape).T.tocsr().data
        # an entry and its mirror image are taken from one place
        first = np.where(row <= column, alone, alone[mirror])
        swapped = first != (row <= column)
        row, column = np.where(swapped, column, row), np.where(swapped, row, column)
    elif "columns" in modes:
        mode, colours = "columns", columns(matrix)
    if "rows" in modes and (mode is None or most_entries(matrix) <= colours.max(initial=-1)):
        other = columns(sparse.csr_array(matrix.T))
        if mode is None or other.max(initial=-1) < colours.max(initial=-1):
            mode, colours, row, column = "rows", other, column, row
    return Plan(matrix, shapes, reusable, mode, colours, colours[column], row)


def most_entries(matrix: sparse.csr_array) -> int:
    """Return the most entries in a column: the rows need as many colours."""
    return int(np.diff(sparse.csc_array(matrix).indptr).max(initial=0))


def calls_custom_rule(function: Function, seen: frozenset[Function] = frozenset()) -> bool:
    """Test whether a function calls one with a custom derivative rule: then the result need not be
    symmetric.
    """
    return any(is_ruled(callee) or body not in seen and calls_custom_rule(body, seen | {body})
               for op in walk(function.block) if op.name == "call"
               for callee in [op.attrs["callee"]] for body in [callee.function_for(op.inputs)])


def with_mirror_images(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return the entries of a matrix and of its transpose."""
    return sparse.csr_array(matrix + matrix.T)


class SparseJacobian:
    """A callable that returns the Jacobian of `inner` as a scipy.sparse.csr_array, or with a tuple
    of `argnums` a tuple of such.

    Rows are the elements of the result, columns those of the argument; of arrays of more axes, and
    of containers, in the order of `tree.leaves` and then of `ravel`.  With `hessian`, of the
    gradient of `inner`.  Entries of the pattern that happen to be 0.0 are stored, so that all calls
    return one structure.  `options` are those of `jit`, None for the interpreter.
    """

    def __init__(self, inner: Callable, argnums, hessian: bool = False,
                 options: dict | None = None):
        functools.update_wrapper(self, inner, updated=())
        self.inner, self.argnums, self.hessian, self.options = (
            inner, numbers(argnums), hessian, options)
        self.value = Transformed("value", inner)
        self.function = (Transformed("grad", inner, {"argnums": self.argnums, "has_aux": False})
                         if hessian else self.value)
        self.structures: dict[Function, Structure] = {}
        self.plans: dict[tuple, Plan] = {}
        self.method: SparseJacobian | None = None  # this as a bound method
        # sweeps by kind, arguments and whether they are batched
        self.sweeps: dict[tuple, Transformed] = {}
        self.used: dict[tuple, Transformed] = {}  # the callables of these
        self.batched = True  # False once the program has turned out not to be batchable
        # programs of one sweep, for finding the pattern
        self.programs: dict[Function, Function] = {}
        self.last: Transformed | None = None  # the sweeps of the last call

    def jitted(self, options: dict) -> SparseJacobian:
        """Return a copy of this with its sweeps compiled, for `s2s.jit`."""
        return SparseJacobian(self.inner, self.argnums, self.hessian, options)

    def __call__(self, *args, **keywords):
        args = self.bound(args, keywords)
        leaves = self.leaves(args)
        plan = self.planned(leaves, args)
        matrix = plan.filled(self.swept(plan, leaves, args))
        if not isinstance(self.argnums, tuple):
            return matrix
        bounds = np.cumsum([0, *leaves.sizes])
        if not self.hessian:
            return tuple(matrix[:, a:b] for a, b in zip(bounds, bounds[1:]))
        return tuple(tuple(matrix[a:b, c:d] for c, d in zip(bounds, bounds[1:]))
                     for a, b in zip(bounds, bounds[1:]))

    # ----------------------------------------------------------------------------------- inspection

    def plan(self, *args, **keywords) -> Plan:
        """Return the plan for these arguments; printed, it is one line."""
        args = self.bound(args, keywords)
        return self.planned(self.leaves(args), args)

    def pattern(self, *args, **keywords) -> sparse.csr_array:
        """Return which elements of the result may depend on which of the arguments: a Boolean
        csr_array.
        """
        return self.plan(*args, **keywords).pattern

    def colours(self, *args, **keywords) -> np.ndarray:
        """Return the colour of each column, or row: those of one colour share a sweep."""
        return self.plan(*args, **keywords).colours

    @property
    def source(self) -> str:
        """The generated Python of the sweeps of the last call."""
        if self.last is None:
            raise TypeMismatchError(f"the source of the sparse derivative of {name_of(self.inner)} "
                                    "before any call", None, "call it first: the arguments decide "
                                    "which sweeps it takes")
        return self.last.source

    # ------------------------------------------------------------------------------------ computing

    def bound(self, args: tuple, keywords: dict) -> tuple:
        """Return the arguments in the order of the parameters."""
        return (args if not keywords and len(args) == self.function.arity
                else self.function.bound(args, keywords))

    def leaves(self, args: tuple) -> Leaves:
        """Flatten the arguments of a call."""
        types = self.function.types_of(args)
        function = self.function.function_for_types(types)
        if function not in self.structures:
            found = resolve_argnums(self.argnums, self.inner, types)
            self.structures[function] = Structure(function, found if isinstance(found, tuple)
                                                  else (found,))
        captured = [normalised(get()) for get in function.captures.values()]
        return Leaves(self.structures[function], [*map(normalised, args)], captured)

    def planned(self, leaves: Leaves, args: tuple) -> Plan:
        """Return the plan for these arguments: the cached one, or a new one."""
        plan = self.plans.get(leaves.key)
        if plan is None:
            plan = self.new_plan(leaves, args)
            if plan.reusable:
                while len(self.plans) >= KEPT:
                    del self.plans[next(iter(self.plans))]
                self.plans[leaves.key] = plan
        return plan

    def new_plan(self, leaves: Leaves, args: tuple) -> Plan:
        """Compute and colour the pattern of one sweep with these arguments."""
        try:
            pattern = self.pattern_of_sweep("columns", leaves, args, leaves.inputs)
        except DerivativeError:  # a rule for reverse mode alone
            if self.hessian:
                raise
            shapes = list(map(np.shape, leaves.of_result(self.function(*args))))
            pattern = self.pattern_of_sweep("rows", leaves, args,
                                            [np.zeros(shape) for shape in shapes])
            matrix = sparse.csr_array(pattern.matrix.T)
            matrix = matrix[places(shapes, leaves.structure.rows)][
                :, places(list(map(np.shape, leaves.inputs)), leaves.structure.columns)]
            return make_plan(sparse.csr_array(matrix), shapes, pattern.holds, {"rows"})
        shapes = pattern.shapes
        matrix = pattern.matrix[places(shapes, leaves.structure.rows)][
            :, places(list(map(np.shape, leaves.inputs)), leaves.structure.columns)]
        if (self.hessian and not calls_custom_rule(
                self.value.function_for_types(self.value.types_of(args)))):
            return make_plan(with_mirror_images(matrix), shapes, pattern.holds, {"symmetric"})
        plan = make_plan(matrix, shapes, pattern.holds, {"columns", "rows"})
        if plan.mode == "rows":
            try:
                self.one_sweep("rows", leaves, args, [np.zeros(shape) for shape in shapes])
            except DerivativeError:  # a rule for forward mode alone
                return make_plan(matrix, shapes, pattern.holds, {"columns"})
        return plan

    def one_sweep(self, kind: str, leaves: Leaves, args: tuple, seeds: Sequence) -> Function:
        """Return the program of one sweep, for a seed like `seeds`."""
        single = self.sweep(kind, leaves.structure.argnums, len(args), lanes=False)
        return single.function_for_types(single.types_of((*args, *seeds)))

    def pattern_of_sweep(self, kind: str, leaves: Leaves, args: tuple, seeds: Sequence) -> Pattern:
        """Compute the pattern of the program of one sweep: which of its results depend on which
        seed.
        """
        function = self.one_sweep(kind, leaves, args, seeds)
        if function not in self.programs:
            flat = pipeline.flatten_calls(spread(function))
            params = [p for p in flat.params if not isinstance(p.type, Static)]
            self.programs[function] = program(
                flat.remade(Block(params, flat.block.ops, flat.block.yields)))
        values = [*leaves.values, *seeds, *leaves.captured]
        try:
            return pattern_of(self.programs[function], values,
                              range(len(leaves.values), len(leaves.values) + len(seeds)))
        except S2SError:
            raise
        except Exception:
            self.function(*args)  # raises as the program does, and shows where
            raise

    # ------------------------------------------------------------------------------------- sweeping

    def swept(self, plan: Plan, leaves: Leaves, args: tuple) -> np.ndarray:
        """Run the sweeps; return a row for each colour."""
        if not plan.sweeps:
            return np.zeros((0, 0), np.result_type(*leaves.inputs) if leaves.inputs else float)
        if plan.mode == "rows":
            seeds = split_columns(plan.seeds, plan.shapes, leaves.structure.rows)
            seeds = [seed.astype(type.dtype, copy=False)
                     for seed, type in zip(seeds, leaves.structure.results)]
            return join_columns(self.seeded("rows", leaves.structure.argnums, args, seeds),
                                plan.sweeps, leaves.structure.columns)
        seeds = split_columns(plan.seeds, list(map(np.shape, leaves.inputs)),
                              leaves.structure.columns)
        seeds = [seed.astype(np.result_type(x), copy=False)
                 for seed, x in zip(seeds, leaves.inputs)]
        return join_columns(self.seeded("columns", leaves.structure.argnums, args, seeds),
                            plan.sweeps, leaves.structure.rows)

    def seeded(self, kind: str, argnums: tuple[int, ...], args: tuple,
               seeds: list[np.ndarray]) -> Sequence[np.ndarray]:
        """Run the sweeps for these seeds: in one call, or, of a program that cannot be batched, in
        a call for each.
        """
        if self.batched:
            try:
                return self.native(kind, argnums, len(args), True)(*args, *seeds)
            except UnsupportedError:
                self.batched = False
        one = self.native(kind, argnums, len(args), False)
        each = [one(*args, *(x[()] for x in seed)) for seed in zip(*seeds)]
        return [np.stack(found) for found in zip(*each)]

    def sweep(self, kind: str, argnums: tuple[int, ...], count: int, lanes: bool) -> Transformed:
        """Run one sweep, or many side by side."""
        key = kind, argnums, count, lanes
        if key not in self.sweeps:
            self.sweeps[key] = Transformed(kind, self.function,
                                           {"argnums": argnums, "count": count, "lanes": lanes})
        return self.sweeps[key]

    def native(self, *key) -> Transformed:
        """Return a sweep, compiled if requested."""
        if key not in self.used:
            made = self.sweep(*key)
            self.used[key] = (made if self.options is None
                              else Transformed("jit", made, self.options))
        self.last = self.used[key]
        return self.last

    # ---------------------------------------------------------------------------- function protocol

    @property
    def function_for(self):
        """Refuse to be transformed or called inside a program: this is no program of its own."""
        what = "Hessian" if self.hessian else "Jacobian"
        raise UnsupportedError(f"a sparse {what} of {name_of(self.inner)}, transformed or inside a "
                               "program", definition_line(self.function.base),
                               "leave sparse=True out, " "or transform first and ask for it last, "
                               "e.g. " "s2s.jacobian(s2s.grad(f), sparse=True)")

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        if self.method is None:
            inner = self.inner.as_method() if isinstance(self.inner, Transformed) else self.inner
            self.method = SparseJacobian(inner, as_method(self.argnums), self.hessian, self.options)
        return MethodType(self.method, instance)

    def __repr__(self) -> str:
        return (f"<s2s sparse {'Hessian' if self.hessian else 'Jacobian'} of "
                f"{name_of(self.inner)!r}>")

    def __reduce__(self):
        return place_of(self) or (SparseJacobian,
                                  (self.inner, self.argnums, self.hessian, self.options))
