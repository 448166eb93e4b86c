"""Report the lines of a program at which a convention decided the derivative, in one call.

    >>> def f(x):
    ...     return np.abs(x) + max(x, 0.0)
    >>> for found in s2s.conventions(s2s.grad(f), 0.0):
    ...     print(found)

The function that is differentiated is run once more, op by op, on the arguments of the call
(ir/interpret.py).  For each op on a path from the differentiated arguments to the result, its
record says at which operands the derivative does not exist (ops/core/kinks.py), and is applied to
the actual operands.  A result that depends on an argument, but on no path differentiably, has
derivative 0 by convention, too: a root found by bisection.  Nothing is reported where differences
of the program say that its derivative is the one that was taken (difference_quotients.py), nor what
holds beside the arguments as well, as the distance 0 of a point from itself.

Considered: to let generated code report it itself.  It would have to be compiled anew, and every
simplification would have to keep the reports.  This runs the program as it is before it is
simplified for a derivative, so every spelling, mode and compiled form has one answer.  It costs a
slow run, which only its callers pay.
"""

from __future__ import annotations

import contextlib
import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from . import tree
from .analysis.activity import active_values, influenced_values, varied_in_conditions
from .call.argnums import members_of, resolve_argnums
from .derive import assemble
from .derive.vectorized import stacked_arguments
from .difference_quotients import (
    directions,
    inexact_leaves,
    is_confirmed,
    moved,
    refutation,
    tree_copied,
)
from .errors import Line, TypeMismatchError, UnboundAxisError, UnsupportedError
from .ir.graph import Block, Function, Op, Value, walk, whole
from .ir.interpret import interpret
from .ir.reemit import clone
from .ir.types import carries_derivative, is_inexact
from .ops.core.kinks import Kink
from .ops.core.record import dtype_of
from .ops.program.custom_rules import is_ruled
from .ops.program.outside_writes import write_outside
from .specialisation import members_of_axes, normalised, type_of
from .transform.stabilise import stabilised

FEW = 4  # the most numbers of an array to show
THROUGH_COMPARISONS = ("the result depends on numbers that a loop compares, as in a bisection, and "
                       "no derivative passes through comparisons: it is not that of the program")
ONLY_THROUGH_CHOICES = ("the result depends on {} only through comparisons and steps: the "
                        "derivative is 0")


class ConventionWarning(UserWarning):
    """A derivative was taken where a convention decided it."""


@dataclass(frozen=True)
class Convention:
    """One place where the derivative does not exist, and the value chosen there.

    `line` is the user's, None where nothing is known of it; `values` the numbers there, as text;
    `times` how often it was met, in elements of arrays and trips of loops; `order` that of the
    derivative, 2 for one of a gradient; `lane` where under `vmap` it was met first.
    """

    what: str
    line: Line | None
    values: str
    times: int = 1
    order: int = 1
    lane: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = []
        if self.line is not None:
            parts.append(f"{self.line.source.filename}, line {self.line.number}, in "
                         f"{self.line.source.name}")
            parts.append(self.line.show())
        often = f", {self.times} times" if self.times > 1 else ""
        order = (", in the second derivative" if self.order == 2
                 else f", in derivative {self.order}" if self.order > 2 else "")
        lane = f", first in lane {', '.join(map(str, self.lane))}" if self.lane else ""
        parts.append(f"{self.what} ({self.values}{often}{lane}{order})")
        return "\n".join(filter(None, parts))


@dataclass
class Report:
    """The findings of one call, by line and kind."""

    found: dict[tuple, Convention] = field(default_factory=dict)
    order: int = 1
    lane: tuple[int, ...] = ()

    def add(self, what: str, line: Line | None, values: str, times: int) -> None:
        key = what, line and (line.source, line.number, line.column), self.order
        before = self.found.get(key)
        times += before.times if before else 0
        first = before or Convention(what, line, values, times, self.order, self.lane)
        self.found[key] = Convention(what, line, first.values, times, self.order, first.lane)


def conventions(t, /, *args, **kwargs) -> list[Convention]:
    """Return the places at which the derivative `t(*args, **kwargs)` was decided by a convention,
    in the order in which they were met.

    `t` is `grad` of a function, or any other transformation that holds a derivative, such as
    `jit(vmap(grad(f)))`; `args` and `kwargs` are the arguments of the call.  Each `Convention` has
    the user's `line`, `what` was chosen, the `values` there, and prints as text.  An empty list
    means that the derivative is that of calculus, as far as the ops know.  Of a program in which a
    convention decides, others that do not may be reported, too.  The program is run again, without
    its output; its exceptions are raised.

    Raises TypeMismatchError where `t` is no derivative, UnsupportedError where it is one in lanes
    that meet, and whatever a call of `t` raises while code is generated.
    """
    report = Report()
    if getattr(t, "kind", None) is not None and (kwargs or len(args) != t.arity):
        t = t.named_by(kwargs)
        args = t.bound(args, kwargs)
    try:
        found = list(run_derivatives(t, args, report))
    except UnboundAxisError as error:
        raise UnsupportedError("conventions of a derivative in lanes that meet in collectives",
                               error.line, "ask for those of grad(vmap(f)), of all lanes together"
                               ) from None
    if not found:
        raise TypeMismatchError(f"conventions of {getattr(t, '__name__', t)}, which is no "
                                "derivative", None, "give it one, such as s2s.grad(f), and its "
                                "arguments")
    return list(report.found.values())


def warn_of(t, args: Sequence) -> None:
    """Warn of each convention that decided `t(*args)`, where that holds a derivative."""
    report = Report()
    try:
        list(run_derivatives(t, args, report))
    except UnboundAxisError:  # lanes that meet do not run one by one
        return
    for each in report.found.values():
        warnings.warn(str(each), ConventionWarning, stacklevel=3)


def run_derivatives(t, args: Sequence, report: Report) -> Iterator[str]:
    """Run what `t` differentiates, and derivatives nested inside that; yield the kinds of
    derivatives.
    """
    kind, inner = getattr(t, "kind", None), getattr(t, "inner", None)
    if kind is None:
        return
    if kind in ("vmap", "pmap", "vectorize"):
        for lane, of_lane in lanes(t, args):
            before, report.lane = report.lane, (*report.lane, *lane)
            found = list(run_derivatives(inner, of_lane, report))
            report.lane = before
            yield from found
            if not found:
                return
        return
    primals = args[:PRIMALS[kind](t, args)] if kind in PRIMALS else args
    inside = list(run_derivatives(inner, primals, report))
    yield from inside
    if kind not in PRIMALS:
        return
    function = t.inner_function(tuple(t.types_of(args))[:len(primals)])
    report.order = len(inside) + 1
    wrt = differentiated(t, function, primals)
    assemble.check_arguments(function, wrt, t.options.get("allow_int", False), t.kind)
    has_aux = t.options.get("has_aux", False)
    run(function, wrt, primals, report, has_aux)
    yield kind
    if kind in ("hessian", "hvp"):
        report.order += 1
        run(assemble.gradient(function, tuple(wrt), has_aux), wrt, primals, report, has_aux)
        yield kind


def half(t, args: Sequence) -> int:
    return len(args) // 2


def all_of(t, args: Sequence) -> int:
    return len(args)


# kind of derivative -> how many of its arguments are those of the function
PRIMALS: dict[str, Callable] = {
    **dict.fromkeys(("grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian",
                     "reverse half", "forward half"), all_of),
    **dict.fromkeys(("jvp", "hvp", "linearize"), half),
    "vjp": lambda t, args: len(args) - 1,
    **dict.fromkeys(("columns", "rows"), lambda t, args: t.options["count"]),
}


def differentiated(t, function: Function, args: Sequence) -> list[int]:
    """Return the arguments in which `t` differentiates."""
    if "argnums" in t.options:
        argnums = resolve_argnums(t.options["argnums"], t.inner,
                                  [p.type for p in function.params[:len(args)]])
        return [argnums] if isinstance(argnums, int) else list(argnums)
    return [k for k, p in enumerate(function.params[:len(args)]) if carries_derivative(p.type)]


def lanes(t, args: Sequence) -> Iterator[tuple]:
    """Yield the place of each lane of a `vmap`, or in `vectorize`, and its arguments."""
    if t.kind == "vectorize":
        yield from stacked_arguments(t, args, t.types_of(args))
        return
    given = t.options["in_axes"]
    axes = [given] * len(args) if isinstance(given,
                                             int) else [*given, *[None] * (len(args) - len(given))]
    axes = [None if isinstance(axis, int) and not _has_lanes(x) else axis
            for x, axis in zip(args, axes)]
    counts = [n for x, axis in zip(args, axes) for n in _counts(x, axis)]
    for lane in range(min(counts, default=0)):
        yield (lane,), [_lane(x, axis, lane) for x, axis in zip(args, axes)]


def _has_lanes(x) -> bool:
    return any(np.ndim(leaf) > 0 for leaf in tree.leaves(x)
               if isinstance(leaf, (np.ndarray, np.generic)))


def _members(x, axes) -> list:
    """Return the axis of each leaf of `x`."""
    if axes is None or isinstance(axes, int):
        return [axes] * len(tree.leaves(x))
    inner = members_of_axes(type_of(x, "an argument"), axes, "an argument")
    return [a for part, axis in zip(members_of(x), inner) for a in _members(part, axis)]


def _counts(x, axes) -> list[int]:
    return [np.shape(leaf)[axis] for leaf, axis in zip(tree.leaves(x), _members(x, axes))
            if axis is not None and np.ndim(leaf)]


def _lane(x, axes, lane: int):
    leaves, structure = tree.flatten(x)
    taken = [leaf if axis is None or not np.ndim(leaf) else np.take(leaf, lane, axis)
             for leaf, axis in zip(leaves, _members(x, axes))]
    return tree.unflatten(structure, taken)


# ---------------------------------------------------------------------------------- observing a run


def run(function: Function, wrt: Sequence[int], args: Sequence, report: Report,
        has_aux: bool = False) -> None:
    """Run `function` on `args` and add to `report` the conventions that its ops meet on the way to
    its results, with `has_aux` to the first.

    What holds all around is none, as a tie of a number with itself: where something is met, two
    more runs on either side of the arguments show whether it is met there, too.  And none decides
    where differences of the program say the same.
    """
    before = function = plain_function(function)
    function = stabilised(function, wrt)
    roots = [function.params[k] for k in wrt]
    counted = [0] if has_aux else [*range(len(function.results))]
    told = through_choices(function, roots, counted, args, report)
    on_the_way = varied_in_conditions(function, roots), active_values(function, roots, counted)
    values = [*map(normalised, args), *(get() for get in function.captures.values())]
    known = len(report.found)
    met = observe(function, on_the_way, values)
    if met.found and not is_confirmed(before, tuple(wrt), values, counted):
        around = [observe(function, on_the_way, beside(values, wrt, side), outside=True)
                  for side in (1, -1)]
        observe(function, on_the_way, values,
                lambda place, *hit: add_to(report, *hit, lasting(place, hit[-1], around)))
    if (not told and len(report.found) == known
            and (line := compared_in_loop(function, on_the_way[0], set())) is not None):
        through_comparisons(line, refutation(before, tuple(wrt), values, counted), report)


@dataclass
class Met:
    """The kinks of one run: how often each was tested, and where it was met in which test."""

    tests: dict[tuple[Op, int], int] = field(default_factory=dict)
    found: dict[tuple[Op, int, int], np.ndarray] = field(default_factory=dict)


def observe(function: Function, on_the_way: tuple[set[Value], set[Value]], values: Sequence,
            add: Callable | None = None, outside: bool = False) -> Met:
    """Run `function` on `values` and return the kinks met `on_the_way`, between varied and active
    values; call `add` at each.

    Where a run may be `outside` the domain of the program, an exception ends it.
    """
    met = Met()

    def meet(op: Op, k: int, inputs: list, where: np.ndarray) -> None:
        n = met.tests[op, k] = met.tests.get((op, k), -1) + 1
        if where.any():
            met.found[op, k, n] = where
            if add is not None:
                add((op, k, n), op, op.record.kinks[k], inputs, where)

    watcher = Watcher(meet, *map(set, on_the_way))
    with contextlib.redirect_stdout(None), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            interpret(function, *map(tree_copied, values), watch=watcher.watch, enter=watcher.enter)
        except Exception:
            if not outside:
                raise
    return met


def add_to(report: Report, op: Op, kink: Kink, inputs: list, where: np.ndarray,
           all_around: np.ndarray | bool) -> None:
    """Add what an op met to `report`, but for elements at which it holds all around."""
    where = where if kink.always else where & ~np.asarray(all_around)
    if where.any():
        report.add(kink.what, op.line, describe_operands(op, kink, inputs, where),
                   int(np.sum(where)))


def lasting(place: tuple, where: np.ndarray, around: Sequence[Met]) -> np.ndarray | bool:
    """Return at which elements the test numbered `place` is met in the runs beside, too: in all of
    those that come to it, and in one at least.
    """
    op, k, n = place
    tested = [met for met in around if met.tests.get((op, k), -1) >= n]
    masks = [met.found.get(place, np.zeros_like(where)) for met in tested]
    if not masks or any(mask.shape != where.shape for mask in masks):
        return False
    return np.logical_and.reduce(masks)


def beside(values: Sequence, wrt: Sequence[int], side: int) -> list:
    """Return arguments of which those in `wrt` are moved a little, each number differently."""
    eps = max((np.finfo(np.asarray(x).dtype).eps for k in wrt for x in inexact_leaves(values[k])),
              default=0.0)
    return [tree.map(functools.partial(moved, h=side * np.sqrt(eps)), x, dot) if k in wrt else x
            for k, (x, dot) in enumerate(zip(values, directions(values, wrt, 1)))]


@functools.lru_cache(maxsize=16)
def plain_function(function: Function) -> Function:
    """The function of `function` and its captures, without writes to what is outside."""
    return without_writes(whole(function))


def without_writes(function: Function) -> Function:
    """A copy of `function` that writes to nothing outside."""
    if not any(op.record is write_outside for op in walk(function.block)):
        return function
    function = clone(function)
    blocks = [function.block]
    while blocks:
        block = blocks.pop()
        block.ops = [op for op in block.ops if op.record is not write_outside]
        blocks.extend(inner for op in block.ops for inner in op.blocks)
    return function


def through_choices(function: Function, roots: Sequence[Value], counted: Sequence[int],
                    args: Sequence, report: Report) -> bool:
    """Report each argument on which a result in `counted` depends, but differentiably on no path;
    return whether there is one.
    """
    found = False
    for k, p in enumerate(function.params):
        if p not in roots or p in active_values(function, [p], counted):
            continue
        influenced = influenced_values(function, [p])
        results = [function.results[n] for n in counted]
        if any(y in influenced and carries_derivative(y.type) for y in results):
            varied = varied_in_conditions(function, [p])
            line = next((op.line for op in walk(function.block) if op.line is not None
                         and any(x in varied for x in op.inputs)
                         and not any(y in varied for y in op.outputs)), None)
            report.add(ONLY_THROUGH_CHOICES.format(p.name), line,
                       f"{p.name} = {format_numbers(args[k])}", 1)
            found = True
    return found


def through_comparisons(line: Line, refuted: tuple[float, float] | None, report: Report) -> None:
    """Report that differences refute a derivative of what is compared in a loop at `line`."""
    if refuted is not None:
        slope, chord = refuted
        report.add(THROUGH_COMPARISONS, line, f"in one direction {slope:.4g}, by differences "
                   f"{chord:.4g}", 1)


def compared_in_loop(function: Function, varied: set[Value], seen: set[Function],
                     inside: bool = False) -> Line | None:
    """Return the line of the first comparison of `varied` numbers in a loop."""
    return next(_compared(function.block, varied, seen | {function}, inside), None)


def _compared(block: Block, varied: set[Value], seen: set[Function],
              inside: bool) -> Iterator[Line]:
    for op in block.ops:
        if inside and op.record.compares and any(x in varied for x in op.inputs) and op.line:
            yield op.line
        # what a loop does in a trip, before whether it goes on
        for inner in op.blocks[::-1] if op.name == "while" else op.blocks:
            yield from _compared(inner, varied, seen, inside or op.name in ("for", "while"))
        if op.name == "call" and not is_ruled(op.attrs["callee"]):
            callee = op.attrs["callee"].function_for(op.inputs)
            if callee not in seen:
                given = [p for p, x in zip(callee.params, op.inputs) if x in varied]
                line = compared_in_loop(callee, varied_in_conditions(callee, given), seen, inside)
                if line is not None:
                    yield line


class Watcher:
    """A hook that checks each op of a run; `varied` and `active` are values of all functions that
    it has entered.  It calls `meet(op, number of the kink, inputs, where)` for each test.
    """

    def __init__(self, meet: Callable, varied: set[Value], active: set[Value]):
        self.meet, self.varied, self.active = meet, varied, active

    def enter(self, op: Op) -> None:
        """Record, before a call, which values of the callee depend on what is differentiated: none
        where a rule of the user's states its derivative.
        """
        if op.name == "call" and not is_ruled(op.attrs["callee"]):
            function = op.attrs["callee"].function_for(op.inputs)
            given = [p for p, x in zip(function.params, op.inputs) if x in self.varied]
            wanted = [k for k, y in enumerate(op.outputs) if y in self.active]
            self.varied |= varied_in_conditions(function, given)
            self.active |= active_values(function, given, wanted)

    def watch(self, op: Op, inputs: list, results: list) -> None:
        """Check, after an op, whether its derivative there is a convention."""
        if not op.record.kinks or not any(x in self.varied and is_inexact(dtype_of(x.type))
                                          for x in op.inputs):
            return
        if (all(y in self.varied for y in op.outputs)
                and not any(y in self.active for y in op.outputs)):
            # on no way to the result; a step, as floor and comparisons are, stands at the end of
            # each
            return
        y = results[0] if len(results) == 1 else results
        for k, kink in enumerate(op.record.kinks):
            if kink.of is not None and not any(op.inputs[k] in self.varied for k in kink.of):
                continue
            if kink.through is not None and not any(op.outputs[k] in self.active
                                                    for k in kink.through):
                continue
            self.meet(op, k, inputs, np.asarray(kink.where(y, *inputs, **op.attrs)))


def describe_operands(op: Op, kink: Kink, inputs: list, where: np.ndarray) -> str:
    """Describe the operands at the first place in question, those that have a name in the user's
    text by that; all of them where they are few.
    """
    place = tuple(int(k[0]) for k in np.nonzero(where)) if where.ndim else ()
    parts = []
    for k, (x, number) in enumerate(zip(op.inputs, inputs)):
        if kink.shown is not None and k not in kink.shown:
            continue
        if op.record.elementwise and np.ndim(number):
            number = np.broadcast_to(number, where.shape)[place] if where.ndim else number
        named = x.name and op.line is not None and x.name in names_at(op.line)
        parts.append(f"{x.name} = {format_numbers(number)}" if named else format_numbers(number))
    at = f"[{', '.join(map(str, place))}]: " if place else ""
    return at + ", ".join(parts)


def names_at(line: Line) -> set[str]:
    """Return the names that occur on a line, and below it where what it names goes on there."""
    text = line.text
    if line.end_column is None:
        text = "\n".join(line.source.text.splitlines()[line.number - line.source.first_line:])
    return set(re.findall(r"[^\W\d]\w*", text))


def format_numbers(x) -> str:
    """Format numbers as text, the first few of an array or a list."""
    if isinstance(x, np.ndarray) and x.ndim or isinstance(x, (list, tuple)):
        items = x.ravel() if isinstance(x, np.ndarray) else x
        few = [*map(format_numbers, items[:FEW]), *["..."] * (len(items) > FEW)]
        return f"[{', '.join(few)}]"
    return repr(x.item() if isinstance(x, (np.ndarray, np.generic)) else x)[:60]
