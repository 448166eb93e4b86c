"""LLVM's work on a function goes on in two threads; what it makes is what it makes in one."""

import gc
import os
import re
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding

import s2s
from s2s.runtime.llvm import parallel_codegen
from s2s.runtime.llvm.split_module import LEAST, PIECE, NotMergeable, Pieces, in_pieces
from s2s.runtime.numba import compiler, native_module

pytestmark = pytest.mark.compile

TEXT = """\
target triple = "{triple}"

%pair = type {{ i64, ptr }}

@"a constant" = internal constant i64 7
@other = external global i8

declare void @outside(i64)

define i64 @whole(i64 %x) {{
entry:
{filling}
  %a = call i64 @inside(i64 %x)
  %b = call i64 @"a helper"(i64 %a)
  %c = ptrtoint ptr @part.entry to i64
  %d = add i64 %b, %c
  ret i64 %d
}}

define linkonce_odr i64 @inside(i64 %x) {{
  %y = load i64, ptr @"a constant"
  %z = add i64 %x, %y
  ret i64 %z
}}

define linkonce_odr i64 @"a helper"(i64 %x) #0 {{
  %y = call i64 @inside(i64 %x)
  call void @outside(i64 %y)
  ret i64 %y
}}

define internal i64 @part.entry(ptr %x, i64 %y) {{
{more}
  %z = call i64 @inside(i64 %y)
  ret i64 %z
}}

define linkonce_odr i64 @nobody(i64 %x) {{
  ret i64 %x
}}

attributes #0 = {{ noinline nounwind optsize }}
"""


def text(lines: int, more: int | None = None, said: str = TEXT) -> str:
    """A module whose function has so many lines, and the part of a loop as many, or so many
    more.
    """
    filling, inside = (
        "\n".join(f"  %x{k} = add i64 1, {k}" for k in range(n))
        for n in (lines, lines if more is None else more)
    )
    return said.format(triple=binding.get_process_triple(), filling=filling, more=inside)


def definitions(module: str) -> dict[str, str]:
    """The functions of a module, by name: the words before it."""
    return {
        name: said.strip()
        for said, name in re.findall(r'^define (.*?)i64 @("[^"]*"|[\w.]+)\(', module, re.M)
    }


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch):
    """What this process has compiled already is forgotten."""
    monkeypatch.setattr(native_module, "_modules", {})
    monkeypatch.setattr(native_module, "_entries", native_module.Entries())


def test_a_module_is_several():
    pieces = in_pieces(Pieces.of(text(2 * PIECE)))[0]
    whole, part, helper = map(definitions, pieces)
    assert whole == {"whole": "", "inside": "linkonce_odr"}
    # each has what may be written inside
    assert part == {"part.entry": "", "inside": "linkonce_odr"}
    assert helper == {'"a helper"': "weak_odr", "inside": "linkonce_odr"}
    made = [binding.parse_assembly(piece) for piece in pieces]
    for module in made:
        module.verify()
        assert "a constant" in str(module) and "@other" not in str(module)
    all, *others = made
    for each in others:
        all.link_in(each)
    all.verify()
    assert [f.name for f in all.functions if f.is_declaration] == ["outside"]


def test_what_is_short_or_unlike_generated_code_stays_whole():
    assert in_pieces(Pieces.of(text(3))) is None
    for was, said in (
        ("@whole(i64 %x) {", '@whole(i64 %x) personality ptr @"a helper" {'),
        ('@"a helper"(i64 %x) #0', '@"a helper"(i64 %x) comdat #0'),
    ):
        assert was in text(LEAST)
        with pytest.raises(NotMergeable):
            Pieces.of(text(LEAST).replace(was, said))


def test_what_is_short_shares_a_piece():
    whole, others = map(definitions, in_pieces(Pieces.of(text(2 * PIECE, 3)))[0])
    assert whole == {"whole": "", "inside": "linkonce_odr"}
    assert others == {'"a helper"': "weak_odr", "part.entry": "", "inside": "linkonce_odr"}


def test_texts_are_linked():
    """Those of several modules, which number their metadata and attributes each from 0, and may
    define the same.
    """
    caller = """\
declare double @"wide"(double)

define double @"caller"(double %"x") noinline
{
entry:
  %".1" = call double @"wide"(double %"x"), !fpmath !0
  ret double %".1"
}

@"said" = internal constant [8 x i8] c"!0 \\0a #0 "
!0 = !{ float 2.5 }
"""
    other = """\
define double @wide(double %x) #0 {
  %y = fadd double %x, %x, !fpmath !0
  ret double %y
}

@said = internal constant [8 x i8] c"!0 \\0A #0 "
attributes #0 = { nounwind }
!0 = !{ float 3.5 }
"""
    both = Pieces.of(caller, other)
    said = both.module(both.outside())
    binding.parse_assembly(said).verify()
    assert both.outside() == ["caller"] and definitions(said.replace("double", "i64")) == {
        "caller": "",
        "wide": "linkonce_odr",
    }
    assert (
        "!fpmath !0" in both.defined["caller"]
        and "!fpmath !1" in both.defined["wide"]
        and both.globals["said"].endswith('c"!0 \\0a #0 "')
    )
    with pytest.raises(NotMergeable):
        Pieces.of(caller, other.replace("\\0A", "\\0B"))


def test_variables_of_one_name_stay_apart():
    """Numba keeps what it calls in Python in a variable of each module."""
    text = """\
@kept = internal global i64 0

define i64 @f(i64 %x) {
  %y = load i64, ptr @kept
  store i64 %x, ptr @kept
  ret i64 %y
}
"""
    both = Pieces.of(text, text.replace("@f(", "@g("))
    assert (
        [*both.globals] == ["kept", "kept.1"]
        and "@kept.1" not in both.defined["f"]
        and both.defined["g"].count("@kept.1\n") == 2
    )
    binding.parse_assembly(both.module(["f", "g"])).verify()


def test_functions_of_vectors_go_where_they_may_be_called():
    variant = """
define linkonce_odr <4 x double> @wide_4(<4 x double> %x) {{
  ret <4 x double> %x
}}

define linkonce_odr double @wide(double %x) {{
  ret double %x
}}

@llvm.compiler.used = appending global [1 x ptr] [ptr @wide_4], section "llvm.metadata"

attributes #1 = {{ "vector-function-abi-variant"="_ZGV_LLVM_N4v_wide(wide_4)" }}
"""
    said = (
        TEXT.replace(
            "%z = call i64 @inside(i64 %y)",
            "%v = call double @wide(double 0.0) #1\n  %z = call i64 @inside(i64 %y)",
        )
        + variant
    )
    whole, part, helper = in_pieces(Pieces.of(text(2 * PIECE, said=said)))[0]
    for piece in (whole, part, helper):
        binding.parse_assembly(piece).verify()
        assert ("@wide_4(" in piece) == ("@llvm.compiler.used" in piece) == (piece is part)


def test_what_is_run_once_a_call_or_once_a_part_is_in_no_piece():
    """What is bare may have loops, if those in them are elsewhere; Numba's runtime may go back to
    where it has been.
    """
    looping = """
define linkonce_odr i64 @{name}(i64 %x) {{
entry:
  br label %again
again:
  %k = phi i64 [ 0, %entry ], [ %next, %again ]
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %x
  br i1 %more, label %again, label %done
done:
  ret i64 %next
}}
"""
    said = TEXT.replace(
        "%z = call i64 @inside(i64 %y)\n  ret i64 %z\n}}\n\ndefine linkonce_odr i64 @nobody",
        "%z = call i64 @kernel(i64 %y)\n  ret i64 %z\n}}\n\ndefine linkonce_odr i64 @nobody",
    )
    assert said != TEXT
    for name, bare, left in (
        ("kernel", set(), []),
        ("kernel", {"whole"}, ["whole", '"a helper"']),
        ("kernel", {"whole", "kernel"}, ["whole", '"a helper"', "part.entry"]),
        ("NRT_kernel", {"whole"}, ["whole", '"a helper"', "part.entry"]),
    ):
        module = (
            text(2 * PIECE, said=said)
            + looping.format(name="kernel").replace("{{", "{").replace("}}", "}")
        ).replace("@kernel", f"@{name}")
        binding.parse_assembly(module).verify()
        pieces, found = in_pieces(Pieces.of(module), bare)
        assert found == left
        assert sorted(
            name
            for piece in pieces
            for name in definitions(piece)
            if name in ("whole", '"a helper"', "part.entry")
        ) == sorted({"whole", '"a helper"', "part.entry"} - {*left})


def program(x, y):
    total, z = 0.0, np.zeros((len(x), 3))
    for i in range(len(x)):
        for j in range(3):
            z[i, j] = np.sin(x[i] * y[j]) / (1.0 + x[i] * x[i])
            total += np.exp(-z[i, j]) * y[j]
    return total + np.sum(np.tanh(z @ np.outer(y, y)))


ARGS = np.linspace(-1.0, 1.0, 11), np.array([0.3, -0.7, 1.1])


def gradient(**options):
    return s2s.jit(s2s.value_and_grad(program, argnums=(0, 1)), **options)


def last_library():
    (library,) = [overload.library for overload in native_module._entries[-1].overloads.values()]
    return library


def agree(found, wanted, tolerance=1e-12):
    np.testing.assert_allclose(found[0], wanted[0], rtol=tolerance)
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_two_threads_make_what_one_makes(monkeypatch):
    ours = gradient(cache=False)(*ARGS)
    agree(ours, s2s.value_and_grad(program, argnums=(0, 1))(*ARGS))
    assert last_library().beside is not None and not last_library().beside.is_alive()
    monkeypatch.setattr(compiler, "in_pieces", lambda *given: None)
    native_module._modules.clear()
    agree(gradient(cache=False)(*ARGS), ours, 1e-15)
    assert last_library().beside is None


def test_what_goes_wrong_beside_is_told(monkeypatch):
    def fails(*args):
        raise RuntimeError("no machine code")

    monkeypatch.setattr(parallel_codegen, "machine_code", fails)
    with pytest.warns(s2s.runtime.call.plain_function.PlainNumbaWarning, match="no machine code"):
        found = gradient(cache=False)(*ARGS)
    agree(found, s2s.value_and_grad(program, argnums=(0, 1))(*ARGS))


def test_what_both_refer_to_is_known():
    gradient(cache=False)(*ARGS)
    library = last_library()
    external = library.external()
    assert "PyArg_UnpackTuple" in external and not any("program" in name for name in external)
    assert (
        len(
            {
                f.name
                for module in library.symbols()
                for f in module.functions
                if "cpython" in f.name
            }
        )
        == 1
    )
    linked = library._get_module_for_linking()
    linked.verify()
    assert {f.name for f in linked.functions if not f.is_declaration} >= {
        f.name
        for module in library.symbols()
        for f in module.functions
        if not f.is_declaration and "program" in f.name
    }
    assert library.get_llvm_str().count("define ") == sum(
        not f.is_declaration for module in library.symbols() for f in module.functions
    )


def test_what_the_thread_worked_on_is_gone(monkeypatch):
    """Only its bitcode is kept: hundreds of functions stay in a process."""
    parse, made = parallel_codegen.parse_in_own_context, []

    def noted(text):
        module = parse(text)
        made.append(weakref.ref(module))
        return module

    monkeypatch.setattr(parallel_codegen, "parse_in_own_context", noted)
    kept = gradient(cache=False)
    agree(kept(*ARGS), s2s.value_and_grad(program, argnums=(0, 1))(*ARGS))
    gc.collect()
    assert made and {module() for module in made} == {None}
    library = last_library()
    for piece in library.pieces:
        assert [f.name for f in piece.module().functions] == [
            f.name for f in piece.symbols.functions
        ]


def test_both_come_from_the_cache(tmp_path):
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import s2s
import test_parallel_codegen as t
from s2s.runtime.cache import machine_code as cache
from s2s.runtime.numba import native_module as modules

wanted = s2s.value_and_grad(t.program, argnums=(0, 1))(*t.ARGS)
handed_over = []
hand_over = cache.hand_over
cache.hand_over = lambda codegen, code: (handed_over.append(code), hand_over(codegen, code))
for _ in range(2):  # the same machine code, twice in a process
    t.agree(t.gradient()(*t.ARGS), wanted)
    modules._modules.clear()
print(*modules.statistics(), len(handed_over), len(set(handed_over)))
"""
    environment = os.environ | {"S2S_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        for _ in range(2)
    ]
    first, second = ([int(word) for word in run.stdout.split()] for run in runs)
    pieces = first[-1]
    assert pieces > 1 and (first, second) == ([1, 1, pieces, pieces], [0, 2, 2 * pieces, pieces]), (
        runs[0].stderr + runs[1].stderr
    )


def test_what_the_garbage_collector_ends_it_ends_once():
    """Objects of a cycle are ended in any order: a context of LLVM's before its modules."""
    program = """
import gc
import types
from s2s.runtime.llvm.parallel_codegen import parse_in_own_context
for k in range(50):
    module = parse_in_own_context(f"define i64 @f{k}(i64 %a) {{ ret i64 {k} }}")
    cycle = types.SimpleNamespace(module=module, functions=list(module.functions))
    cycle.itself = cycle
    del module, cycle
    assert gc.collect()
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
