"""transformers with ours for the official package: programs/with_transformers.py three ways."""
import pytest

from standin import ROOT, standin, three_ways  # noqa: F401

pytest.importorskip("torch")


@pytest.mark.long
def test_models(tmp_path, standin):  # noqa: F811
    pytest.importorskip("transformers")
    files = three_ways(ROOT / "tests/python/programs/with_transformers.py", tmp_path, standin)
    assert len(files) >= 10
