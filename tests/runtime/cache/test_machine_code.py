"""Machine code on disk: found again by the next process, rebuilt when damaged, refused when not
private.
"""

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from llvmlite import binding
from numba.core.cpu import CPUContext

import s2s
from s2s.runtime.cache import machine_code, program_store
from s2s.runtime.numba import native_module

pytestmark = pytest.mark.compile

PROGRAM = """
import numpy as np
import s2s
from s2s.runtime.numba.native_module import statistics

def f(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * np.sin(x[i])
    return total

print(s2s.jit(s2s.grad(f))(np.arange(4.0)).sum(), *statistics())
"""


def start_process(tmp_path: Path, folder: Path, program: str = PROGRAM) -> subprocess.Popen:
    script = tmp_path / "program.py"
    script.write_text(program)
    root = Path(s2s.__file__).parent.parent
    env = {**os.environ, "S2S_CACHE_DIR": str(folder), "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, str(script)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result_of(process: subprocess.Popen) -> list[str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.split()


def run_process(tmp_path: Path, folder: Path) -> list[str]:
    return result_of(start_process(tmp_path, folder))


def test_second_process_takes_machine_code_from_the_cache(tmp_path):
    folder = tmp_path / "cache"
    first, compiled_first, loaded_first = run_process(tmp_path, folder)
    assert (compiled_first, loaded_first) == ("1", "0")
    assert folder.stat().st_mode & 0o777 == 0o700
    second, compiled_second, loaded_second = run_process(tmp_path, folder)
    assert (compiled_second, loaded_second) == ("0", "1")
    assert first == second
    (entry,) = folder.glob("*.code")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])  # torn by a crash
    third, compiled_third, loaded_third = run_process(tmp_path, folder)
    assert (third, compiled_third, loaded_third) == (first, "1", "0")
    assert entry.read_bytes()[: len(machine_code.MAGIC)] == machine_code.MAGIC
    assert len(entry.read_bytes()) > len(whole) // 2


NUMBAS = """
import numpy as np
import s2s
from s2s.runtime.numba.native_module import statistics

def f(x):
    a = 1.0 + x[0] * x[0] + x[1] * x[1]
    y, n = a, 0
    while n < 12:
        y = 0.5 * (y + a / y)
        n += 1
    return y * x[2]

y, pullback = s2s.vjp(s2s.jit(f), np.array([0.5, -0.4, 0.7]))
print(pullback(1.0)[0].sum(), *statistics())
"""


def test_what_takes_a_list_from_python_is_taken_from_the_cache(tmp_path):
    """Lists go Numba's way (direct/ has none), in pieces; the second process once called address
    0.
    """
    first, second = (
        result_of(start_process(tmp_path, tmp_path / "cache", NUMBAS)) for _ in range(2)
    )
    root = np.sqrt(1.41)
    assert abs(float(first[0]) - (0.7 * 0.1 / root + root)) < 1e-12
    assert (first[1:], second[1:]) == (["2", "0"], ["0", "2"])
    assert first[0] == second[0]


THROUGH_PYTHON = """
import numpy as np
import s2s
from s2s.runtime.call import native_function as compile
from s2s.runtime.numba.native_module import statistics

def eigh(A):
    return np.sum(np.linalg.eigh(A[0] + A[0].T)[0] ** 3)

def svd(A):
    return np.sum(np.linalg.svd(A[0])[1] ** 3)

def qr(A):
    return np.sum(np.linalg.qr(A[0])[1] ** 2)

def sort(A):
    return np.sum(np.sort(A, axis=1) * np.arange(3)[:, None])

def fft2(A):
    return np.sum(np.abs(np.fft.fft2(A)) ** 2)

def solved(A, B):
    return np.sum(np.linalg.solve(A, B) ** 2)

def never(*args):
    raise AssertionError("native code has raised")

compile.interpreted = never
A = np.sin(np.arange(45.0)).reshape(5, 3, 3) + 4 * np.eye(3)
calls = [(s2s.grad(f), (A,)) for f in (eigh, svd, qr, sort, fft2)]
for function, args in (*calls, (s2s.vmap(s2s.grad(solved), in_axes=(None, 0)), (A[0], A))):
    fast = s2s.jit(function)
    assert np.allclose(fast(*args), function(*args)), function
    assert np.array_equal(fast(*args), fast(*args)), function
    assert "# Numba does not know this" in fast.lower(*args).loops, function
print(*statistics())
"""


def test_calls_of_numpy_through_python_are_taken_from_the_cache(tmp_path):
    """What is in pieces keeps the environments of such calls, too: the second process once raised
    `missing Environment`, and ran the Python text.
    """
    processes = [
        result_of(start_process(tmp_path, tmp_path / "cache", THROUGH_PYTHON)) for _ in range(2)
    ]
    assert processes == [["6", "0"], ["0", "6"]]


def test_machine_code_without_the_wrapper_for_python_is_compiled_again(folder, monkeypatch):
    s2s.jit(cube)(2.0)
    again(monkeypatch)
    monkeypatch.setattr(machine_code, "entry_of", lambda result: 0)
    assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (1, 0)


def test_machine_code_from_the_cache_imports_nothing_that_compiling_needs(tmp_path):
    program = (
        "import sys\n"
        + PROGRAM
        + "print(*({'scipy.linalg', 'numba.np.arraymath'} & set(sys.modules)))\n"
    )
    programs = [result_of(start_process(tmp_path, tmp_path / "cache", program)) for _ in range(2)]
    assert "numba.np.arraymath" in programs[0][3:]
    assert programs[1][3:] == [] and programs[1][0] == programs[0][0]


def test_an_entry_that_takes_symbols_not_known_yet_has_everything_imported(folder, monkeypatch):
    s2s.jit(cube)(2.0)
    (entry,) = folder.glob("*.code")
    external, *rest = pickle.loads(machine_code.read(entry))
    assert external
    imported = []
    monkeypatch.setattr(
        CPUContext,
        "refresh",
        lambda self: (imported.append(self), binding.add_symbol("a symbol that comes with it", 8)),
    )
    for more, imports, loads in (
        ([], 0, 1),
        (["a symbol that comes with it"], 1, 1),
        (["no symbol of this name"], 1, 0),
    ):
        machine_code.write(entry, pickle.dumps(([*external, *more], *rest)))
        again(monkeypatch)
        imported.clear()
        assert s2s.jit(cube)(2.0) == 8.0
        assert native_module.statistics() == (1 - loads, loads)
        assert len(imported) == imports if loads else imported  # compiling it imports more


BENCH = Path(__file__).parents[3] / "tools" / "bench"


@pytest.mark.parametrize("name", sorted(path.stem for path in (BENCH / "cases").glob("*.py")))
def test_the_code_of_whole_programs_is_kept(name, folder, monkeypatch):
    """Code that has an address of its process in it is not."""
    spec = importlib.util.spec_from_file_location("bench_libraries", BENCH / "libraries.py")
    libraries = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(libraries)
    module = libraries.case(name)
    libraries.calls(module, "s2s", module.arguments(module.SIZE))["gradient"]()
    compiled, loaded = native_module.statistics()
    assert compiled == len(list(folder.glob("*.code"))) > 0 and loaded == 0


def test_several_processes_at_once_share_the_cache(tmp_path):
    folder = tmp_path / "cache"
    processes = [start_process(tmp_path, folder) for _ in range(3)]
    results = [result_of(p) for p in processes]
    assert len({value for value, _, _ in results}) == 1
    assert len(list(folder.glob("*.code"))) == 1
    assert not list(folder.glob(".writing-*"))
    assert run_process(tmp_path, folder)[1:] == ["0", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A cache directory, and a process that has loaded nothing yet."""
    monkeypatch.setenv("S2S_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(native_module, "_modules", {})
    monkeypatch.setattr(native_module, "_entries", native_module.Entries())
    monkeypatch.setattr(machine_code, "_warned", set())
    return tmp_path / "cache"


def cube(x):
    return x * x * x


def again(monkeypatch):
    """Forget what this process has loaded."""
    monkeypatch.setattr(native_module, "_modules", {})
    monkeypatch.setattr(native_module, "_entries", native_module.Entries())


def test_loads_what_it_wrote(folder, monkeypatch):
    assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (1, 0)
    again(monkeypatch)
    assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (0, 1)


@pytest.mark.parametrize("damage", [
    lambda b: b[:100],
    lambda b: b"",
    lambda b: b[:-1] + bytes([b[-1] ^ 1]),
    lambda b: b"something else entirely",
    lambda b: b.replace(machine_code.MAGIC, b"s2s machine code 0\n"),
], ids=["torn", "empty", "flipped", "foreign", "outdated"])
def test_damaged_entries_are_rebuilt_silently(folder, monkeypatch, damage):
    s2s.jit(cube)(2.0)
    (entry,) = folder.glob("*.code")
    entry.write_bytes(damage(entry.read_bytes()))
    again(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (1, 0)
    again(monkeypatch)
    s2s.jit(cube)(2.0)
    assert native_module.statistics() == (0, 1)


def test_an_entry_that_pickles_something_else_is_rebuilt(folder, monkeypatch):
    s2s.jit(cube)(2.0)
    (entry,) = folder.glob("*.code")
    machine_code.write(entry, b"\x80\x04N.")  # None, rightly hashed
    again(monkeypatch)
    assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (1, 0)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_entry_that_others_may_write_is_not_read(folder, monkeypatch):
    s2s.jit(cube)(2.0)
    (entry,) = folder.glob("*.code")
    entry.chmod(0o666)
    again(monkeypatch)
    assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (1, 0)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_entry_that_is_a_link_is_not_read(folder, monkeypatch):
    s2s.jit(cube)(2.0)
    (entry,) = folder.glob("*.code")
    moved = entry.rename(folder.parent / "elsewhere")
    entry.symlink_to(moved)
    again(monkeypatch)
    assert s2s.jit(cube)(2.0) == 8.0
    assert native_module.statistics() == (1, 0)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_directory_that_others_may_write_is_refused(folder):
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    with pytest.warns(machine_code.CacheWarning, match="others may write to it"):
        assert s2s.jit(cube)(2.0) == 8.0
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="symbolic links")
def test_directory_that_is_a_link_is_refused(folder):
    (folder.parent / "real").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "real")
    with pytest.warns(machine_code.CacheWarning, match="symbolic link"):
        assert s2s.jit(cube)(2.0) == 8.0


def test_without_a_cache_nothing_is_written(folder):
    assert s2s.jit(cube, cache=False)(2.0) == 8.0
    assert not folder.exists()


def test_a_directory_that_cannot_be_made_costs_only_a_warning(folder):
    folder.parent.joinpath("cache").write_text("a file is in the way")
    with pytest.warns(machine_code.CacheWarning):
        assert s2s.jit(cube)(2.0) == 8.0


def test_1000_lengths_are_one_compilation(folder):
    def energy(x):
        return np.sum(x * x) / len(x)

    fast = s2s.jit(s2s.grad(energy))
    for n in range(2, 1002):
        fast(np.ones(n))
    assert native_module.statistics() == (1, 0)


def test_the_text_stands_beside_its_code(folder):
    s2s.jit(cube)(2.0)
    (text,) = folder.glob("cube*.py")
    assert "@njit(error_model='numpy'" in text.read_text()


def test_versions_are_part_of_the_key():
    for word in ("s2s", "numba", "numpy", "llvm", sys.version.split()[0]):
        assert word in machine_code.versions()


@pytest.fixture
def another_checkout(tmp_path, monkeypatch):
    """A copy of the runtime that may be changed, whose keys are made anew after `forget()`."""
    root = tmp_path / "s2s"
    shutil.copytree(
        machine_code.ROOT / "runtime",
        root / "runtime",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (root / "front").mkdir()
    (root / "front" / "reads.py").write_text("pass\n")
    monkeypatch.setattr(machine_code, "ROOT", root)
    functions = machine_code.own_files, machine_code.versions, program_store.versions

    def forget():
        for function in functions:
            function.cache_clear()

    yield root, forget
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize(
    "place",
    [
        "emit/emit_expressions.py",
        "kernels/vector_math/lanes.py",
        "intrinsics/element_access.py",
        "numba/skip_passes.py",
    ],
)
def test_a_change_of_the_runtime_makes_other_entries(another_checkout, place):
    """What makes machine code of a text had a part in it: that of the same version of s2s went on
    being loaded.
    """
    root, forget = another_checkout
    forget()
    before, recalled = machine_code.key_of("text", "options"), program_store.versions()
    with open(root / "runtime" / place, "a") as file:
        file.write("# changed\n")
    assert machine_code.key_of("text", "options") == before  # a process reads them once
    forget()
    assert machine_code.key_of("text", "options") != before and program_store.versions() != recalled


def test_a_change_of_what_reads_programs_leaves_machine_code_what_it_is(another_checkout):
    root, forget = another_checkout
    forget()
    before, recalled = machine_code.key_of("text", "options"), program_store.versions()
    (root / "front" / "reads.py").write_text("0\n")
    forget()
    assert machine_code.key_of("text", "options") == before and program_store.versions() != recalled
