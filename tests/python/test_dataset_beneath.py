"""Links planted in a dataset's folder: nothing outside it is read or changed."""
import os

import numpy as np
import pytest

from libsafetensors import SafetensorError, dataset

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path):
    dataset.write(pa.table({"a": np.arange(6, dtype=np.int32)}), tmp_path / "d", batch_size=2)
    home = tmp_path / "home"
    home.mkdir()
    return tmp_path / "d"


def test_shards_that_are_links(folder, tmp_path):
    shard = sorted(folder.glob("part-*"))[0]
    shard.rename(tmp_path / "home" / shard.name)
    shard.symlink_to(tmp_path / "home" / shard.name)
    with pytest.raises(SafetensorError) as caught:
        list(dataset.open(folder))
    assert caught.value.code in ("index_path", "dataset_shard")
    assert "leads out" in str(caught.value)


@pytest.mark.parametrize("name", [".dataset.lock", "_tensor_index.parquet"])
@pytest.mark.parametrize("there", [False, True])
def test_what_a_commit_opens(folder, tmp_path, name, there):
    victim = tmp_path / "home" / "victim"
    if there:
        victim.write_bytes(b"mine")
    if (folder / name).exists():
        (folder / name).unlink()
    (folder / name).symlink_to(victim)
    try:
        dataset.write(pa.table({"a": np.arange(6, dtype=np.int32)}), folder, mode="append",
                      batch_size=2)
    except (OSError, SafetensorError):
        pass
    assert victim.exists() == there
    assert not there or victim.read_bytes() == b"mine"
    assert os.listdir(tmp_path / "home") == ["victim"] * there


def test_an_index_that_is_a_pipe(folder):
    if (folder / "_tensor_index.parquet").exists():
        (folder / "_tensor_index.parquet").unlink()
    os.mkfifo(folder / "_tensor_index.parquet")
    assert len(dataset.open(folder)) > 0
