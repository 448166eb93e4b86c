"""Comparisons with other systems: every test here is marked `peer` and skipped where the system is
not installed.
"""

import pytest

HERE = __file__.rsplit("conftest", 1)[0]


def pytest_collection_modifyitems(items):
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker(pytest.mark.peer)


@pytest.fixture(scope="session")
def jax():
    """JAX in double precision, on the CPU."""
    found = pytest.importorskip("jax", reason="JAX is not installed (pip install s2s[peers])")
    found.config.update("jax_enable_x64", True)
    found.config.update("jax_platforms", "cpu")
    return found


@pytest.fixture(scope="session")
def autograd():
    return pytest.importorskip(
        "autograd", reason="autograd is not installed (pip install s2s[peers])"
    )
