"""What all tests of the package share. It must be installed: `make python` does that, and
build/venv/bin/python -m pytest tests/python runs them."""
import os
import pathlib
import sys

import hypothesis
import hypothesis.configuration
import pytest

import libsafetensors
from libsafetensors import remote

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/remote"))
import server  # noqa: E402

# Not the root: its tables of characters. Examples are not kept.
hypothesis.configuration.set_hypothesis_home_dir(ROOT / "build/hypothesis")
hypothesis.settings.register_profile(
    "suite", deadline=None, database=None, derandomize=True, max_examples=40,
    suppress_health_check=[hypothesis.HealthCheck.too_slow,
                           hypothesis.HealthCheck.function_scoped_fixture])
# HYPOTHESIS_PROFILE=long looks further, and elsewhere each time.
hypothesis.settings.register_profile(
    "long", hypothesis.settings.get_profile("suite"), derandomize=False, max_examples=2000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# Nothing here may ask a network.
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1",
                  TOKENIZERS_PARALLELISM="false", JAX_PLATFORMS="cpu")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: minutes and gigabytes; runs when SFT_SLOW is set")


def pytest_collection_modifyitems(items):
    if not os.environ.get("SFT_SLOW"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="SFT_SLOW is not set"))


@pytest.fixture(autouse="libasan" in os.environ.get("LD_PRELOAD", ""))
def no_child_of_fork(monkeypatch):
    """AddressSanitizer's allocator is locked for ever in a child that was forked while another
    thread was in it."""
    def refused(*_):
        pytest.skip("under AddressSanitizer, a worker cannot be forked")

    monkeypatch.setattr("multiprocessing.popen_fork.Popen._launch", refused)


def pytest_report_header(config):
    return "libsafetensors %s from %s" % (libsafetensors.__version__, libsafetensors.__file__)


@pytest.fixture(scope="session")
def root():
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared():
    """The folder of shared test data; skips the test without it."""
    folder = pathlib.Path(os.environ.get("SFT_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip("no folder of shared data")
    return folder


# ── URLs ──

@pytest.fixture(params=["curl", "python"])
def transport(request, monkeypatch):
    monkeypatch.setenv("LIBSAFETENSORS_TRANSPORT", request.param)
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_TOKEN", "http_proxy", "https_proxy",
                 "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    before = remote.use(None)
    yield request.param
    remote.use(before)


@pytest.fixture
def site():
    with server.Site() as one:
        yield one
