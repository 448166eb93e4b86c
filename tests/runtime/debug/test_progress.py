"""The user is told what takes long: in a terminal and a notebook, and nowhere else."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from s2s.runtime.debug import progress

ROOT = Path(__file__).parent.parent.parent.parent

PROGRAM = """\
import sys, time
from s2s.runtime.debug import progress as told
told.PATIENCE = 0.1
print("begin", flush=True)
with told.telling("quick_grad"):
    pass
with told.telling("slow_grad"):
    time.sleep(0.6)
print("end", flush=True)
"""


def in_a_terminal(**environment: str) -> str:
    """What a terminal shows of the program."""
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1000)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.lengthy
def test_a_line_in_a_terminal_that_vanishes():
    shown = in_a_terminal()
    line = "s2s: compiling slow_grad (0 s)"
    assert shown == f"begin\n\r{line}\r{' ' * len(line)}\rend\n"


@pytest.mark.slow
def test_switched_off():
    assert in_a_terminal(S2S_PROGRESS="0") == "begin\nend\n"


@pytest.mark.slow
def test_nothing_where_nobody_looks():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "begin\nend\n", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.lengthy
def test_generating_and_compiling_count_together(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.4)
    for name, shown in (("f", ""), ("f", "s2s: compiling f"), ("g", "")):
        before = len(sys.stderr.getvalue())
        with progress.telling(name):
            time.sleep(0.3)
        assert sys.stderr.getvalue()[before:].strip().startswith(shown) and bool(
            sys.stderr.getvalue()[before:]
        ) == bool(shown)


def test_a_notebook_is_looked_at(monkeypatch):
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", stream)
    assert progress.is_watched()
    for closed in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stderr", closed)
        assert not progress.is_watched()
    sys.stderr.close()
    assert not progress.is_watched()


def test_nobody_is_there_any_more(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.telling("f"):
        time.sleep(0.05)
        stream.close()
