"""Of many programs of one kind, the quick tests run the first few; the others are marked slow."""

import collections

import pytest

QUICK = 3  # of each parametrised test


def pytest_collection_modifyitems(items):
    here = str(__file__).rpartition("/")[0]
    seen = collections.Counter()
    for item in items:
        if not str(item.path).startswith(here) or not hasattr(item, "callspec") or item.get_closest_marker("slow"):
            continue
        test = item.path, item.originalname
        seen[test] += 1
        if seen[test] > QUICK:
            item.add_marker(pytest.mark.slow)
