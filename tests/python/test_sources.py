"""What functions take as a model: paths, Files, tensors in memory and objects that are read, with the
same bytes; and what they refuse, by an exception of the right kind, before anything is written."""
import io
import os
import time

import numpy as np
import pytest

import libsafetensors as st
from libsafetensors import SafetensorError, TensorNotFoundError
from libsafetensors.numpy import load_file, save_file

LORA = "lora_A.weight", "lora_B.weight"


@pytest.fixture
def tensors():
    torch, ml_dtypes = pytest.importorskip("torch"), pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(3)
    return {"fortran": np.asfortranarray(rng.standard_normal((5, 6)).astype("f4")),
            "strided": torch.arange(12.).reshape(3, 4).T, "empty": np.zeros((0, 3), "f4"),
            "scalar": np.float32(4), "bf16": np.ones(3, ml_dtypes.bfloat16),
            "big": np.arange(4, dtype=">f4"), "half": torch.ones(5, dtype=torch.float16),
            "bool": np.ones(5, bool), "last": torch.zeros(0)}


@pytest.fixture(params=["tensors", "file", "read", "bytes", "object"])
def source(request, tensors, tmp_path):
    path = tmp_path / "model.safetensors"
    st.merge(tensors, path)
    return {"tensors": lambda: tensors, "file": lambda: st.open(path),
            "read": lambda: st.open(path, mode="read"),
            "bytes": lambda: st.open(path.read_bytes()),
            "object": lambda: io.BytesIO(path.read_bytes())}[request.param]()


def content(path):
    return st.hash(path, "content")["computed"]["content"]


def test_models_are_computed_from_any_source(source, tmp_path):
    path, out = tmp_path / "model.safetensors", tmp_path / "out.safetensors"
    assert st.diff(source, path)["same"] and st.diff(path, source)["same"]
    assert len(st.ls(source)["tensors"]) == 9 and st.info(source)["file"]["tensors"] == 9
    assert st.fits(source, source)["fit"] == "unknown"
    for make in (lambda one, to: st.convert(one, to, "F64", threads=2, overwrite=True),
                 lambda one, to: st.convert(one, to, "F16", names="s*", overwrite=True),
                 lambda one, to: st.dequantize(one, to, overwrite=True),
                 lambda one, to: st.merge_models([one, one], to, overwrite=True),
                 lambda one, to: st.merge(one, to, overwrite=True)):
        make(source, out)
        make(path, tmp_path / "want.safetensors")
        assert content(out) == content(tmp_path / "want.safetensors")
    assert st.merge_of(source, [source])["fits"]
    renamed = st.rename(source, {"big": "large"}, output=tmp_path / "renamed.safetensors")
    assert renamed.renamed == (("big", "large"),) and "large" in st.open(tmp_path / "renamed.safetensors")
    with pytest.raises(TensorNotFoundError, match="did you mean \"strided\""):
        st.convert(source, out, "F16", names="striped")


def test_adapters_from_any_source(tmp_path):
    rng = np.random.default_rng(4)
    layer = "model.layers.0.self_attn.q_proj."
    model = {layer + "weight": rng.standard_normal((8, 8)).astype("f4")}
    adapter = {"base_model.model." + layer + LORA[0]: rng.standard_normal((2, 8)).astype("f4"),
               "base_model.model." + layer + LORA[1]: rng.standard_normal((8, 2)).astype("f4")}
    config = b'{"peft_type": "LORA", "r": 2, "lora_alpha": 4}'
    save_file(model, tmp_path / "model.safetensors")
    save_file(adapter, tmp_path / "adapter_model.safetensors")
    (tmp_path / "adapter_config.json").write_bytes(config)
    files = tmp_path / "model.safetensors", tmp_path / "adapter_model.safetensors"
    out = tmp_path / "out.safetensors"
    st.lora.merge(files[0], files[1], out)
    want = content(out)
    for given in ((st.open(files[0]), st.open(files[1])), (model, st.lora.Adapter(adapter, config=config))):
        done = st.lora.merge(given[0], given[1], out, overwrite=True)
        assert content(out) == want and done["changed"] == 1
    assert done["adapters"][0]["path"] == "-"
    for one in (files[1], st.open(files[1])):
        assert st.lora.info(one)["modules"][0]["scale"] == 2
    assert len(st.lora.stack([(adapter, 0.5), files[1]], out, overwrite=True)["modules"]) == 1
    assert st.lora.resize(adapter, out, rank=1, overwrite=True)["modules"][0]["rank"] == 1
    for dtype in ("F16", "float16", np.float16):
        st.lora.resize(adapter, out, rank=1, dtype=dtype, overwrite=True)
        assert {tensor.dtype for tensor in st.open(out).values()} == {"F16"}
    assert len(st.lora.extract({layer + "weight": model[layer + "weight"] + 1}, model, out, rank=1,
                               overwrite=True)["modules"]) == 1
    made = st.layout(model, tmp_path / "pipeline", to="diffusers")
    assert made["components"][0]["path"] == "-"


def test_memory_that_was_changed_is_what_is_converted(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"x": np.ones(4, "f4")}, path)
    with st.open(path, mode="cow") as file:
        file["x"].numpy()[:] = 7
        st.convert(file, tmp_path / "b.safetensors", "F64")
    assert (load_file(tmp_path / "b.safetensors")["x"] == 7).all()
    with pytest.raises(ValueError, match="File is closed"):
        st.convert(file, tmp_path / "c.safetensors", "F64")
    for mode in ("read", "copy"):
        tensor = st.open(path, mode=mode)["x"]
        tensor.numpy()[:] = 8
        st.convert({"x": tensor}, tmp_path / "c.safetensors", "F64", overwrite=True)
        assert (load_file(tmp_path / "c.safetensors")["x"] == 8).all()
    values = {"x": np.arange(6, dtype="f4").reshape(2, 3).T}
    st.convert(values, tmp_path / "d.safetensors", "F64")
    assert (load_file(tmp_path / "d.safetensors")["x"] == values["x"]).all()


class Raises:
    """An object that fails after a number of reads."""

    def __init__(self, path, count):
        self._data, self._left = path.read_bytes(), count
        self.size = len(self._data)

    def read_at(self, offset, length):
        self._left -= 1
        if self._left < 0:
            raise KeyError("mine")
        return self._data[offset:offset + length]


def test_a_source_that_raises_while_another_is_slow(path):
    class Slow(Raises):
        def read_at(self, offset, length):
            time.sleep(0.12)
            return super().read_at(offset, length)
    for count, first in ((2, 0), (2, 1), (3, 0), (3, 1)):
        models = [Raises(path, count), Slow(path, 99)]
        with pytest.raises((KeyError, OSError), match="mine"):  # of another thread: with its text
            st.merge_models(models[::-1] if first else models, path.parent / "out", threads=2,
                            progress=lambda done, total: None)
    assert os.listdir(path.parent) == ["m.safetensors"]


def test_subclasses_of_arrays(tmp_path):
    array = np.arange(500_000, dtype="f4").reshape(1000, 500)
    for one in (np.asmatrix(array), np.ma.masked_array(array, mask=array < 0)):
        assert st.diff({"x": one}, {"x": array})["same"]


def test_memory_that_was_resized():
    torch, ml_dtypes = pytest.importorskip("torch"), pytest.importorskip("ml_dtypes")
    from libsafetensors import _memory
    tensor, array = torch.ones(1 << 20), np.ones(1 << 20, ml_dtypes.bfloat16)
    made = _memory._Bytes({"a": tensor, "b": array})
    tensor.untyped_storage().resize_(0)
    array.resize(3, refcheck=False)
    for offset in made._begins[:2]:
        with pytest.raises(ValueError, match="its memory was resized"):
            made.read_at(offset, 10)


def test_a_model_in_memory_has_a_name_where_it_is_merged(path):
    st.merge_models([load_file(path), io.BytesIO(path.read_bytes())], path.parent / "out")
    assert st.open(path.parent / "out").metadata()["modelspec.merged_from"] == "memory, memory (2)"
    st.merge(bytearray(path.read_bytes()), path.parent / "out", overwrite=True)
    assert st.diff(path, path.parent / "out")["same"]


@pytest.mark.parametrize("count", [0, 2])
def test_what_a_source_raises_comes_out(path, count):
    for call in (lambda one: st.convert(one, path.parent / "out", "F16"),
                 lambda one: st.convert(one, path.parent / "out", "F16", threads=3),
                 lambda one: st.diff(one, path), lambda one: st.merge(one, path.parent / "out"),
                 lambda one: st.merge_models([one, path], path.parent / "out")):
        with pytest.raises(KeyError, match="mine"):
            call(Raises(path, count))
    assert os.listdir(path.parent) == ["m.safetensors"]


def test_thousands_of_calls_leak_nothing(path):
    import resource
    import sys
    values = {"x": np.ones((3, 4), "f4").T, "y": np.ones(4, "f2")}
    file = st.open(path)

    def many(count):
        for _ in range(count):
            st.convert(values, path.parent / "out", "F64", dry_run=True)
            st.convert(file, path.parent / "out", "F64", dry_run=True)
            st.diff(values, values)
            with pytest.raises(TypeError):
                st.convert({"a": 5}, path.parent / "out", "F16")
    many(500)
    references = sys.getrefcount(values["x"]), sys.getrefcount(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many(2500)
    assert (sys.getrefcount(values["x"]), sys.getrefcount(file)) == references
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2048


def test_large_tensors_are_read_in_pieces(tmp_path):
    from libsafetensors import _memory
    values = {"t%d" % i: np.arange(1 << 16, dtype="f4").reshape(256, 256)[:, ::1 + i % 2]
              for i in range(12)}
    made = _memory._Bytes(values)
    data = b"".join(bytes(made.read_at(at, 1000)) for at in _offsets(made, 1000))
    save_file(values, tmp_path / "a.safetensors", keep_order=True)
    assert data == (tmp_path / "a.safetensors").read_bytes()
    assert 0 < len(made._packed) <= _memory._PACKED and made.read_at(made.size, 10) == b""
    with st.open(tmp_path / "a.safetensors", mode="read") as file:
        again = _memory._Bytes({name: file[name] for name in values})
        assert b"".join(bytes(again.read_at(at, 1000)) for at in _offsets(again, 1000)) == data


def _offsets(made, most):
    at = 0
    while at < made.size:
        yield at
        at += len(bytes(made.read_at(at, most)))


@pytest.fixture
def path(tmp_path):
    save_file({"layers.0.w": np.ones((4, 4), "f4"), "norm": np.ones(4, "f4")}, tmp_path / "m.safetensors",
              {"ss_a": "1", "ss_b": "2", "title": "one", "x*": "3"})
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize("kind, words, call", [
    (TypeError, "expected a mapping or a function", lambda p, out: st.rename(p, "x")),
    (TypeError, "expected a mapping or a function", lambda p, out: st.rename(p, [("a", "b")])),
    (ValueError, "expected an output", lambda p, out: st.rename({"a": np.ones(1)}, {"a": "b"})),
    (ValueError, "found none", lambda p, out: st.merge([], out)),
    (TypeError, "not int", lambda p, out: st.merge([5], out)),
    (TypeError, "expected a mapping of names", lambda p, out: st.save_sharded(str(p), out)),
    (TypeError, "expected patterns", lambda p, out: st.select(p, out, keep=[5])),
    (TypeError, "expected several", lambda p, out: st.merge_models(str(p), out)),
    (TypeError, "format: expected a str", lambda p, out: st.quantize(p, out, None)),
    (TypeError, "program: expected a str", lambda p, out: st.save_as(p, None)),
    (TypeError, "cache: expected a value", lambda p, out: st.find(p, "m", cache=True)),
    (TypeError, "threads: expected a value", lambda p, out: st.dup(p, threads=True)),
    (TypeError, "expected paths or words, found dict", lambda p, out: st.find(p, where={"kind": "x"})),
    (TypeError, "expected paths or words, found File", lambda p, out: st.dup(st.open(p))),
    (TypeError, "expected paths or words, found BytesIO", lambda p, out: st.infos(io.BytesIO(b"x"))),
    (TypeError, "facts: expected a mapping", lambda p, out: st.note(p, [("rating", 1)])),
    (TypeError, "tags: expected words", lambda p, out: st.note(p, {"tags": ["a", 5]})),
    (ValueError, "as a fact, found 5", lambda p, out: st.note(p, {5: "a"})),
    (ValueError, "target: expected a folder", lambda p, out: st.mv(p, "")),
    (TypeError, "to: expected a str", lambda p, out: st.mv(p, to=5)),
    (FileNotFoundError, "nope", lambda p, out: st.find(p, fits=p.parent / "nope")),
    (FileNotFoundError, "nope", lambda p, out: st.infos(p, records="nope")),
    (ValueError, "keep: expected patterns", lambda p, out: st.select(p, out, keep=[])),
    (ValueError, "match: expected patterns", lambda p, out: st.rename(p, add_prefix="x", match=())),
    (ValueError, "match: expected patterns", lambda p, out: st.diff(p, p, match=[])),
    (ValueError, "only: expected patterns", lambda p, out: st.quantize(p, out, "fp8", only=[])),
    (TypeError, "a list of weights", lambda p, out: st.merge_models([p, p], out, weights="12")),
    (TypeError, "mapping of params", lambda p, out: st.merge_models([p, p], out, params=[("t", 1)])),
    (TypeError, "expected several", lambda p, out: st.merge_of(p, str(p))),
    (ValueError, "seed: expected", lambda p, out: st.merge_models([p, p], out, seed=-1)),
    (ValueError, "stochastic: expected", lambda p, out: st.lora.merge(p, p, out, stochastic=1 << 64)),
    (ValueError, "expected a pair", lambda p, out: st.lora.resize(p, out, rule=("sv_ratio",))),
    (ValueError, "expected a pair", lambda p, out: st.lora.resize(p, out, rule="sv_ratio")),
    (ValueError, "expected a size", lambda p, out: st.split(p, out, max_size=0)),
    (TypeError, "integer", lambda p, out: st.split(p, out, count="2")),
    (ValueError, "expected a number of shards", lambda p, out: st.split(p, out, count=1 << 80)),
    (TensorNotFoundError, "did you mean 'norm'", lambda p, out: st.rename(p, {"norn": "x"})),
    (TensorNotFoundError, "did you mean \"norm\"", lambda p, out: st.rename_tensors(p, {"norn": "x"})),
    (TensorNotFoundError, "did you mean 'norm'", lambda p, out: st.select(p, out, keep="norn")),
    (SafetensorError, "already exists|two tensors", lambda p, out: st.rename_tensors(
        p, {"norm": "layers.0.w"})),
    (ValueError, "expected files for keep_mtime", lambda p, out: st.convert(
        load_file(p), out, "F16", keep_mtime=True)),
    (TypeError, "Key `a` is invalid", lambda p, out: st.convert({"a": 5}, out, "F16")),
])
def test_what_is_refused(path, kind, words, call):
    before = path.read_bytes()
    with pytest.raises(kind, match=words):
        call(path, path.parent / "out")
    assert path.read_bytes() == before and os.listdir(path.parent) == ["m.safetensors"]


def test_flags_are_what_is_true(path):
    assert len(st.find(path.parent, "norm", recursive=np.True_, where="file.tensors=2").models) == 0
    assert len(st.find(path.parent, where="file.tensors=2", recursive=1).models) == 1
    assert len(st.find(path, where="file.tensors=2", cache=os.fsencode(path.parent / "c")).models) == 1


def test_sizes_of_numpy(path, tmp_path):
    assert len(st.split(path, tmp_path / "s", max_size=np.int64(64)).files) == 2
    assert len(st.split(path, tmp_path / "t", count=np.int32(2)).files) == 2


def test_keys_are_removed_by_patterns(path, tmp_path):
    assert st.edit_metadata(path, remove="nope*")["method"] == "none"
    st.edit_metadata(path, {"new": "4"}, remove=["ss_*", "title"])
    assert st.open(path).metadata() == {"x*": "3", "new": "4"}
    st.edit_metadata(path, remove="x*")  # a key that is there is itself
    assert st.open(path).metadata() == {"new": "4"}
    st.split(path, tmp_path / "s", count=2)
    st.edit_metadata(tmp_path / "s", {"made by": "me"})
    st.edit_metadata(tmp_path / "s", remove="made*")
    assert "made by" not in (tmp_path / "s" / "model.safetensors.index.json").read_text()


def test_devices_that_are_not_there(path):
    torch = pytest.importorskip("torch")
    with st.open(path) as file:
        for device in ("xpu", "mps"):
            if not getattr(torch, device).is_available():
                with pytest.raises(RuntimeError, match="%s is not there; there are: cpu, meta" % device):
                    file["norm"].torch(device=device)
        with pytest.raises(SafetensorError, match="device cdua is invalid") as told:
            file["norm"].torch(device="cdua")
        assert told.value.hint.startswith("there are: cpu, meta")
        with pytest.raises(TypeError, match="torch does not convert"):
            file["norm"].torch(dtype="F4")
