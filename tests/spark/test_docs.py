"""The examples of docs/spark.md run as printed, one after the other."""
import re

import pytest

import holding


@pytest.mark.source
@pytest.mark.local
def test_examples(spark, root_of_docs, tmp_path):
    text = (root_of_docs / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 5
    # Relative paths are the JVM's, which has its own folder.
    blocks = [re.sub(r'"(embeddings|embeddings_2|by_name)"',
                     lambda m: repr(str(tmp_path / m[1])), block) for block in blocks]
    names = {"spark": spark}
    for block in blocks:
        exec(compile(block, "docs/spark.md", "exec"), names)
    for name in ("embeddings", "embeddings_2", "by_name"):
        holding.whole(str(tmp_path / name))


def test_every_write_option_is_named(root_of_docs):
    from libsafetensors import dataset
    text = (root_of_docs / "dataset.md").read_text(encoding="utf-8")
    assert [name for name in dataset.OPTIONS if "`%s`" % name not in text] == []


def test_every_option_of_spark_is_named(root_of_docs):
    from libsafetensors.spark._schema import _WRITE_MORE, READ_OPTIONS
    text = (root_of_docs / "spark.md").read_text(encoding="utf-8")
    assert [name for name in (*READ_OPTIONS, *_WRITE_MORE) if "| `%s` |" % name not in text] == []


CONNECTOR = ("batch_size", "name_col", "dtype", "columns", "shapes", "duplicatesStrategy",
             "generate_index", "target_shard_size_mb", "kv_separator", "tail_strategy",
             "path", "inferSchema")


def test_every_option_of_the_connector_is_documented(root_of_docs):
    """And that all that are not the connector's are said to be new."""
    from libsafetensors import dataset
    from libsafetensors.spark._schema import _WRITE_MORE, READ_OPTIONS
    moving = (root_of_docs / "spark-connector.md").read_text(encoding="utf-8")
    assert [name for name in CONNECTOR if "\n| `%s`" % name not in moving] == []
    new = "".join(re.findall(r"^\| – \| – \|.*", moving, re.M))
    ours = {*dataset.OPTIONS, *READ_OPTIONS, *_WRITE_MORE} - set(CONNECTOR)
    assert [name for name in ours if "`%s`" % name not in new] == []
