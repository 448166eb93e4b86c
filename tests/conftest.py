"""Options of the test run, and the quick subset: of the many cases of a test, the first.

Tests are slow where they say so, and so are all cases of a test but a few: what a change breaks
shows in half a minute, in the files that it concerns, and the whole run tells the rest.  The pages
of the golden book are all quick.  Where more cases are asked for than one, what is lengthy runs,
too.  Considered: to choose cases by hand, in each file, which nobody does again when cases are
added; and to choose by how long they take, which depends on the machine: which tests are lengthy is
written down.
"""

import collections
import gc
import importlib.util
import os
import sys

import pytest

# tests change constants of the compiler, which no key knows; tests/persist says otherwise
os.environ.setdefault("S2S_RECALL", "0")
gc.set_threshold(200_000)  # as docs/compiling.md says: a fifth of the time of what generates code

WHOLE = ("test_golden",)
NOT_QUICK = ("compile", "slow", "cuda", "peer")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true",
                     help="rewrite tests/golden/*.py with what is generated now, if the oracles "
                          "accept it")
    parser.addoption("--cases", type=int, default=1,
                     help="of each test, so many cases are quick, from the first to the last "
                          "(1); the others are marked slow")
    parser.addoption("--of-each", type=int,
                     help="of each test, so many cases are run, from the first to the last (all); "
                          "all pages of the golden book are")


@pytest.fixture(autouse=True)
def no_memory_is_touched_that_is_not_ones_own(request, monkeypatch):
    """With S2S_CHECK=memory, a test fails in which native code has violated memory, whatever became
    of the error.
    """
    if request.node.get_closest_marker("machine_code"):
        monkeypatch.delenv("S2S_CHECK", raising=False)
    yield
    sanitizer = sys.modules.get("s2s.runtime.debug.sanitizer")
    if sanitizer is not None:
        assert not sanitizer.clear()


def pytest_collection_modifyitems(config, items):
    if importlib.util.find_spec("numba_cuda") is None:
        missing = pytest.mark.skip(reason="numba-cuda is not installed: pip install -e .[cuda]")
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(missing)
    count = config.getoption("--cases")
    cases = collections.defaultdict(list)
    for item in items:
        if (
            hasattr(item, "callspec")
            and item.path.stem not in WHOLE
            and not any(map(item.get_closest_marker, NOT_QUICK))
        ):
            cases[item.path, item.originalname].append(item)
    for item in items if count == 1 else ():
        if item.get_closest_marker("lengthy"):
            item.add_marker(pytest.mark.slow)
    for several in cases.values():
        kept = chosen(len(several), count)
        for k, item in enumerate(several):
            if k not in kept:
                item.add_marker(pytest.mark.slow)
    if config.getoption("--of-each") is not None:
        leave_out_cases(config, items)


def leave_out_cases(config, items):
    """Deselect all but `--of-each` cases of each test."""
    count, cases = config.getoption("--of-each"), collections.defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.path.stem not in WHOLE:
            cases[item.path, item.originalname].append(item)
    left_out = set()
    for several in cases.values():
        kept = chosen(len(several), count)
        left_out |= {item for k, item in enumerate(several) if k not in kept}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


def chosen(total, count):
    """The numbers of `count` of so many cases, from the first to the last."""
    return {round(k * (total - 1) / max(count - 1, 1)) for k in range(count)}
