"""Register vector math with Numba: each function is a module of LLVM code, linked into its callers.

Considered: (1) these functions as Python that Numba compiles: small ones of another kind took 0.09
s each, in every process; a gradient with exp, log and tanh compiles in as much time with these as
with libm's.  (2) glibc's libmvec: on Linux alone, with errors of up to 3.9 ulp.  (3) Vector
variants for every function, which LLVM calls from the loops that it vectorises: for exp the calls
cost a fifth, so what has no branch is inlined instead, at whatever width LLVM chooses.

Note [Functions with a branch]
sin of a huge number is left to libm (lanes.rarely), and LLVM does not vectorise loops with such
branches. So these functions are not inlined; a call attribute names their vector variants
("vector-function-abi-variant"), in which all lanes share one branch. Scalar remainders use the same
arithmetic, so a result does not depend on its position in an array.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache

from llvmlite import binding, ir
from numba import config, types
from numba.extending import lower_builtin, type_callable

from .lanes import NAMES, Code, Lanes

KINDS = {types.float64: "double", types.float32: "float"}
LLVM = {"double": ir.DoubleType(), "float": ir.FloatType()}
LIBM = {"sin": "sin", "cos": "cos", "tan": "tan", "power": "pow"}
ATTRIBUTES = "nounwind willreturn memory(none)"
RARE = '!0 = !{!"branch_weights", i32 1, i32 2000}'


def has(feature: str) -> bool:
    """Whether Numba's target processor has this feature."""
    if config.CPU_FEATURES is not None:
        return f"+{feature}" in config.CPU_FEATURES.split(",")
    return bool(binding.get_host_cpu_features().get(feature))


def fuses() -> bool:
    """Whether the processor has fused multiply-add."""
    return has("fma") or platform.machine().lower() in ("arm64", "aarch64")


def widths(kind: str) -> list[int]:
    """The vector widths for which a function with a branch gets a variant."""
    sizes = [64, 32] if has("avx512f") else [32] if has("avx2") else [16]
    found = ({size // 8 for size in sizes}
             | ({size // 4 for size in sizes} if kind == "float" else set()))
    return sorted(found)


def defined(algorithm: Callable, name: str, kind: str, arity: int, lanes: int) -> tuple[str, Code]:
    """The text of an LLVM function, and its Code."""
    code = Code(lanes, fuses())
    names = [f"%x{k}" for k in range(arity)]
    y = algorithm(*(Lanes(code, n, kind) for n in names))
    type = code.type(kind)
    branches = any(need == "slow" for need, _ in code.needs)
    inline = "noinline" if branches else "alwaysinline"
    parameters = ", ".join(f"{type} {n}" for n in names)
    head = f"define linkonce_odr {type} @{name}({parameters}) {inline} {ATTRIBUTES} {{"
    return "\n".join([head, "entry:", *code.lines, f"  ret {type} {y.text}", "}"]), code


@cache
def text_of(algorithm: Callable, name: str, kind: str, arity: int) -> tuple[str, tuple[int, ...]]:
    """A module that defines the function, and the widths of its variants, which only a function
    with a branch has.
    """
    text, code = defined(algorithm, name, kind, arity, 1)
    parts, needs = [text], set(code.needs)
    variants = tuple(widths(kind)) if any(need == "slow" for need, _ in needs) else ()
    for lanes in variants:
        text, code = defined(algorithm, f"{name}_{lanes}", kind, arity, lanes)
        parts += [text, masked(f"{name}_{lanes}", kind, arity, lanes)]
        needs |= code.needs
    for need, what in sorted(needs):
        parts += ([what] if need == "declare"
                  else [slow_path(*what.split(), lanes) for lanes in (1, *variants)])
    if variants:
        kept = [f"ptr @{name}_{lanes}{mask}" for lanes in variants for mask in ("", "m")]
        parts += [
            f"@llvm.compiler.used = appending global [{len(kept)} x ptr] [{', '.join(kept)}], "
            "section \"llvm.metadata\"",
            *{f"declare double @{LIBM[what.split()[0]]}"
              f"({', '.join(['double'] * arity)}) {ATTRIBUTES}"
              for need, what in needs if need == "slow"}, RARE]
    return "\n".join(parts) + "\n", variants


def masked(name: str, kind: str, arity: int, lanes: int) -> str:
    """The variant for a call under an `if` in a vectorised loop: masked lanes compute with 1."""
    type, mask = f"<{lanes} x {kind}>", f"<{lanes} x i1>"
    ones = f"<{', '.join([f'{kind} 1.0'] * lanes)}>"
    lines = [f"  %y{k} = select {mask} %m, {type} %x{k}, {type} {ones}" for k in range(arity)]
    parameters = ", ".join(f"{type} %x{k}" for k in range(arity))
    call = f"  %r = call {type} @{name}({', '.join(f'{type} %y{k}' for k in range(arity))})"
    return "\n".join([
        f"define linkonce_odr {type} @{name}m({parameters}, {mask} %m) "
        f"alwaysinline {ATTRIBUTES} {{",
        *lines, call, f"  ret {type} %r", "}"])


def slow_path(name: str, kind: str, arity: str, lanes: int) -> str:
    """Call libm's function for the marked lanes, one after the other."""
    count, code = int(arity), Code(lanes)
    type, mask = code.type(kind), code.type("i1")
    head = ", ".join([f"{mask} %c", f"{type} %y", *(f"{type} %x{k}" for k in range(count))])
    head = (f"define linkonce_odr {type} @s2s_slow_{name}_{NAMES[kind]}_{lanes}({head}) "
            f"noinline cold {ATTRIBUTES} {{")
    xs = [f"%x{k}" if lanes == 1 else f"%v{k}" for k in range(count)]
    wide, narrow, result = [], [], "%f"
    if kind == "float":
        wide = [f"  %w{k} = fpext float {x} to double" for k, x in enumerate(xs)]
        narrow, result, xs = (["  %g = fptrunc double %f to float"], "%g",
                              [f"%w{k}" for k in range(count)])
    call = [*wide, f"  %f = call double @{LIBM[name]}({', '.join(f'double {x}' for x in xs)})",
            *narrow]
    if lanes == 1:
        return "\n".join([head, *call, f"  ret {kind} {result}", "}"])
    return "\n".join([head, "entry:", "  br label %lane", "lane:",
                      "  %i = phi i32 [ 0, %entry ], [ %n, %next ]",
                      f"  %r = phi {type} [ %y, %entry ], [ %s, %next ]",
                      f"  %b = extractelement {mask} %c, i32 %i",
                      "  br i1 %b, label %ask, label %next", "ask:",
                      *(f"  %v{k} = extractelement {type} %x{k}, i32 %i" for k in range(count)),
                      *call, f"  %q = insertelement {type} %r, {kind} {result}, i32 %i",
                      "  br label %next", "next:", f"  %s = phi {type} [ %r, %lane ], [ %q, %ask ]",
                      "  %n = add i32 %i, 1", f"  %d = icmp eq i32 %n, {lanes}",
                      "  br i1 %d, label %done, label %lane", "done:", f"  ret {type} %s", "}"])


class Library:
    """A module in the form in which Numba links and optimises it in its callers."""

    def __init__(self, text: str):
        self.module = binding.parse_assembly(text)
        self._reload_init: set = set()

    def _ensure_finalized(self) -> None:
        pass

    def _get_module_for_linking(self):
        return self.module


@cache
def library(algorithm: Callable, name: str, kind: str, arity: int) -> Library:
    """The library of one function."""
    return Library(text_of(algorithm, name, kind, arity)[0])


def compile_as(function: Callable, algorithm: Callable, name: str, arity: int) -> None:
    """Register `algorithm` with Numba as the lowering of `function` on numbers."""

    @type_callable(function)
    def typed(context):
        return (lambda x: result(x)) if arity == 1 else lambda a, b: result(a, b)

    def result(*xs):
        if all(x in KINDS for x in xs):
            return xs[0] if len(set(xs)) == 1 else types.float64

    def lowered(context, builder, signature, args):
        kind = KINDS[signature.return_type]
        args = [context.cast(builder, x, t, signature.return_type)
                for x, t in zip(args, signature.args)]
        return call(context, builder, algorithm, f"s2s_{name}_{NAMES[kind]}", kind, args)

    lower_builtin(function, *[types.Float] * arity)(lowered)


def call(context, builder, algorithm: Callable, name: str, kind: str, args: list):
    """Emit a scalar call, which LLVM may vectorise.  Note [Functions with a branch]"""
    context.add_linking_libs([library(algorithm, name, kind, len(args))])
    type = LLVM[kind]
    target = (builder.module.globals.get(name)
              or ir.Function(builder.module, ir.FunctionType(type, [type] * len(args)), name))
    made = builder.call(target, args, attrs=("nounwind", "readnone"))
    variants = text_of(algorithm, name, kind, len(args))[1]
    if variants:
        v = "v" * len(args)
        names = [f"_ZGV_LLVM_{m}{lanes}{v}_{name}({name}_{lanes}{'m' if m == 'M' else ''})"
                 for lanes in variants for m in "NM"]
        # llvmlite knows only some attributes
        set.add(made.attributes, f'"vector-function-abi-variant"="{",".join(names)}"')
    return made
