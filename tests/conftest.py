"""Which cases of a test `make test` runs, in tests/python and tests/spark."""
import collections

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks `long` what comes after the first n cases of a test that is marked few(n)."""
    seen = collections.Counter()
    for item in items:
        few = item.get_closest_marker("few")
        if few and not item.get_closest_marker("long"):
            test = item.nodeid.partition("[")[0]
            seen[test] += 1
            if seen[test] > few.args[0]:
                item.add_marker(pytest.mark.long)
