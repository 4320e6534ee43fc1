"""Patterns of names, conversions and devices; tensors of numpy and torch for a Writer, a file
object and an existing file."""
import io
import os

import numpy as np
import pytest

import libsafetensors as st
from libsafetensors import _core
from libsafetensors import numpy as st_numpy
from reading import aligned, one_of_each, pack
from written import grows

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")

from libsafetensors import torch as st_torch  # noqa: E402


@pytest.fixture
def tensors():
    draw = torch.Generator().manual_seed(1)
    return {"layers.0.w": torch.randn(3, 4, generator=draw),
            "layers.1.w": torch.randn(3, 4, generator=draw),
            "layers.10.w": torch.randn(3, 4, generator=draw).to(torch.bfloat16),
            "ids": torch.arange(5), "small": torch.arange(3, dtype=torch.uint8),
            "mask": torch.tensor([True, False]), "odd[0]": torch.zeros(1)}


@pytest.fixture
def path(tensors, tmp_path):
    st_torch.save_file(tensors, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


# ── Patterns ──

PATTERNS = [
    (["layers.*"], {"layers.0.w", "layers.1.w", "layers.10.w"}),
    (["layers.?.w", "ids"], {"layers.0.w", "layers.1.w", "ids"}),
    (["layers.[1-9].*"], {"layers.1.w"}),
    (["layers.[!0].w"], {"layers.1.w"}),
    (["layers.[^0].w"], {"layers.1.w"}),
    (["odd[0]"], {"odd[0]"}),  # a name before a pattern
    (["*.w", "layers.0.w", "layers.?.w"], {"layers.0.w", "layers.1.w", "layers.10.w"}),
    (["*"], None),
]


@pytest.mark.parametrize("patterns, wanted", PATTERNS)
def test_names_may_be_patterns(path, tensors, patterns, wanted):
    wanted = set(tensors) if wanted is None else wanted
    data = path.read_bytes()
    with st.open(path) as file:
        assert set(file.torch(patterns)) == wanted
        assert set(file.numpy(iter(patterns))) == wanted
    for found in (st_torch.load_file(path, names=patterns), st_torch.load(data, names=patterns),
                  st_torch.load_file(path, names=patterns, dtype="F32"),
                  st_numpy.load_file(path, names=patterns), st_numpy.load(data, names=patterns)):
        assert set(found) == wanted


def test_a_pattern_that_matches_nothing(path):
    for load in (st_torch.load_file, st_numpy.load_file):
        with pytest.raises(KeyError, match="none") as caught:
            load(path, names=["ids", "lay?rs"])
        assert caught.value.code == "tensor_not_found" and caught.value.tensor == "lay?rs"
    with pytest.raises(st.TensorNotFoundError):
        st_torch.load_file(path, names=["idz"])
    for words in ({}, {"dtype": "F32"}):
        assert list(st_torch.load_file(path, names="ids", **words)) == ["ids"]


# ── Dtypes and devices ──

SPELLINGS = [torch.float16, np.float16, np.dtype("float16"), "float16", "F16", "f16"]


@pytest.mark.parametrize("dtype", SPELLINGS, ids=repr)
@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_floats_become_a_float(path, tensors, dtype, backend):
    for found in (st_torch.load_file(path, backend=backend, dtype=dtype),
                  st_torch.load(path.read_bytes(), dtype=dtype)):
        assert list(found) == list(st.open(path))
        for name, tensor in tensors.items():
            wanted = tensor.to(torch.float16) if tensor.is_floating_point() else tensor
            assert found[name].dtype == wanted.dtype and torch.equal(found[name], wanted), name
    arrays = st_numpy.load_file(path, backend=backend, dtype=dtype)
    for name, array in arrays.items():
        assert np.array_equal(array, found[name].numpy()), name
        assert array.dtype == found[name].numpy().dtype


def test_integers_become_an_integer(path, tensors):
    found = st.open(path).torch(dtype=np.int32)
    assert found["ids"].dtype == found["small"].dtype == torch.int32
    assert found["mask"].dtype == torch.bool and found["layers.0.w"].dtype == torch.float32
    assert found["ids"].tolist() == tensors["ids"].tolist()
    assert st.open(path).numpy(["ids"], dtype="I16")["ids"].dtype == np.int16


def test_one_tensor_becomes_anything(path, tensors):
    file = st.open(path)
    assert torch.equal(file["ids"].torch(dtype="F32"), tensors["ids"].float())
    assert file["ids"][1:3].numpy(dtype=torch.bfloat16).dtype == ml_dtypes.bfloat16
    assert np.array_equal(file["layers.10.w"].numpy(dtype="float64"),
                          tensors["layers.10.w"].double().numpy())
    # Nothing to convert: the memory of the file.
    same = file["layers.0.w"]
    assert same.torch(dtype="F32", device="cpu").data_ptr() == same.torch().data_ptr()


def test_devices_are_for_torch_to_know(path, tensors):
    file = st.open(path)
    for found in (file.torch(device="meta", dtype=torch.float16),
                  st_torch.load_file(path, "meta", dtype="float16"),
                  st_torch.load(path.read_bytes(), device=torch.device("meta"), dtype="F16")):
        assert all(tensor.is_meta for tensor in found.values())
        assert found["layers.10.w"].dtype == torch.float16 and found["ids"].dtype == torch.int64
    assert file["ids"].torch(device="meta").shape == (5,)
    for ask in (file.torch, file["ids"].torch):
        with pytest.raises(st.SafetensorError, match="device"):
            ask(device="no such device")


@pytest.mark.parametrize("dtype", ["F31", "complex128", 3, object(), None.__class__], ids=repr)
def test_what_is_no_dtype(path, dtype):
    file = st.open(path)
    for ask in (file.torch, file.numpy, file["ids"].torch, file["ids"].numpy):
        with pytest.raises((st.SafetensorError, TypeError), match="dtype"):
            ask(dtype=dtype)


def test_progress_of_a_conversion(path):
    told = []
    st_torch.load_file(path, dtype="F16", progress=lambda *at: told.append(at))
    total = st.open(path).nbytes
    assert told[-1] == (total, total)
    with pytest.raises(ZeroDivisionError):
        st_torch.load_file(path, dtype="F16", progress=lambda *at: 1 / 0)


# ── Plans and pieces of a Writer ──

def test_a_dict_of_tensors_is_a_plan(tensors, path, tmp_path):
    out = tmp_path / "out"
    plan = {**tensors, "a": np.zeros((2, 3), np.int16), "ours": st.open(path)["ids"],
            "pair": (torch.bfloat16, [4]), "named": ["float8_e4m3fn", (2,)],
            "ml": (ml_dtypes.float8_e5m2, [1]), "numpy": (np.dtype("u4"), ()),
            "python": (bool, [1])}
    widths = {"pair": 2, "named": 1, "ml": 1, "numpy": 4, "python": 1}
    with st.Writer(out, plan) as writer:
        for name in writer.keys():
            value = plan[name]
            if isinstance(value, (tuple, list)):
                value = bytes(widths[name] * int(np.prod(value[1])))
            writer.write(name, value)
    file = st.open(out)
    facts = {name: (tensor.dtype, tensor.shape) for name, tensor in file.items()}
    assert facts["pair"] == ("BF16", (4,)) and facts["named"] == ("F8_E4M3", (2,))
    assert facts["ml"] == ("F8_E5M2", (1,)) and facts["numpy"] == ("U32", ())
    assert facts["python"] == ("BOOL", (1,)) and facts["a"] == ("I16", (2, 3))
    for name, tensor in tensors.items():
        assert torch.equal(file[name].torch(), tensor), name
    assert file["ours"].numpy().tolist() == list(range(5))


def test_an_open_file_is_a_plan(path, tmp_path):
    with st.open(path) as file, st.Writer(tmp_path / "x", file, file.metadata()) as writer:
        for name, tensor in file.items():
            writer.write(name, tensor)
    assert (tmp_path / "x").read_bytes() == path.read_bytes()


def test_dtypes_of_rows_and_of_add(tmp_path):
    with st.Writer(tmp_path / "x", [("a", torch.float16, [1]), ("b", np.uint8, [1])]) as writer:
        writer.write("a", torch.ones(1, dtype=torch.float16))
        writer.write("b", b"1")
    with st.Writer(tmp_path / "y") as writer:
        writer.add("a", "bfloat16", torch.Size([2]))
        writer.write("a", torch.tensor([1.0, 2.0], dtype=torch.bfloat16))
        for wrong, kind in (("F31", st.SafetensorError), (np.dtype("M8[s]"), st.SafetensorError),
                            (3, TypeError), (torch.complex128, st.SafetensorError)):
            with pytest.raises(kind, match="dtype"):
                writer.add("c", wrong, [1])
    assert st.open(tmp_path / "y")["a"].torch().tolist() == [1.0, 2.0]


STRIDED = {
    "transposed": lambda a: a.T, "reversed": lambda a: a[::-1, ::-1],
    "every other": lambda a: a[::2],
    "broadcast": lambda a: np.broadcast_to(a[:1], (4, 6)), "packed": lambda a: a,
    "one element": lambda a: a[1:2, 2:3], "none": lambda a: a[:0],
}


@pytest.mark.parametrize("way", STRIDED)
@pytest.mark.parametrize("dtype", ["<f4", "<i2", "u1", ml_dtypes.bfloat16, "?"])
def test_strided_arrays_are_packed(way, dtype, tmp_path):
    array = STRIDED[way](np.arange(24).reshape(4, 6).astype(dtype))
    with st.Writer(tmp_path / "x", {"x": array}) as writer:
        writer.write("x", array)
    found = st.open(tmp_path / "x")["x"].numpy()
    assert found.dtype == array.dtype and np.array_equal(found, array)


@pytest.mark.parametrize("make", [
    lambda t: t.t(), lambda t: t[::2], lambda t: t.expand(2, *t.shape),
    lambda t: t.requires_grad_(), lambda t: t.to(torch.bfloat16).t(),
    lambda t: t.to(torch.complex64).conj(),
    lambda t: t.to(torch.float8_e4m3fn), lambda t: t[:0], lambda t: t[0, 0]])
def test_tensors_of_torch_are_packed(make, tmp_path):
    tensor = make(torch.arange(12.0).reshape(3, 4))
    with st.Writer(tmp_path / "x", {"x": tensor}) as writer:
        writer.write("x", tensor)
    found = st.open(tmp_path / "x")["x"].torch()
    assert found.dtype == tensor.dtype and found.shape == tensor.shape
    assert torch.equal(found.double() if not found.is_complex() else found,
                       tensor.detach().double() if not tensor.is_complex() else tensor.detach())


def test_a_strided_memoryview(tmp_path):
    view = memoryview(np.arange(10, dtype=np.int32))[::3]
    with st.Writer(tmp_path / "x", [("x", "I32", [4])]) as writer:
        writer.write("x", view)
        with pytest.raises(ValueError, match="expected little-endian elements of I32"):
            writer.write("x", memoryview(np.arange(4.0))[::2])
    assert st.open(tmp_path / "x")["x"].numpy().tolist() == [0, 3, 6, 9]


def test_elements_of_another_dtype_are_refused(tmp_path):
    writer = st.Writer(tmp_path / "x", [("x", "F32", [4])])
    for wrong in (torch.zeros(4, dtype=torch.int32), np.zeros((4, 2), ">f4")[:, 0],
                  np.zeros((4, 2), "f8")[:, 0]):
        with pytest.raises(ValueError, match="F32"):
            writer.write("x", wrong)
    for wrong in ([1.0], object(), 3, None):
        with pytest.raises(TypeError):
            writer.write("x", wrong)
    with pytest.raises(ValueError, match="sparse"):
        writer.write("x", torch.zeros(4).to_sparse())
    writer.write("x", torch.zeros(16, dtype=torch.uint8))  # plain bytes
    writer.finish()
    with pytest.raises(TypeError, match="expected a tensor, or a tuple of dtype and shape"):
        st.Writer(tmp_path / "y", {"x": 3})


def test_a_writer_shows_itself(tmp_path):
    writer = st.Writer(tmp_path / "x", [("x", "F32", [4])])
    assert repr(writer) == "<Writer %r, 1 tensors>" % str(tmp_path / "x")
    writer.abandon()
    assert repr(writer) == "<Writer %r, 1 tensors, closed>" % str(tmp_path / "x")
    assert repr(st.Writer(io.BytesIO())) == "<Writer 'BytesIO', 0 tensors>"


# ── To a file object ──

class Slow:
    """Takes a few bytes at a time, and no more than `most`."""

    def __init__(self, most=1 << 30):
        self.data, self.most = b"", most

    def write(self, piece):
        if len(self.data) >= self.most:
            raise OSError(28, "full")
        self.data += piece[:1000]
        return len(piece[:1000])


@pytest.mark.parametrize("options", [{}, {"align": 256, "keep_order": True}, {"spare": 500}])
def test_save_file_to_an_object(tensors, tmp_path, options):
    arrays = {"t": np.arange(12.0).reshape(3, 4).T, "u": np.arange(5000, dtype="u1")[::-1]}
    for save, given in ((st_torch.save_file, tensors), (st_numpy.save_file, arrays)):
        save(given, tmp_path / "x", {"k": "v"}, **options)
        for target in (io.BytesIO(), Slow()):
            save(given, target, {"k": "v"}, **options)
            data = target.data if isinstance(target, Slow) else target.getvalue()
            assert data == (tmp_path / "x").read_bytes()
        with open(tmp_path / "y", "wb") as file:
            file.write(b"before")
            save(given, file, {"k": "v"}, progress=lambda *at: None, **options)
        assert (tmp_path / "y").read_bytes() == b"before" + data
    st_torch.save_file({name: t.to("cpu") for name, t in tensors.items()}, io.BytesIO())


def test_what_the_object_raises_comes_out(tensors):
    with pytest.raises(OSError, match="full"):
        st_torch.save_file(tensors, Slow(0))
    with pytest.raises(TypeError, match="filename"):
        st_torch.save_file(tensors, object())


# ── Into an existing file ──

def test_put_replaces_bytes_in_place(path, tensors):
    header, inode = st.open(path).header(), os.stat(path).st_ino
    new = {"ids": torch.arange(10)[::2], "layers.0.w": np.arange(12, dtype="f4").reshape(4, 3).T}
    report = st.put(path, new)
    assert report["method"] == "in place" and os.stat(path).st_ino == inode
    file = st.open(path)
    assert file.header() == header and file["ids"].numpy().tolist() == [0, 2, 4, 6, 8]
    assert np.array_equal(file["layers.0.w"].numpy(), new["layers.0.w"])
    assert torch.equal(file["layers.1.w"].torch(), tensors["layers.1.w"])
    assert st.put(path, {"ids": torch.arange(5)}, safe=True)["method"] in ("copy", "reflink")
    assert st.open(path)["ids"].numpy().tolist() == [0, 1, 2, 3, 4]


def test_put_appends_and_changes_shapes(path, tensors):
    st.edit_metadata(path, {"k": "v"})
    os.chmod(path, 0o640)
    names = st.open(path).keys()
    report = st.put(path, {"ids": np.arange(3, dtype=np.int8), "new": torch.ones(2, 2).t()})
    file = st.open(path)
    assert report["method"] == "copy" and report["file_after"] == os.path.getsize(path)
    assert report["header_after"] == len(file.header())
    assert report["spare"] == len(file.header()) - len(file.header().rstrip())
    assert file.keys() == names + ["new"] and file.metadata() == {"k": "v"}
    assert (file["ids"].dtype, file["ids"].shape) == ("I8", (3,))
    assert file["new"].numpy().tolist() == [[1, 1], [1, 1]]
    for name in set(tensors) - {"ids"}:
        assert torch.equal(file[name].torch(), tensors[name])
    assert os.stat(path).st_mode & 0o777 == 0o640 and st.check(path, level="compat")["ok"]


def test_put_of_every_dtype(tmp_path):
    path = tmp_path / "all"
    path.write_bytes(aligned(one_of_each(), {"a": "b"}))
    before = {name: tensor.tobytes() for name, tensor in st.open(path).items()}
    st.put(path, {"more": np.zeros(4)})
    assert {name: t.tobytes() for name, t in st.open(path).items()} == {
        **before, "more": bytes(32)}


def test_put_that_fails_changes_nothing(path, tmp_path):
    data = path.read_bytes()
    for wrong, kind in (({"ids": [1, 2]}, TypeError), ({"new": np.zeros(1, "M8[s]")}, Exception),
                        ({"new": torch.zeros(2).to_sparse()}, ValueError),
                        ({"__metadata__": np.zeros(2)}, st.SafetensorError)):
        with pytest.raises(kind):
            st.put(path, wrong)
        assert path.read_bytes() == data
    with pytest.raises(FileNotFoundError):
        st.put(tmp_path / "none", {"a": np.zeros(1)})
    index = tmp_path / "x.safetensors.index.json"
    index.write_text('{"weight_map": {"ids": "m.safetensors"}}')
    for new in ({"ids": np.arange(5)}, {"new": np.arange(5)}):
        with pytest.raises(ValueError, match="expected one file whose tensors to replace"):
            st.put(index, new)
    assert path.read_bytes() == data


def test_put_refuses_a_hard_link_unless_forced(path, tmp_path):
    os.link(path, tmp_path / "other")
    with pytest.raises(OSError) as caught:
        st.put(path, {"ids": np.arange(5) + 1})
    assert caught.value.code == "hard_links"
    st.put(path, {"ids": np.arange(5) + 1}, force=True)
    assert st.open(tmp_path / "other")["ids"].numpy().tolist() == [1, 2, 3, 4, 5]


def test_put_refuses_links_when_it_rewrites(path, tmp_path):
    os.link(path, tmp_path / "other")
    os.symlink(path, tmp_path / "link")
    data = path.read_bytes()
    with pytest.raises(OSError) as caught:
        st.put(path, {"new": np.arange(5)})
    assert caught.value.code == "hard_links"
    with pytest.raises(OSError) as caught:
        st.put(tmp_path / "link", {"new": np.arange(5)}, link="refuse", force=True)
    assert caught.value.code == "is_link"
    assert path.read_bytes() == data and os.path.samefile(path, tmp_path / "other")
    st.put(path, {"new": np.arange(5)}, force=True)
    assert "new" in st.open(path) and (tmp_path / "other").read_bytes() == data


def test_put_removes_stale_digests(path):
    digests = {"sshs_model_hash": "a", "sshs_legacy_hash": "b", "modelspec.hash_sha256": "c"}
    others = {"modelspec.hash": "d", "modelspec.title": "e", "ss_sd_model_hash": "f"}
    for new in ({"new": np.arange(5)}, {"ids": np.arange(5) + 1}):  # rewritten, in place
        st.edit_metadata(path, {**digests, **others})
        st.put(path, new)
        assert st.open(path).metadata() == others


def test_put_rewrites_no_file_with_a_journal(path):
    (path.parent / ("." + path.name + ".sft-journal")).write_bytes(b"nonsense")
    data = path.read_bytes()
    with pytest.raises(OSError) as caught:
        st.put(path, {"new": np.arange(5)})
    assert caught.value.code == "edit_interrupted" and path.read_bytes() == data


def test_put_takes_tensors_of_a_file(path, tensors, tmp_path):
    (tmp_path / "all").write_bytes(aligned(one_of_each(), {}))
    with st.open(tmp_path / "all") as other:
        st.put(path, {**dict(other.items()), "part": other["F4"][:0], "ids": st.open(path)["ids"]})
        file = st.open(path)
        for name, tensor in other.items():
            assert (file[name].dtype, file[name].shape) == (tensor.dtype, tensor.shape)
            assert file[name].tobytes() == tensor.tobytes()
    assert torch.equal(file["ids"].torch(), tensors["ids"])


def test_put_can_swap_tensors_of_the_file(path, tensors):
    for mode in ("map", "cow", "read"):
        file = st.open(path, mode=mode)
        a, b = file["layers.0.w"].tobytes(), file["layers.1.w"].tobytes()
        st.put(path, {"layers.0.w": file["layers.1.w"], "layers.1.w": file["layers.0.w"]})
        after = st.open(path)
        assert (after["layers.0.w"].tobytes(), after["layers.1.w"].tobytes()) == (b, a)


def test_put_takes_a_mapping(path):
    for wrong in ([("a", np.zeros(1))], None, 3, np.zeros(1)):
        with pytest.raises(TypeError, match="expected a mapping"):
            st.put(path, wrong)


# ── Leaks ──

def test_nothing_leaks(path, tensors, tmp_path):
    array = np.arange(64, dtype=np.float32).reshape(8, 8).T
    data = pack({"a": ("F32", [2], bytes(8))})

    def work():
        file = st.open(path)
        file.torch(["layers.*"], dtype="F16"), file.numpy(["*"], dtype="F16")
        file["ids"].torch(device="meta", dtype="F32"), file["ids"].numpy(dtype="F32")
        for words in ({"names": ["z*"]}, {"dtype": "F31"}, {"device": "none"}):
            with pytest.raises(Exception):
                file.torch(**words)
        with st.Writer(io.BytesIO(), {"a": array, "t": tensors["ids"]},
                       keep_order=True) as writer:
            repr(writer)
            writer.write("a", array)
            for wrong in (tensors["ids"].float(), 3, array.astype("f8")):
                with pytest.raises((ValueError, TypeError)):
                    writer.write("t", wrong)
            writer.write("t", tensors["ids"])
        st_numpy.save_file({"a": array}, io.BytesIO())
        with pytest.raises(OSError):
            st_numpy.save_file({"a": array}, Slow(0))
        st.put(path, {"ids": np.arange(5)}, sync=False)
        with pytest.raises(Exception):
            _core.edit(path, put=[("ids", "F32", [5], bytes(20), None)])
        st.check(io.BytesIO(data), deep=True), st.hash(io.BytesIO(data), "sha256,content")
        st.hash(io.BytesIO(b"abc"), "sha256,content")
    assert grows(work, 150) < 1 << 20
