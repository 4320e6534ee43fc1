"""A File as a mapping, and the errors and truth value of its members."""
import collections
import collections.abc
import pickle

import numpy as np
import pytest

import libsafetensors
from libsafetensors import SafetensorError, TensorNotFoundError, _core, safe_open
from reading import pack

TENSORS = {"a": ("F32", [2], np.arange(2, dtype="<f4").tobytes()), "scalar": ("F32", [], bytes(4)),
           "empty": ("U8", [0, 3], b"")}


@pytest.fixture
def file():
    return _core.open(pack(TENSORS))


def test_it_is_a_mapping(file):
    assert isinstance(file, collections.abc.Mapping)
    assert dict(file) == dict(file.items()) == dict(zip(file.keys(), file.values()))
    assert {**file} == dict(file) and file == dict(file) and dict(file) == file
    assert file != {} and file != {**file, "more": 1} and not file == 3 and file == file
    assert file.get("none", default=7) == 7 and file.get(name="a") == file["a"]
    assert len({file, file}) == 1 and file != _core.open(pack(TENSORS))
    match file:
        case {"a": found}:
            assert found == file["a"]
        case _:
            pytest.fail("a match statement does not take it for a mapping")
    file.close()
    assert file == file and file != {}


def test_chain_map(file):
    chain = collections.ChainMap({"b": 1}, file, {"none": 3, "b": 4})
    assert chain["b"] == 1 and chain["none"] == 3 and chain["a"] == file["a"]
    assert set(chain) == {"a", "b", "scalar", "empty", "none"}
    with pytest.raises(KeyError):
        chain["nowhere"]


def missing_of(file, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(pack(TENSORS))
    writer = _core.Writer(tmp_path / "w", [("a", "U8", [1])])
    yield lambda: file["none"]
    yield lambda: file.numpy(["none"])
    yield lambda: file.torch(["none"])
    yield lambda: writer.write("none", b"")
    yield lambda: safe_open(path, "np").get_tensor("none")
    yield lambda: safe_open(path, "np").get_slice("none")
    yield lambda: libsafetensors.slice_byte_ranges(path, "none")
    yield lambda: libsafetensors.rename_tensors(path, {"none": "some"})
    yield lambda: libsafetensors.convert(path, tmp_path / "o", "F16", names=["none"])


def test_a_missing_name_is_a_key_error_too(file, tmp_path):
    pytest.importorskip("torch")
    for use in missing_of(file, tmp_path):
        with pytest.raises(KeyError) as caught:
            use()
        error = caught.value
        assert isinstance(error, SafetensorError) and type(error) is TensorNotFoundError
        assert error.code == "tensor_not_found" and not str(error).startswith(("'", '"'))
        assert "none" in str(error)


def test_the_error_is_pickled_and_found_by_its_name(file):
    with pytest.raises(TensorNotFoundError) as caught:
        file["none"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is TensorNotFoundError is libsafetensors.TensorNotFoundError
    assert str(again) == str(caught.value) == "File does not contain tensor none"
    assert again.code == "tensor_not_found"


def test_truth(file):
    assert all(file.values()) and all([file["scalar"], file["empty"], file["a"][:0]])
    assert (file.get("empty") or "none") == file["empty"]
    assert file and not _core.open(pack({}))


def test_tensors_are_equal_when_they_are_the_same_place(file):
    assert file["a"] == file["a"] and hash(file["a"]) == hash(file["a"])
    assert file["a"][:1] == file["a"][:1] != file["a"][1:] and file["a"][:1] != file["a"]
    assert hash(file["a"][:1]) == hash(file["a"][:1])
    assert len({file["a"], file["a"], file["a"][:1], file["a"][:1]}) == 2
    assert file["a"] != _core.open(pack(TENSORS))["a"] and file["a"] != 3
    assert (file["a"] == np.array([0, 5], "f4")).tolist() == [True, False]
    with pytest.raises(TypeError):
        file["a"] < file["a"]
