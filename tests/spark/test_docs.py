"""The examples of docs/spark.md run as they stand there, one after the other."""
import re

import holding
import pytest


@pytest.mark.cluster
def test_examples(spark, root_of_docs, tmp_path, monkeypatch):
    text = (root_of_docs / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 5
    monkeypatch.chdir(tmp_path)
    names = {"spark": spark}
    for block in blocks:
        exec(compile(block, "docs/spark.md", "exec"), names)
    for name in ("embeddings", "embeddings_2", "by_name"):
        holding.whole(str(tmp_path / name))


def test_every_write_option_is_named(root_of_docs):
    from libsafetensors import dataset
    text = (root_of_docs / "dataset.md").read_text(encoding="utf-8")
    assert [name for name in dataset.OPTIONS if "`%s`" % name not in text] == []


def test_every_read_option_is_named(root_of_docs):
    from libsafetensors.spark._schema import READ_OPTIONS
    text = (root_of_docs / "spark.md").read_text(encoding="utf-8")
    assert [name for name in READ_OPTIONS if "| `%s` |" % name not in text] == []
