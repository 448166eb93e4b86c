"""Generated programs, a few of the fuzzer's: Python, the interpreter, printed code and derivatives
agree.
"""

import importlib.machinery
import importlib.util
import warnings
from pathlib import Path

import generate
import idioms
import pytest
from hypothesis import given, settings

pytestmark = pytest.mark.slow

TOOLS = Path(__file__).parent.parent / "tools"


def tool(name: str):
    """The tool of this name as a module."""
    loader = importlib.machinery.SourceFileLoader(f"tool_{name}", str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


fuzz = tool("fuzz")


def agree(seed: int, ways) -> None:
    text = generate.text(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in ways:
            message = fuzz.attempt(text, seed, way)
            assert message is None or message.startswith(fuzz.SHARED), (
                f"seed {seed}, {way}\n{text}\n{message}"
            )


@pytest.mark.parametrize("seed", range(30))
def test_generated_program(seed):
    agree(seed, fuzz.ways(seed, 0))


@pytest.mark.parametrize("seed", range(40))
def test_wide_program(seed):
    """One in all of Python that numerical code is written in; it may be refused, and never
    wrong.
    """
    text = idioms.text(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in fuzz.ways(seed, 0):
            message = fuzz.attempt(text, seed, way)
            assert message is None or message.startswith(fuzz.REFUSED), (
                f"seed {seed}, {way}\n{text}\n{message}"
            )


@pytest.mark.parametrize("seed", [1624, 3500, 61929, 61955])
def test_lanes_that_take_their_own_ways(seed):
    """Regions that run lane by lane, with tapes and numbers that all lanes share between them."""
    agree(seed, ["batched"])


def test_zeros_like_what_only_one_path_binds():
    agree(3440, ["twice"])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(generate.strategy())
def test_any_seed(seed):
    agree(seed, ["interpreter", "printed", "reverse", "forward"])


@pytest.mark.compile
@pytest.mark.parametrize("seed", [0, 7, 19])
def test_generated_program_compiled(seed):
    agree(seed, ["numba", "numba_reverse"])
