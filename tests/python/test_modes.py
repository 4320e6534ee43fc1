"""What is written from private files is private (the command: tests/attack/modes.py)."""
import os
import stat
import sys

import numpy as np
import pytest

import libsafetensors as st
from libsafetensors import dataset
from libsafetensors.numpy import save_file

sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "cli"))
import foreign  # noqa: E402

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a system without modes")


@pytest.fixture(autouse=True)
def umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def is_private(path):
    return stat.S_IMODE(os.stat(path).st_mode) & 0o077 == 0


def two_shards(folder):
    foreign.folder(folder)
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


@pytest.mark.parametrize("private", [None, 0, 1, 2])
def test_an_import_of_several_files(tmp_path, private):
    folder, out = tmp_path / "model", tmp_path / "out.safetensors"
    files = two_shards(str(folder))
    if private is not None:
        os.chmod(files[private], 0o600)
    index = next(path for path in files if path.endswith(".json"))
    st.open_import(index).save(out)
    assert is_private(out) == (private is not None)


@pytest.mark.parametrize("private", [None, 0, 1, 2])
def test_a_set(tmp_path, private):
    folder = tmp_path / "model"
    folder.mkdir()
    for i in range(2):
        save_file({"t%d" % i: np.ones(4, "f4")}, folder / ("s%d.safetensors" % i))
    (folder / "model.safetensors.index.json").write_text(
        '{"weight_map": {"t0": "s0.safetensors", "t1": "s1.safetensors"}}')
    if private is not None:
        os.chmod(sorted(folder.iterdir())[private], 0o600)
    for name in ("out", "out.safetensors"):
        st.convert(folder / "model.safetensors.index.json", tmp_path / name, "F16")
    for path in [tmp_path / "out.safetensors", *(tmp_path / "out").iterdir()]:
        assert is_private(path) == (private is not None), path


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o600])
def test_hdf5(tmp_path, mode):
    h5py = pytest.importorskip("h5py")
    from libsafetensors import h5
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["w"] = np.ones(4, "f4")
    os.chmod(tmp_path / "in.h5", mode)
    h5.convert(tmp_path / "in.h5", tmp_path / "out.safetensors")
    assert stat.S_IMODE(os.stat(tmp_path / "out.safetensors").st_mode) == mode


def test_a_writer(tmp_path):
    with st.Writer(tmp_path / "w", {"a": ("U8", [1])}, limit_mode=0o640) as writer:
        assert not any(tmp_path.glob("w"))
        writer.write("a", b"1")
    assert stat.S_IMODE(os.stat(tmp_path / "w").st_mode) == 0o640


def test_the_index_of_a_private_dataset(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"id": ["a", "b"], "v": [1.0, 2.0]})
    dataset.write(table, tmp_path / "d", name_col="id", generate_index=True)
    private = ["dataset_manifest.json", "_tensor_index.parquet"]
    assert not any(is_private(tmp_path / "d" / name) for name in private)
    for name in private:
        os.chmod(tmp_path / "d" / name, 0o600)
    dataset.write(pa.table({"id": ["c"], "v": [3.0]}), tmp_path / "d", mode="append",
                  name_col="id", generate_index=True)
    assert all(is_private(tmp_path / "d" / name) for name in private)
