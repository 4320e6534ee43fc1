"""diffusers with ours for the official package: programs/with_diffusers.py three ways."""
import pytest

from standin import ROOT, standin, three_ways  # noqa: F401

pytest.importorskip("torch")


@pytest.mark.long
def test_models(tmp_path, standin):  # noqa: F811
    pytest.importorskip("diffusers")
    files = three_ways(ROOT / "tests/python/programs/with_diffusers.py", tmp_path, standin)
    assert len(files) >= 6
