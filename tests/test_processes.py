"""Real sessions: the prompts of Python and of IPython, `python -c` and `python < file`, workers
that are spawned, joblib.
"""

import multiprocessing
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import s2s

pytestmark = pytest.mark.slow  # each starts a Python
ROOT = Path(__file__).parent.parent
NEW = (3, 13)

SESSION = """\
import s2s
def cube(x):
    return x**3 * k

k = 2.0
print("first", s2s.grad(cube)(2.0))
add = lambda x: x + cube(x)
print("lambda", s2s.grad(add)(2.0))
def cube(x):
    return x**2

print("again", s2s.grad(add)(3.0), s2s.grad(cube)(5.0))
"""


def python_3_13() -> str:
    """A Python 3.13 that has what s2s needs; the test is skipped where there is none."""
    places = (
        [sys.executable]
        if sys.version_info >= NEW
        else [str(ROOT / ".venv-3.13" / "bin" / "python"), os.environ.get("PYTHON_3_13", "")]
    )
    asked = "import sys, numpy, gast, numba, scipy, optree; print(sys.version_info >= (3, 13))"
    for place in places:
        if place and Path(place).exists():
            done = subprocess.run([place, "-c", asked], capture_output=True, text=True)
            if done.stdout.strip() == "True":
                return place
    pytest.skip("no Python 3.13 that has the packages s2s needs: python3 tools/run tests --all "
                "makes one")


@pytest.mark.parametrize("way", ["-c", "-Bc", "<"])
def test_a_text_that_is_no_file(way, tmp_path):
    place = tmp_path / "session"
    place.write_text(SESSION)
    with place.open() as file:
        done = subprocess.run([sys.executable, *([] if way == "<" else [way, SESSION])], stdin=file,
                              capture_output=True, text=True, timeout=120, env=environment())
    check(done.stdout + done.stderr)


def typed(lines: list[str], last: str) -> str:
    """What Python shows whose prompt, in a terminal, gets these lines, the last of which shows
    `last`.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-q", "-i"], environment())
    shown = ""
    try:
        for line in lines:
            while not shown.endswith((">>> ", "... ")):
                shown += os.read(terminal, 1024).decode()
            os.write(terminal, f"{line}\n".encode())
            shown += os.read(terminal, 1024).decode()
        while last not in shown:
            shown += os.read(terminal, 1024).decode()
    except OSError:  # it has ended
        pass
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


@pytest.mark.skipif(sys.version_info >= NEW, reason="Python 3.13 keeps what its prompt is told")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
def test_the_prompt_of_python_before_3_13():
    check(typed([*SESSION.splitlines(), "print('en' + 'd')"], "end\r\n"))


def check(output: str) -> None:
    for line in ("first 24.0", "lambda 25.0", "again 7.0 10.0"):
        assert line in output, output


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "dumb", "NO_COLOR": "1"}


@pytest.mark.parametrize("basic", [False, True])
def test_the_prompt_of_python_3_13(basic):
    python, env = python_3_13(), environment()
    if basic:
        env["PYTHON_BASIC_REPL"] = "1"
        done = subprocess.run(
            [python, "-i", "-q"],
            input=SESSION,
            capture_output=True,
            text=True,
            timeout=120,
            env=env,
        )
        check(done.stdout)
        return
    pexpect = pytest.importorskip("pexpect", reason="pexpect is not installed")
    env["TERM"] = "xterm"
    prompt = pexpect.spawn(
        python, ["-q"], env=env, timeout=120, encoding="utf-8", dimensions=(50, 200)
    )
    prompt.expect(">>> ")
    shown = []
    for block in SESSION.replace("\n\n", "\n\0").split("\n"):
        prompt.send(block.lstrip("\0") + "\r") if "\0" not in block else prompt.send(
            "\r" + block.lstrip("\0") + "\r"
        )
        prompt.expect(r"(>>>|\.\.\.) ")
        shown.append(prompt.before)
    prompt.sendline("print('en' + 'd')")
    prompt.expect("end")
    check("".join(shown) + prompt.before)
    prompt.close(force=True)


def test_the_prompt_of_ipython(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    env = {**environment(), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=SESSION,
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
    )
    check(done.stdout)


def test_autoreload(tmp_path):
    pytest.importorskip("IPython", reason="IPython is not installed")
    (tmp_path / "reloaded.py").write_text("def inner(x):\n    return x**2\n\ndef f(x):\n"
                                          "    return inner(x) * x\n")
    session = f"""\
%load_ext autoreload
%autoreload 2
import sys, pathlib, s2s; sys.path.insert(0, {str(tmp_path)!r})
from reloaded import f
slope = s2s.grad(f)
print("before", slope(2.0))
_ = pathlib.Path({str(tmp_path / 'reloaded.py')!r}).write_text(
    "K = 3.0\\n\\ndef inner(x):\\n    return x**3 * K\\n\\ndef f(x):\\n    return inner(x) * x\\n")
print("after", slope(2.0), s2s.grad(f)(2.0))
"""
    env = {**environment(), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=session,
        capture_output=True,
        text=True,
        timeout=120,
        env=env,
    )
    assert "before 12.0" in done.stdout and "after 96.0 96.0" in done.stdout, (
        done.stdout + done.stderr
    )


# ------------------------------------------------------------------------------------------ workers


def energy(x, k=2.0):
    return x**3 * k


slope = s2s.grad(energy)
TEXT = s2s.from_source("def text(x):\n    return 5.0 * x * x\n", globals())


class Spring:
    def __init__(self, k):
        self.k = k

    @s2s.grad
    def force(self, x):
        return self.k * x**2

    @s2s.hessian
    def stiffness(self, x):
        return self.k * x**3


text = TEXT
FUNCTIONS = [
    (s2s.grad(energy), 24.0),
    (slope, 24.0),
    (s2s.value_and_grad(s2s.grad(energy)), (24.0, 24.0)),
    (Spring(3.0).force, 12.0),
    (Spring(3.0).stiffness, 36.0),
    (s2s.grad(text), 20.0),
    (s2s.hessian(energy), 24.0),
]


def test_spawned_workers():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for t, wanted in FUNCTIONS:
            assert pool.map(t, [2.0, 2.0]) == [wanted, wanted]


@pytest.mark.compile
def test_spawned_workers_compile():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(s2s.jit(s2s.grad(energy)), [2.0]) == [24.0]


def test_joblib():
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    k = 4.0
    local = s2s.grad(lambda x: k * x * x)
    made = s2s.grad(s2s.from_source("def made(x):\n    return 5.0 * x * x\n"))
    for t, wanted in [*FUNCTIONS, (local, 16.0), (made, 20.0)]:
        assert joblib.Parallel(n_jobs=2)(joblib.delayed(t)(x) for x in (2.0, 2.0)) == [
            wanted,
            wanted,
        ]
