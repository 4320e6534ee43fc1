"""Fixtures of the tests of Ray Data and Daft. tools/engines_env.sh makes their environment;
build/engines/bin/python -m pytest tests/engines runs them. tests/spark/holding.py checks the
datasets on disk."""
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "spark")]

from places import flags, out  # noqa: E402, F401

# No network and no statistics. Workers import what the tests import.
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
                  DAFT_ANALYTICS_ENABLED="0", DO_NOT_TRACK="true",
                  PYTHONPATH=os.pathsep.join(filter(None, sys.path[:2]
                                                    + [os.environ.get("PYTHONPATH", "")])))


@pytest.fixture(scope="session")
def ray():
    """Ray with two processors, whose tasks are processes of their own."""
    ray = pytest.importorskip("ray")
    import ray.data
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False,
             object_store_memory=200 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


@pytest.fixture(scope="session")
def docs():
    return HERE.parents[1] / "docs"


def pytest_configure(config):
    for package in ("ray", "daft"):
        config.addinivalue_line("filterwarnings", "ignore:::%s" % package)
