"""Which backend is used where none is given, and saving over a file that is loaded or mapped."""
import errno
import inspect
import json
import os
import struct
import sys

import numpy as np
import pytest

import libsafetensors
from libsafetensors import _core, _files, safe_open
from libsafetensors.numpy import load_file, save_file

WINDOWS = sys.platform == "win32"


# ── Decisions ──

@pytest.mark.parametrize("platform, expected", [("linux", "mmap"), ("darwin", "mmap"),
                                                ("win32", "pread")])
def test_the_default_backend(platform, expected):
    assert _files.default_backend(platform) == expected


def test_the_default_of_this_system():
    expected = "pread" if WINDOWS else "mmap"
    defaults = [inspect.signature(safe_open.__init__).parameters["backend"].default]
    if "torch" in sys.modules or not WINDOWS:
        torch = pytest.importorskip("libsafetensors.torch")
        defaults += [inspect.signature(function).parameters["backend"].default
                     for function in (torch.load_file, torch.load_model)]
    assert set(defaults) == {expected}


@pytest.mark.parametrize("platform, backend, framework, is_path, expected", [
    ("linux", "mmap", "torch", True, "auto"), ("linux", "mmap", "torch", False, "auto"),
    ("linux", "pread", "torch", True, "read"), ("linux", "mmap", "numpy", True, "copy"),
    ("linux", "pread", "numpy", True, "read"),
    ("darwin", "mmap", "torch", True, "auto"),
    ("win32", "mmap", "torch", True, "cow"), ("win32", "mmap", "torch", False, "auto"),
    ("win32", "pread", "torch", True, "read"), ("win32", "pread", "torch", False, "read"),
    ("win32", "mmap", "numpy", True, "copy")])
def test_the_mode_of_a_backend(platform, backend, framework, is_path, expected):
    assert _files.open_mode(backend, framework, is_path, platform) == expected


def test_auto_maps_only_where_maps_are_free(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"a": np.arange(4096, dtype="f4")}, path)
    mapped = {}
    for mode in ("auto", "cow", "map", "read", "copy"):
        with _core.open(path, mode=mode) as file:
            one, two = file.numpy(), file.numpy()
            mapped[mode] = np.shares_memory(one["a"], two["a"])
    assert mapped == {"auto": not WINDOWS, "cow": True, "map": True, "read": False, "copy": False}


def vast(path, size):
    """A model of one tensor, most of which is a hole."""
    header = json.dumps({"x": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return path


@pytest.mark.skipif(not WINDOWS, reason="other systems map without a promise of memory")
def test_a_map_that_cannot_be_committed_is_an_error_with_a_hint(tmp_path):
    size = 1 << 42
    path = vast(tmp_path / "m.safetensors", size)
    with pytest.raises(OSError) as caught:
        _core.open(path, mode="cow")
    assert caught.value.code == "io_map" and caught.value.errno == errno.ENOMEM
    assert 'backend="pread"' in caught.value.hint
    with pytest.raises(OSError) as caught:
        _files.open_file(path, "mmap", framework="torch")
    assert caught.value.code == "io_map"
    # By default it is read, and no more of it than is asked for.
    with _core.open(path) as file:
        assert file["x"][size - 3:].tobytes() == bytes(3)


# ── Saving over a file ──

def names_in(folder):
    """Names without those of files that are removed, and only wait for their last user."""
    return [name for name in os.listdir(folder) if not (WINDOWS and name.startswith("."))]


HOLDERS = {
    "loaded": lambda path: load_file(path),
    "auto": lambda path: _core.open(path).numpy(),
    "cow": lambda path: _core.open(path, mode="cow").numpy(),
    "map": lambda path: _core.open(path, mode="map").numpy(),
    "read": lambda path: _core.open(path, mode="read")}


def put_file(path):
    save_file({"b": np.ones(3, "f4")}, path)


def put_piece_by_piece(path):
    with _core.Writer(path, [("b", "F32", [3])]) as writer:
        writer.write("b", np.ones(3, "f4"))


def put_converted(path):
    other = path.with_name("other.safetensors")
    save_file({"b": np.ones(3, "f2")}, other)
    libsafetensors.convert(other, path, "F32", overwrite=True)
    os.remove(other)


@pytest.mark.parametrize("put", [put_file, put_piece_by_piece, put_converted])
@pytest.mark.parametrize("holder", HOLDERS)
def test_saving_over_a_file_in_use(tmp_path, holder, put):
    path = tmp_path / "m.safetensors"
    values = np.arange(100000, dtype="f4")
    save_file({"a": values}, path)
    held = HOLDERS[holder](path)
    put(path)
    assert load_file(path)["b"].tolist() == [1, 1, 1]
    assert names_in(tmp_path) == ["m.safetensors"]
    old = held["a"].numpy() if holder == "read" else held["a"]
    assert (old == values).all()
    del held, old
    put(path)
    assert os.listdir(tmp_path) == ["m.safetensors"]


@pytest.mark.parametrize("holder", HOLDERS)
def test_editing_a_file_in_use(tmp_path, holder):
    path = tmp_path / "m.safetensors"
    values = np.arange(100000, dtype="f4")
    save_file({"a": values}, path, {"k": "v"})
    held = HOLDERS[holder](path)
    for text in ("short", "long" * 5000, ""):
        libsafetensors.edit_metadata(path, set={"k": text})
        with _core.open(path) as file:
            assert file.metadata() == {"k": text} and (file["a"].numpy() == values).all()
    assert names_in(tmp_path) == ["m.safetensors"]
    del held
    libsafetensors.edit_metadata(path, set={"k": "long" * 9000})
    assert os.listdir(tmp_path) == ["m.safetensors"]


@pytest.mark.skipif(not WINDOWS, reason="shows what only Windows refuses")
def test_the_official_package_cannot_save_over_a_file_it_has_mapped(tmp_path):
    """The control: without it nothing says that the tests above ask anything of the system."""
    import safetensors
    import safetensors.numpy
    assert safetensors.__version__ == "0.4.2" and "libsafetensors" not in safetensors.__file__
    path = tmp_path / "m.safetensors"
    safetensors.numpy.save_file({"a": np.arange(100000, dtype="f4")}, path)
    with safetensors.safe_open(path, "np") as held:
        with pytest.raises(Exception, match="1224"):
            safetensors.numpy.save_file({"b": np.ones(3, "f4")}, path)
        put_file(path)  # which this package can, beneath the same map
        assert held.keys() == ["a"]
    assert load_file(path)["b"].tolist() == [1, 1, 1]
