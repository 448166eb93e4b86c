"""Every pass, at each place in the tables of the pipeline, changes some program.

A pass that changes none is removed, or gets a program here: what nothing needs cannot be tested.
Whether it changes one is seen in the IR before and after, with values numbered in order.
"""

from __future__ import annotations

import copy
import functools
import sys
import warnings
from pathlib import Path

import corpus
import numpy as np
import pytest

import s2s
from s2s import passes, pipeline
from s2s.back import loop_pipeline
from s2s.back.arrays import strip_mine_batch
from s2s.back.arrays.specialise_lengths import specialise_lengths
from s2s.back.loops import distribute_long
from s2s.runtime.call import loop_program

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parent
sys.path += [str(TESTS / folder) for folder in ("transform/reverse", "back/arrays", "back/loops")]

import test_distribute_long  # noqa: E402
import test_fuse_sweeps  # noqa: E402
import test_hoist_tables  # noqa: E402
import test_split_at_wraparound  # noqa: E402
import test_strip_mine_batch  # noqa: E402
from whole import mechanics_solvers  # noqa: E402

SHARED = """
golden.caught_exception_is_a_branch golden.dataclass_stepped_in_a_loop
golden.root_is_differentiated_by_its_equation golden.checkpointed_function
golden.slope_of_what_is_thrown_away golden.vmap_of_a_matrix_product golden.running_state_in_a_loop
golden.recursion_backwards golden.fourier_transform_backwards
programs.relax programs.gauss_seidel programs.bisection programs.matmul_loops
programs.lotka_volterra programs.soft_edit_distance programs.prefix_sums programs.softmax_rows
programs.hidden_markov programs.lstm programs.convolution programs.call_and_global
compositions.tridiagonal compositions.stacked
cases.bundle cases.convolution cases.logistic cases.newton
constructs.short_circuit_values constructs.short_circuit_guards_an_index forms.np.linalg.lstsq
""".split()

RNG = np.random.default_rng(0)
X, A = np.linspace(0.1, 0.9, 5), RNG.normal(size=(3, 3)) + 3.0 * np.eye(3)


def solved_twice(a, b):
    return np.sum(np.linalg.solve(a, b) ** 2) + np.linalg.slogdet(a)[1]


def of_three_factors(a, b, c):
    return np.sum(np.einsum("ij,jk,ik->k", a, b, c) ** 2)


def made_anew(x, a, n):
    """How long `a` is, a call says."""
    for _ in range(n):
        for _ in range(len(a)):
            a[1:-1] = a[::2] * 0.9
        a = np.full(5, np.cos(x) * a[-3])
    return np.sum(a * a)


def masked_twice(x):
    return np.sum(np.where(x > 0.3, np.where(x > 0.3, 2 * x, 0.0) ** 2, 0.0))


def of_one_lane(x):
    a = np.zeros(3)
    for k in range(3):
        a[k] = x * k
    while a[0] + a[1] + a[2] < 5.0:
        b = np.zeros(3)
        for k in range(3):
            b[k] = a[k] * 1.5 + 0.1
        a = b
    return a[0] + a[1]


def for_kernels(x):
    return np.sum(np.logaddexp(np.sin(x), 1.0) ** 2 * np.outer(x, x))


def nests_for_kernels(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = np.sin(x[i])
    return np.exp(y) * y


OWN = [
    *((f, (test_fuse_sweeps.W, test_fuse_sweeps.V, test_fuse_sweeps.X, test_fuse_sweeps.Y),
       (0, 1, 2, 3))
      for f in (test_fuse_sweeps.backwards_and_from_one, test_fuse_sweeps.decides,
                test_fuse_sweeps.changes_in_place)),
    (test_hoist_tables.of_elements, (test_hoist_tables.X, test_hoist_tables.W), (0, 1)),
    (test_split_at_wraparound.ring, (X, 2), (0,)),
    (test_distribute_long.fitted, test_distribute_long.arguments(10), (0,)),
    (test_strip_mine_batch.padded, (RNG.normal(size=(3, 3, 2, 4)), np.ones(4),
                                    RNG.normal(size=(5, 6, 6, 2)), RNG.normal(size=(5, 4))),
     (0, 1)),
    (solved_twice, (A, A[0]), (0, 1)),
    (of_three_factors, (A, A.T, A), (0, 1, 2)),
    (made_anew, (0.5, X, 3), (0, 1)),
    (masked_twice, (X,), (0,)),
    *((f, (x,), (0,)) for f, x in mechanics_solvers.PROGRAMS if f.__name__ == "conductor"),
]
TABLES = {
    name: table
    for module in (pipeline, loop_pipeline, loop_program)
    for name, table in vars(module).items()
    if isinstance(table, tuple) and table and all(isinstance(x, passes.Pass) for x in table)
}
PLACES = [(name, k) for name, table in TABLES.items() for k in range(len(table))]
# they raise what is to be said of a program, or leave it as it is
CHECKS = {"require_ranks"}


def fingerprint(function):
    """The function, with its values numbered in the order in which they are met."""
    numbers: dict = {}

    def number(x):
        return numbers.setdefault(x, len(numbers)), str(x.type)

    def of_block(block):
        return (
            [*map(number, block.params)],
            [(op.name, [*map(number, op.inputs)], [*map(number, op.outputs)],
              sorted((name, str(x)) for name, x in op.attrs.items()), [*map(of_block, op.blocks)])
             for op in block.ops],
            [*map(number, block.yields)],
        )

    return of_block(function.block), function.required


def lowered(f, args, target="cpu"):
    """Run all passes over `f`."""
    found = s2s.jit(f, target=target).lower(*args)
    if target == "cuda":
        return found.loops
    function = specialise_lengths(pipeline.flattened(found.function))
    return loop_program.LoopProgram(lambda: function, (), False, None).draft


def run_all():
    """Run all programs, and their gradients."""
    shared = [p for p in corpus.programs(0) if p.name.split()[0].partition("(")[0] in SHARED]
    assert len(shared) >= len(SHARED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f, args, wrt in [*((p.function, p.args, p.wrt) for p in shared), *OWN]:
            lowered(f, args)
            result = f(*copy.deepcopy(args))
            if wrt and np.ndim(result) == 0 and not isinstance(result, tuple):
                lowered(s2s.value_and_grad(f, wrt), args)
        lowered(for_kernels, (X,), "cuda")
        lowered(nests_for_kernels, (X,), "cuda")
        lowered(s2s.vmap(s2s.grad(of_one_lane)), (X,), "cuda")


@functools.cache
def changed() -> set[tuple[str, int]]:
    """The places of the tables at which a pass has changed some program."""
    found = set()

    def watched(place, run):
        @functools.wraps(run)
        def watch(function, *args):
            before = fingerprint(function) if place not in found else None
            function = run(function, *args)
            if before is not None and fingerprint(function) != before:
                found.add(place)
            return function

        return watch

    with pytest.MonkeyPatch.context() as patch:
        # few statements are a long loop, and few members a large batch
        patch.setattr(distribute_long, "MANY", 6)
        patch.setattr(distribute_long, "PIECE", 4)
        patch.setattr(strip_mine_batch, "TARGET", 1 << 12)
        patch.setattr(strip_mine_batch, "FEW", 0)
        kept = {(name, k): TABLES[name][k].run for name, k in PLACES}
        try:
            for name, k in PLACES:
                object.__setattr__(TABLES[name][k], "run", watched((name, k), kept[name, k]))
            run_all()
        finally:
            for name, k in PLACES:
                object.__setattr__(TABLES[name][k], "run", kept[name, k])
    return found


@pytest.mark.parametrize("place", PLACES, ids=lambda p: f"{p[0]}-{p[1]}-{TABLES[p[0]][p[1]].name}")
def test_a_pass_changes_some_program(place):
    name, k = place
    is_check = TABLES[name][k].name in CHECKS
    assert (place in changed()) != is_check, (
        f"{TABLES[name][k].name} changes " + ("a program, and is said to be a check" if is_check
        else "no program of this file: remove it from the table, or add a program that needs it"))
