"""The examples of docs/ray.md and docs/daft.md run as printed."""
import re

import pytest

import holding


def run(text, name):
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(compile(block, name, "exec"), names)


def made():
    """What both pages say exists afterwards."""
    told = holding.whole("embeddings")
    assert told["total_samples"] == 2000 and told["version"] == 2
    got = holding.stacked("embeddings")
    assert sorted(got["id"].tolist()) == sorted(2 * list(range(1000)))
    assert got["embedding"].dtype == "float32" and got["embedding"].shape == (2000, 16)
    assert (got["embedding"] == got["id"][:, None]).all()
    assert holding.whole("by_name")["index"]
    got = holding.keyed("by_name")
    assert sorted(got) == sorted("user%d__embedding" % i for i in range(1000))
    assert all((got["user%d__embedding" % i] == i).all() for i in range(0, 256, 5))


def test_ray(ray, docs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run((docs / "ray.md").read_text(encoding="utf-8"), "docs/ray.md")
    made()


def test_daft(docs, tmp_path, monkeypatch):
    pytest.importorskip("daft")
    monkeypatch.chdir(tmp_path)
    run((docs / "daft.md").read_text(encoding="utf-8"), "docs/daft.md")
    made()
