"""The picture book: tests/golden/*.py, compared exactly, and run.

Each file holds a function `f`, arguments, and below a line of dashes what s2s generates: the SSA of
`f`, then its derivative (or what `OF` asks for).  The texts must be those that are generated now;
and whatever they are, running them must give what hyper-dual numbers give.  `pytest
--update-golden` rewrites the files, but none that the oracles reject.
"""

import dataclasses
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from oracles import direction, dual, dual_second, inner, is_close

import s2s
from s2s import pipeline
from s2s.specialisation import type_of

FILES = sorted((Path(__file__).parent / "golden").glob("*.py"))
SSA = "\n\n# " + "-" * 30 + " the same, as the compiler sees it\n\n\n"
DERIVATIVE = "\n\n# " + "-" * 30 + " what s2s makes of it\n\n\n"


def load(path: Path, text: str | None = None):
    """The file as a module; with `text`, what it would be if it held that."""
    spec = importlib.util.spec_from_file_location(f"golden_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    if text is None:
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    else:
        exec(compile(text, str(path), "exec"), vars(module))
    return module


def without_imports(text: str) -> str:
    return (
        re.sub(r"\A(?:(?:import|from) .*\n|\n|\"\"\"(?:.|\n)*?\"\"\"\n)*", "", text).strip() + "\n"
    )


def generated(module) -> tuple[str, str]:
    """The SSA of the module's `f`, and its derivative."""
    types = [type_of(x, name) for x, name in zip(module.ARGS, module.f.__code__.co_varnames)]
    ssa = dataclasses.replace(pipeline.build(module.f, types), name="f_ssa")
    match getattr(module, "OF", "grad"):
        case "grad":
            derivative = s2s.grad(module.f, argnums=module.WRT).lower(*module.ARGS).source
        case "grad before any call":
            derivative = s2s.grad(module.f, argnums=module.WRT).source
        case "jvp":
            dots = tuple(
                np.zeros_like(x) if isinstance(x, np.ndarray) else 0.0 for x in module.ARGS
            )
            derivative = s2s.jvp(module.f).lower(*module.ARGS, *dots).source
        case "jacrev" | "jacfwd" | "hessian" as kind:
            derivative = getattr(s2s, kind)(module.f, argnums=module.WRT).lower(*module.ARGS).source
        case "grad of grad":
            derivative = s2s.grad(s2s.grad(module.f)).lower(*module.ARGS).source
        case "hvp":
            derivative = s2s.hvp(module.f).lower(*module.ARGS, *module.ARGS).source
        case "vjp in two":
            derivative = s2s.vjp(module.f, *module.ARGS)[1].source
        case "jvp in two":
            derivative = s2s.linearize(module.f, *module.ARGS)[1].source
        case "vmap":
            derivative = s2s.vmap(module.f, in_axes=module.IN_AXES).lower(*batch_of(module)).source
    return without_imports(pipeline.render(ssa, annotate=True).text), without_imports(derivative)


def batch_of(module) -> tuple:
    """The module's arguments, three different copies of each that is batched, stacked."""
    axes = [
        None if axis is None else np.stack([x, x * 0.7, x * 1.3], axis)
        for x, axis in zip(module.ARGS, module.IN_AXES)
    ]
    return tuple(x if stacked is None else stacked for x, stacked in zip(module.ARGS, axes))


def judge(module) -> str:
    """What the oracles say against the code in this file, or an empty string."""
    args = [x.copy() if isinstance(x, np.ndarray) else x for x in module.ARGS]
    expected = module.f(*args)
    if not is_close(module.f_ssa(*module.ARGS), expected, 1e-13):
        return "the SSA computes something else"
    of = getattr(module, "OF", "grad")
    if of == "vmap":
        batch = batch_of(module)
        lanes = [
            module.f(
                *(
                    x if axis is None else np.take(x, k, axis)
                    for x, axis in zip(batch, module.IN_AXES)
                )
            )
            for k in range(3)
        ]
        return (
            ""
            if is_close(module.f_vmap(*batch), np.stack(lanes), 1e-13)
            else "the lanes compute something else"
        )
    rng = np.random.default_rng(0)
    for _ in range(3):
        tangents = [direction(x, rng) for x in module.ARGS]
        if of in JUDGED:
            complaint = JUDGED[of](module, tangents)
            if complaint:
                return complaint
            continue
        if of not in ("jvp", "jvp in two"):
            wrt = (module.WRT,) if isinstance(module.WRT, int) else module.WRT
            tangents = [t if k in wrt else None for k, t in enumerate(tangents)]
            bars = module.f_grad(*module.ARGS)
            bars = (bars,) if isinstance(module.WRT, int) else bars
            slope = inner(tuple(bars), tuple(tangents[k] for k in wrt))
        else:
            dots = [0.0 if t is None else t for t in tangents]
            slope = module.f_jvp(*module.ARGS, *dots)[1]
        if not is_close(slope, dual(module.f, module.ARGS, tangents)[1], 1e-9):
            return "the derivative is wrong"
    return ""


def in_first(tangents: list) -> list:
    """A direction in which only the first argument moves."""
    return [t if k == 0 else None for k, t in enumerate(tangents)]


def dots_of(tangents: list) -> list:
    return [0.0 if t is None else t for t in tangents]


def judged_jacobian(module, tangents: list) -> str:
    """J @ t, where the first argument, an array, is what moves."""
    jacobian = (module.f_jacrev if module.OF == "jacrev" else module.f_jacfwd)(*module.ARGS)
    got = np.tensordot(jacobian, tangents[0], np.ndim(tangents[0]))
    return (
        ""
        if is_close(got, dual(module.f, module.ARGS, in_first(tangents))[1], 1e-9)
        else "the Jacobian is wrong"
    )


def judged_curvature(module, tangents: list) -> str:
    """The second derivative along one direction of the first argument, twice."""
    t = tangents[0]
    match module.OF:
        case "hvp":
            got = np.sum(
                t * module.f_hvp(*module.ARGS, *[t, *(np.zeros_like(x) for x in tangents[1:])])
            )
        case "hessian":
            got = t @ module.f_hessian(*module.ARGS) @ t
        case _:
            got = module.f_grad_grad(*module.ARGS) * t * t
    expected = dual_second(module.f, module.ARGS, in_first(tangents), in_first(tangents))
    return (
        ""
        if is_close(got, expected, 1e-8)
        else f"the second derivative is wrong: {got} for {expected}"
    )


def judged_pullback(module, tangents: list) -> str:
    y, y_dot = dual(module.f, module.ARGS, tangents)
    y_bar = np.cos(np.arange(np.size(y))).reshape(np.shape(y))
    _, *bars = module.f_vjp(*module.ARGS, y_bar if y_bar.shape else y_bar.item())
    pairs = [np.sum(b * t) for b, t in zip(bars, tangents) if t is not None]
    return "" if is_close(sum(pairs), np.sum(y_bar * y_dot), 1e-9) else "the cotangents are wrong"


JUDGED = {
    "jacrev": judged_jacobian,
    "jacfwd": judged_jacobian,
    "hvp": judged_curvature,
    "hessian": judged_curvature,
    "grad of grad": judged_curvature,
    "vjp in two": judged_pullback,
}


@pytest.mark.lengthy
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden(path, request):
    written = path.read_text()
    own = written.split(SSA)[0].rstrip() + "\n"
    module = load(path)
    ssa, derivative = generated(module)
    text = own + SSA + ssa + DERIVATIVE + derivative
    complaint = judge(load(path, text))
    assert not complaint, f"{path.name}: {complaint}\n{text}"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    else:
        assert written == text, (
            f"{path.name} is out of date: look at it, then pytest --update-golden"
        )


def test_oracles_reject_a_wrong_derivative():
    path = next(p for p in FILES if p.stem == "swap_in_loop")
    text = path.read_text()
    head, derivative = text.split(DERIVATIVE)
    assert not judge(load(path, text))
    assert judge(load(path, head + DERIVATIVE + derivative.replace("_bar +", "_bar -")))
