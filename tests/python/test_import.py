"""open_import and recognise: checkpoints of torch and archives of NumPy, without their loaders."""
import os
import zipfile

import numpy as np
import pytest

import libsafetensors
import libsafetensors.numpy


class Command:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, ("touch '%s'" % self.path,)


def test_npz(tmp_path):
    path = tmp_path / "m.npz"
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(4)}
    np.savez(path, **arrays)
    with libsafetensors.open_import(path) as file:
        read = file.numpy()
        assert sorted(read) == ["a", "b"]
        for name, array in arrays.items():
            assert read[name].dtype == array.dtype and np.array_equal(read[name], array)
    with pytest.raises(ValueError, match="closed"):
        len(file.numpy())


def test_recognise(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.arange(4))
    np.save(tmp_path / "m.npy", np.arange(4))
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    (tmp_path / "text").write_text("no model at all")
    libsafetensors.numpy.save_file({"a": np.arange(4)}, tmp_path / "m.safetensors")
    names = {"m.npz": "npz", "m.npy": "npy", "other.pt": None, "text": None, "m.safetensors": None}
    for name, format in names.items():
        assert libsafetensors.recognise(tmp_path / name) == format


@pytest.mark.parametrize("zipped", [True, False])
def test_torch(tmp_path, zipped):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m.ckpt"
    state = {"w": torch.arange(6.0).reshape(2, 3).T, "h": torch.ones(3, dtype=torch.bfloat16)}
    torch.save(state, path, _use_new_zipfile_serialization=zipped)
    with libsafetensors.open_import(path) as file:
        read = file.torch()
    loaded = torch.load(path, weights_only=True)
    assert read.keys() == loaded.keys()
    assert all(torch.equal(read[name], loaded[name]) for name in loaded)


def test_nested_and_shared(tmp_path):
    torch = pytest.importorskip("torch")
    path, w = tmp_path / "m.ckpt", torch.ones(3)
    torch.save({"model": {"a.w": w, "a.v": w}, "optimizer": {"m": torch.zeros(3)}, "epoch": 3}, path)
    model = libsafetensors.open_import(path, root="model")
    assert list(model) == ["a.w"] and model.metadata() == {"format": "pt", "a.v": "a.w"}
    assert [a["name"] for a in model.report["aliases"]] == ["a.v"]
    assert [b["path"] for b in model.report["branches"] if b["chosen"]] == ["model"]
    assert {one["path"] for one in model.report["left_out"]} >= {"optimizer"}
    assert len(libsafetensors.open_import(path, root="model", shared="copy")) == 2
    assert "optimizer.m" in libsafetensors.open_import(path, all=True)
    assert "epoch" in libsafetensors.open_import(path, all=True, scalars=True)
    with pytest.raises(libsafetensors.SafetensorError) as error:
        libsafetensors.open_import(path, root="model", shared="refuse")
    assert error.value.code == "foreign_shared"
    with pytest.raises(ValueError, match="branch"):
        libsafetensors.open_import(path, root="nowhere")


def test_nothing_runs(tmp_path):
    torch = pytest.importorskip("torch")
    path, trace = tmp_path / "m.ckpt", tmp_path / "trace"
    torch.save({"w": torch.ones(3), "x": Command(trace)}, path)
    with libsafetensors.open_import(path) as model:
        assert list(model) == ["w"] and model.format == "torch"
        assert model.report["globals"][0]["name"] == "system"
        assert model.report["globals"][0]["calls"] == 1
    assert not trace.exists()


def test_as(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.arange(4, dtype=np.uint16), b=np.arange(4, dtype=np.uint16))
    model = libsafetensors.open_import(tmp_path / "m.npz", as_={"a*": "BF16"})
    assert {name: model[name].dtype for name in model} == {"a": "BF16", "b": "U16"}
    with pytest.raises((ValueError, TypeError)):
        libsafetensors.open_import(tmp_path / "m.npz", as_={"a": "F32"})
    with pytest.raises((ValueError, TypeError)):
        libsafetensors.open_import(tmp_path / "m.npz", as_={"a": "nonsense"})
    for pattern in ("[!a]", "[^a]"):
        model = libsafetensors.open_import(tmp_path / "m.npz", as_={pattern: "BF16"})
        assert {name: model[name].dtype for name in model} == {"a": "U16", "b": "BF16"}


def test_save_names_the_output(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.zeros(2, "f4"))
    with pytest.raises(FileNotFoundError, match=r"none.out\.safetensors"):
        libsafetensors.import_model(tmp_path / "m.npz", tmp_path / "none" / "out.safetensors")


def test_save(tmp_path):
    torch = pytest.importorskip("torch")
    path, out = tmp_path / "m.ckpt", tmp_path / "m.safetensors"
    state = {"w": torch.arange(6.0).reshape(2, 3).T, "h": torch.ones(3, dtype=torch.bfloat16)}
    torch.save(state, path)
    ticks = []
    report = libsafetensors.import_model(path, out, progress=lambda *at: ticks.append(at))
    assert report["tensors"] == 2 and ticks
    from libsafetensors.torch import load_file
    loaded = load_file(out)
    assert loaded.keys() == state.keys()
    assert all(torch.equal(loaded[name], state[name]) for name in state)
    with pytest.raises(FileExistsError):
        libsafetensors.import_model(path, out)
    libsafetensors.import_model(path, out, overwrite=True, sync=False)
    model = libsafetensors.open_import(path)
    model.verify()
    kept = model["w"]
    model.close()
    model.close()
    with pytest.raises(ValueError, match="closed"):
        model.save(out, overwrite=True)
    assert kept.shape == (3, 2)


def test_damaged(tmp_path):
    torch = pytest.importorskip("torch")
    path, out = tmp_path / "m.ckpt", tmp_path / "m.safetensors"
    torch.save({"w": torch.arange(1000.0)}, path)
    data = bytearray(path.read_bytes())
    data[data.index(torch.arange(1000.0).numpy().tobytes()) + 5] ^= 1
    path.write_bytes(data)
    with libsafetensors.open_import(path) as model:
        for call in (model.verify, lambda: model.save(out)):
            with pytest.raises(libsafetensors.SafetensorError) as error:
                call()
            assert error.value.code == "foreign_checksum"
    assert not out.exists()


def test_stop(tmp_path):
    torch = pytest.importorskip("torch")
    path, out = tmp_path / "m.ckpt", tmp_path / "m.safetensors"
    torch.save({"w": torch.arange(10.0)}, path)

    def stop(done, total):
        raise KeyError("enough")
    with pytest.raises(KeyError):
        libsafetensors.import_model(path, out, progress=stop)
    assert not out.exists()


def test_refusals(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"no model at all")
    with pytest.raises(libsafetensors.SafetensorError) as error:
        libsafetensors.open_import(path)
    assert error.value.code == "foreign_kind"
    with pytest.raises(FileNotFoundError):
        libsafetensors.open_import(tmp_path / "none")
    with pytest.raises(ValueError, match="shared"):
        libsafetensors.open_import(path, shared="both")
    with pytest.raises(TypeError):
        libsafetensors.open_import(path, nonsense=1)
