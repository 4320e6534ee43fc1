"""The official package's top level: names, arguments, results, errors and their texts."""
import ast
import copy
import errno
import importlib.util
import inspect
import io
import os
import pickle
import re
import struct

import pytest

import libsafetensors
from libsafetensors import (SafetensorError, TensorSpec, deserialize, safe_open, serialize,
                            serialize_file)
from libsafetensors import _core, _official

np = pytest.importorskip("numpy")
from libsafetensors import numpy as ours  # noqa: E402

try:
    import safetensors as official
    if official.__version__ != "0.8.0" or official.safe_open.__module__ != "builtins":
        official = None
except ImportError:
    official = None


class Taker:
    """INDEX[...] is the index itself."""

    def __getitem__(self, index):
        return index


INDEX = Taker()
MATRIX = np.arange(50.0).reshape(10, 5)


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "model.safetensors")
    ours.save_file({"b": MATRIX, "a": np.arange(3, dtype=np.uint8), "s": np.array(7, np.int32),
                    "z": np.zeros((0, 4), np.float16)}, name, {"k": "v"})
    return name


def file_of(header, data=b""):
    return struct.pack("<Q", len(header)) + header + data


# ── Names ──

def test_every_official_name():
    names = {"SafetensorError", "TensorSpec", "deserialize", "safe_open", "serialize",
             "serialize_file", "_safe_open_handle", "__version__"}
    for module in (libsafetensors, _official):
        assert names <= set(dir(module))
    assert _official.__version__ == "0.8.0"


@pytest.mark.skipif(official is None, reason="the official package 0.8.0 is not here")
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_every_official_function_and_argument(name):
    pytest.importorskip(name)
    theirs = importlib.import_module("safetensors." + name)
    mine = importlib.import_module("libsafetensors." + name)
    functions = [key for key, value in vars(theirs).items() if inspect.isfunction(value)
                 and not key.startswith("_") and value.__module__ == theirs.__name__]
    assert len(functions) >= 4
    for key in functions:
        wanted = inspect.signature(getattr(theirs, key)).parameters
        got = inspect.signature(getattr(mine, key)).parameters
        for argument, facts in wanted.items():
            assert argument in got, (key, argument)
            assert got[argument].kind == facts.kind and got[argument].default == facts.default
        extra = [got[argument] for argument in got if argument not in wanted]
        assert all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in extra), key


def test_error_module_is_importable_and_the_error_pickles():
    assert importlib.import_module(SafetensorError.__module__).SafetensorError is SafetensorError
    again = pickle.loads(pickle.dumps(SafetensorError("text")))
    assert type(again) is SafetensorError and str(again) == "text"


# ── Opening ──

def test_keys_and_metadata(path):
    with safe_open(path, framework="np") as f:
        assert f.keys() == ["a", "b", "s", "z"]
        assert f.offset_keys() == ["b", "s", "z", "a"] == list(f.get_tensors())
        assert f.keys(order="offset") == f.offset_keys()
        assert f.metadata() == {"k": "v"}
        assert len(f) == 4 and "a" in f and "c" not in f and list(f) == f.keys()
        assert f.get_slice("b").get_shape() == [10, 5]
        assert f.get_slice("b").get_dtype() == "F64"
    ours.save_file({"a": MATRIX}, path)
    with safe_open(path, "np") as f:
        assert f.metadata() is None


@pytest.mark.parametrize("backend", ["mmap", "pread"])
@pytest.mark.parametrize("framework", ["np", "numpy"])
def test_tensors(path, framework, backend):
    with safe_open(path, framework, backend=backend) as f:
        assert f.get_tensor("b").dtype == np.float64
        np.testing.assert_array_equal(f.get_tensor("b"), MATRIX)
        assert f.get_tensor("s").shape == () and f.get_tensor("s") == 7
        assert f.get_tensor("z").shape == (0, 4) and f.get_tensor("z").dtype == np.float16
        kept = f.get_tensors()
    np.testing.assert_array_equal(kept["b"], MATRIX)
    kept["b"][:] = 0
    with safe_open(path, framework, backend=backend) as f:
        np.testing.assert_array_equal(f.get_tensor("b"), MATRIX)


@pytest.mark.parametrize("framework, module", [("tf", "tensorflow"), ("mlx", "mlx")])
def test_a_framework_that_is_not_installed(path, framework, module):
    if importlib.util.find_spec(module):
        pytest.skip("%s is installed" % module)
    with safe_open(path, framework) as f:  # officially, too: the header needs no framework
        assert "b" in f.keys() and f.get_slice("b").get_shape() == list(MATRIX.shape)
        with pytest.raises(ModuleNotFoundError, match=module):
            f.get_tensor("b")


def test_a_path_with_nul(tmp_path):
    """The official classes: FileNotFoundError and SafetensorError."""
    name = str(tmp_path / "a\0b")
    for call in (lambda: safe_open(name, "np"), lambda: ours.load_file(name)):
        with pytest.raises(FileNotFoundError, match="No such file or directory"):
            call()
    with pytest.raises(SafetensorError, match="^Error while serializing: "):
        ours.save_file({"a": MATRIX}, name)
    assert not list(tmp_path.iterdir())


def test_closed(path):
    f = safe_open(path, "np")
    piece = f.get_slice("b")
    f.close()
    f.close()
    for call in (f.keys, f.offset_keys, f.metadata, f.get_tensors, f.__len__,
                 lambda: f.get_tensor("a"), lambda: f.get_slice("a"), lambda: "a" in f):
        with pytest.raises(SafetensorError, match="^File is closed$"):
            call()
    np.testing.assert_array_equal(piece[:2], MATRIX[:2])


def test_unknown_tensor(path):
    with safe_open(path, "np") as f:
        for call in (f.get_tensor, f.get_slice):
            with pytest.raises(SafetensorError) as caught:
                call("x")
            assert str(caught.value) == "File does not contain tensor x"
            assert caught.value.code == "tensor_not_found" and caught.value.tensor == "x"


BAD_CALLS = [
    (("np",), {"backend": "x"}, SafetensorError,
     'backend "x" is invalid (expected one of: "mmap", "pread")'),
    (("zz",), {}, SafetensorError, "framework zz is invalid"),
    (("np", "cuda:0"), {}, SafetensorError, "Device cuda:0 is not supported for framework numpy"),
    (("pt", "foo:1"), {}, SafetensorError, "device foo:1 is invalid"),
    (("pt", "mps:1"), {}, SafetensorError,
     "device mps:1 is invalid: only mps or mps:0 is supported"),
    (("pt", "cuda:x"), {}, ValueError, None),
    (("pt", 1.5), {}, SafetensorError, "device 1.5 is invalid"),
]


@pytest.mark.parametrize("arguments,more,kind,text", BAD_CALLS)
def test_bad_arguments(path, arguments, more, kind, text):
    if arguments[0] == "pt":
        pytest.importorskip("torch")
    with pytest.raises(kind) as caught:
        safe_open(path, *arguments, **more)
    assert type(caught.value) is kind
    assert text is None or str(caught.value) == text


def test_missing_file_and_permission(tmp_path, path):
    with pytest.raises(FileNotFoundError) as caught:
        safe_open(str(tmp_path / "none"), "np")
    assert str(caught.value) == "No such file or directory: %s" % (tmp_path / "none")
    assert caught.value.errno == errno.ENOENT
    for bad in (b"bytes", 5, None):
        with pytest.raises(TypeError):
            safe_open(bad, "np")
    (tmp_path / "empty").mkdir()
    with pytest.raises(OSError):
        safe_open(str(tmp_path / "empty"), "np")
    if getattr(os, "geteuid", lambda: 0)():
        os.chmod(path, 0)
        with pytest.raises(PermissionError):
            safe_open(path, "np")


BAD_FILES = [
    (b"", "header too small"),
    (b"\xff" * 9, "header too large"),
    (struct.pack("<Q", 20) + b"{}", "invalid header length"),
    (b"<!DOCTYPE html><html></html>", "header too large"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n", "header too large"),
    (b"GGUF\3\0\0\0" + bytes(64), "header too large"),
    (file_of(b'{"a":\xff}'), "invalid UTF-8 in header"),
    (file_of(b"{"), "invalid JSON in header"),
    (file_of(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b"12345678"),
     "invalid offset for tensor `a`"),
    (file_of(b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', b"1234"),
     "invalid shape, data type, or offset for tensor"),
    (file_of(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"123"),
     "incomplete metadata, file not fully covered"),
    (file_of(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', b"12345"),
     "incomplete metadata, file not fully covered"),
]


@pytest.mark.parametrize("data,text", BAD_FILES)
def test_bad_files_raise_the_official_messages(tmp_path, data, text):
    name = tmp_path / "bad"
    name.write_bytes(data)
    for call, words in ((lambda: safe_open(name, "np"), "Error while deserializing header: "),
                        (lambda: deserialize(data), "Error while deserializing: ")):
        with pytest.raises(SafetensorError) as caught:
            call()
        assert str(caught.value).startswith(words + text)
        assert caught.value.code
        if official:
            with pytest.raises(official.SafetensorError) as theirs:
                official.deserialize(data)
            assert text in str(theirs.value)


def test_duplicate_names_want_compat(tmp_path):
    entry = b'"a":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}'
    name = tmp_path / "twice"
    name.write_bytes(file_of(b"{" + entry % (0, 1) + b"," + entry % (0, 1) + b"}", b"x"))
    with pytest.raises(SafetensorError) as caught:
        safe_open(name, "np")
    assert caught.value.code == "tensor_duplicate"
    with safe_open(name, "np", level="compat") as f:
        assert f.keys() == ["a"]


def test_handles(path):
    with open(path, "rb") as f:
        with libsafetensors._safe_open_handle(f, framework="np", device="cpu") as g:
            np.testing.assert_array_equal(g.get_tensor("b"), MATRIX)
    with open(path, "rb") as f:
        memory = io.BytesIO(f.read())
    with libsafetensors._safe_open_handle(memory, "np") as g:
        np.testing.assert_array_equal(g.get_slice("b")[2:4], MATRIX[2:4])


def test_exceptions_of_a_source_are_raised():
    class Gone:
        size = 100

        def read_at(self, offset, length):
            raise FileNotFoundError("gone")
    with pytest.raises(FileNotFoundError, match="^gone$"):
        ours.load_file(Gone())


# ── Slices ──

GOOD = [INDEX[:], INDEX[...], INDEX[()], INDEX[:2], INDEX[3], INDEX[-1], INDEX[:, 1], INDEX[2:, -5],
        INDEX[::2], INDEX[..., 1], INDEX[1, ..., 2], INDEX[1:9:3, ::2], INDEX[2, 3], INDEX[True],
        INDEX[np.int64(2)], INDEX[[]]]
MENDED = [INDEX[-3:], INDEX[:-1], INDEX[::-1], INDEX[5:2], INDEX[10:10], INDEX[10:], INDEX[15:],
          INDEX[::-2, 4:0:-1], INDEX[-100:3], INDEX[0:0, 0:1], INDEX[:-20], INDEX[20::-1],
          INDEX[9:20:-1]]
BAD = [(INDEX[2:, -6], "Invalid index -6 for dimension 1 of size 5"),
       (INDEX[[0, 1]], "Non empty lists are not implemented"),
       (INDEX[2:, 20], "Error during slicing [2:, 20] with shape [10, 5]: index 20 out of bounds "
                       "for tensor dimension #1 of size 5"),
       (INDEX[:20], "Error during slicing [:20] with shape [10, 5]: index 19 out of bounds for "
                    "tensor dimension #0 of size 10"),
       (INDEX[:, :20], "Error during slicing [:, :20] with shape [10, 5]: index 19 out of bounds "
                       "for tensor dimension #1 of size 5"),
       (INDEX[::2, :30:3], "Error during slicing [::2, :30:3] with shape [10, 5]: index 29 out of "
                           "bounds for tensor dimension #1 of size 5"),
       (INDEX[15:20], "Error during slicing [15:20] with shape [10, 5]: index 15 out of bounds "
                      "for tensor dimension #0 of size 10"),
       (INDEX[1, 2, 3], "Error during slicing [1, 2, 3] with shape [10, 5]: more slicing indexes "
                        "than dimensions in tensor"),
       (INDEX[..., ...], "Only one ellipsis (...) is allowed in slice index"),
       (INDEX[None], "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
       (INDEX[1, []], "Unsupported slice index at position 1: expected slice, int, or ellipsis")]


@pytest.mark.parametrize("backend", ["mmap", "pread"])
def test_slices_follow_numpy(path, backend):
    with safe_open(path, "np", backend=backend) as f:
        piece = f.get_slice("b")
        for index in GOOD + MENDED:
            wanted = MATRIX[1] if index is True else MATRIX[index]
            got = piece[index]
            assert got.shape == wanted.shape and got.dtype == wanted.dtype, index
            np.testing.assert_array_equal(got, wanted, err_msg=str(index))
        assert f.get_slice("s")[()] == 7 and f.get_slice("s")[...].shape == ()
        assert f.get_slice("z")[:].shape == (0, 4) and f.get_slice("z")[:, 1].shape == (0,)
        with pytest.raises(TypeError):
            piece[:1.5]
        with pytest.raises(SafetensorError):
            piece[::0]


@pytest.mark.parametrize("index,text", BAD)
def test_slices_raise_as_the_official_package(path, index, text):
    with safe_open(path, "np") as f:
        with pytest.raises(SafetensorError) as caught:
            f.get_slice("b")[index]
        assert str(caught.value) == text
    if official:
        with official.safe_open(path, "np") as f, pytest.raises(official.SafetensorError) as theirs:
            f.get_slice("b")[index]
        assert str(theirs.value) == text


@pytest.mark.parametrize("index", [INDEX[:7], INDEX[0:1], INDEX[:3:2], INDEX[2:3], INDEX[:, :5],
                                   INDEX[0], INDEX[-1]])
def test_beyond_an_empty_dimension(path, index):
    packages = [libsafetensors] + ([official] if official else [])
    texts = []
    for package in packages:
        with package.safe_open(path, "np") as f, pytest.raises(package.SafetensorError) as caught:
            f.get_slice("z")[index]
        texts.append(str(caught.value))
    assert len(set(texts)) == 1, texts


@pytest.mark.skipif(official is None, reason="the official package 0.8.0 is not here")
def test_slices_as_the_official_package(path):
    with safe_open(path, "np") as mine, official.safe_open(path, "np") as theirs:
        for index in GOOD:
            a, b = mine.get_slice("b")[index], theirs.get_slice("b")[index]
            assert a.shape == b.shape and a.tobytes() == b.tobytes(), index


def test_our_own_slices_clamp(path):
    with libsafetensors.open(path) as f:
        np.testing.assert_array_equal(f["b"][:20, -100:100].numpy(), MATRIX)
        assert libsafetensors.slice_byte_ranges(f, "b", INDEX[1:3]) == \
            libsafetensors.slice_byte_ranges(path, "b", INDEX[1:3])
        start = f["b"].offset
        assert libsafetensors.slice_byte_ranges(path, "b", INDEX[1:3]) \
            == [(start + 40, start + 120)]


# ── Writing ──

def spec(array, dtype=None):
    return TensorSpec(dtype=dtype or array.dtype.name, shape=array.shape,
                      data_ptr=array.ctypes.data, data_len=array.nbytes)


def test_tensor_spec():
    s = TensorSpec(dtype="float32", shape=[2, 3], data_ptr=5, data_len=24)
    assert (s.dtype, s.shape, s.data_ptr, s.data_len) == ("F32", [2, 3], 5, 24)
    assert repr(s) == "TensorSpec(dtype='F32', shape=[2, 3], data_ptr=5, data_len=24)"
    pairs = {"dtype": "float4_e2m1fn_x2", "data_ptr": 0, "data_len": 6}
    assert TensorSpec(shape=(2, 3), **pairs).shape == [2, 6]
    assert TensorSpec(shape=(), **pairs).shape == []
    with pytest.raises(SafetensorError) as caught:
        TensorSpec(dtype="F32", shape=[1], data_ptr=0, data_len=0)
    assert str(caught.value).startswith('Unknown dtype "F32". Supported dtypes: bool, int8, uint8')
    with pytest.raises(OverflowError):
        TensorSpec(dtype="int8", shape=[-1], data_ptr=0, data_len=0)
    with pytest.raises(SafetensorError) as caught:
        TensorSpec(shape=(2, 1 << 63), **pairs)
    assert str(caught.value) == ("F4 last-dim 9223372036854775808 doubled to logical shape "
                                 "overflows usize")
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle"):
            duplicate(s)
    with pytest.raises(TypeError):
        TensorSpec("float32", [1], 0, 0)
    with pytest.raises(AttributeError):
        s.dtype = "x"


def test_serialize_and_deserialize(tmp_path):
    a, b = np.arange(6, dtype=np.int16).reshape(2, 3), np.array(2.5)
    data = serialize({"a": spec(a), "b": spec(b)}, {"k": "v"})
    assert type(data) is bytes
    serialize_file({"a": spec(a), "b": spec(b)}, tmp_path / "f", {"k": "v"})
    assert (tmp_path / "f").read_bytes() == data
    wanted = [("b", {"shape": [], "dtype": "F64", "data": bytearray(b.tobytes())}),
              ("a", {"shape": [2, 3], "dtype": "I16", "data": bytearray(a.tobytes())})]
    for buffer in (data, bytearray(data), memoryview(data)):
        found = deserialize(bytes=buffer)
        assert found == wanted and type(found[0][1]["data"]) is bytearray
    if official:
        assert official.serialize({"a": official.TensorSpec(
            dtype="int16", shape=a.shape, data_ptr=a.ctypes.data, data_len=a.nbytes)}) \
            == serialize({"a": spec(a)})
        assert sorted(official.deserialize(data)) == sorted(wanted)


SPEC = {"dtype": "float32", "shape": [1], "data_ptr": 0, "data_len": 4}
BAD_KINDS = {
    "dtype": lambda p: p.TensorSpec(**{**SPEC, "dtype": 5}),
    "no dtype": lambda p: p.TensorSpec(**{**SPEC, "dtype": None}),
    "numpy dtype": lambda p: p.TensorSpec(**{**SPEC, "dtype": np.dtype("float32")}),
    "tensors": lambda p: p.serialize([("a", 1)]),
    "no tensors": lambda p: p.serialize(None),
    "plain dict": lambda p: p.serialize({"a": {}}),
    "name": lambda p: p.serialize({1: p.TensorSpec(**SPEC)}),
    "metadata": lambda p: p.serialize({}, "x"),
    "metadata pairs": lambda p: p.serialize({}, [("a", "b")]),
    "metadata value": lambda p: p.serialize({}, {"a": 1}),
    "metadata key": lambda p: p.serialize({}, {None: "a"}),
    "target": lambda p: p.serialize_file({}, 5),
    "no target": lambda p: p.serialize_file({}, None),
    "filename": lambda p: p.safe_open(5, "np"),
    "bytes": lambda p: p.safe_open(b"x", "np"),
    "file": lambda p: p.safe_open(io.BytesIO(), "np"),
    "framework": lambda p: p.safe_open("x", 5),
    "frameworks": lambda p: p.safe_open("x", ["np"]),
    "no framework": lambda p: p.safe_open("x", None),
    "backend": lambda p: p.safe_open("x", "np", backend=5),
    "no backend": lambda p: p.safe_open("x", "np", backend=None),
}


@pytest.mark.parametrize("call", BAD_KINDS.values(), ids=BAD_KINDS.keys())
def test_arguments_of_a_wrong_type(call):
    with pytest.raises(TypeError) as caught:
        call(libsafetensors)
    if official:
        with pytest.raises(TypeError) as theirs:
            call(official)
        assert str(caught.value) == str(theirs.value)


def test_private_helpers_of_the_numpy_module():
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.arange(3, dtype=">i2"),
              "c": np.array(True)}
    kept = []
    specs = ours._flatten(arrays, kept)
    assert serialize(specs) == ours.save(arrays)
    found = ours._view2np(deserialize(ours.save(arrays)))
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype.newbyteorder("<")
    assert ours._getdtype("F32") is np.float32 is ours._TYPES["F32"]
    assert [ours._is_little_endian(a) for a in arrays.values()] == [True, False, True]
    if official:
        theirs = importlib.import_module("safetensors.numpy")
        assert ours._TYPES == theirs._TYPES


@pytest.mark.parametrize("arguments", [
    ({"a": {"dtype": "float32"}},), ([1],), ({1: TensorSpec(
        dtype="int8", shape=[0], data_ptr=0, data_len=0)},), ({}, {"a": 1}), ({}, {1: "a"}),
    ({}, "x")])
def test_wrong_types(arguments):
    with pytest.raises(TypeError):
        serialize(*arguments)


def test_wrong_length_and_reserved_name():
    a = np.zeros(2, np.float32)
    with pytest.raises(SafetensorError) as caught:
        serialize({"a": TensorSpec(dtype="float32", shape=[3], data_ptr=a.ctypes.data, data_len=8)})
    assert str(caught.value).startswith("Error while serializing: ")
    with pytest.raises(SafetensorError):
        serialize({"__metadata__": spec(a)})


def test_stable_and_valid_bytes(tmp_path):
    a = np.zeros(2, np.float32)
    pairs = {"k%d" % i: str(i) for i in range(40)}
    turned = dict(reversed(pairs.items()))
    assert serialize({"a": spec(a)}, pairs) == serialize({"a": spec(a)}, turned)
    assert deserialize(serialize({}, {})) == [] and deserialize(serialize({})) == []
    assert serialize({}) == b"\x08" + bytes(7) + b"{}      "
    before = copy.deepcopy(pairs)
    serialize({"a": spec(a)}, pairs)
    assert pairs == before


def test_mode_of_the_file(tmp_path):
    a = np.zeros(2, np.float32)
    mask = os.umask(0o022)
    try:
        serialize_file({"a": spec(a)}, tmp_path / "f")
        assert os.stat(tmp_path / "f").st_mode & 0o777 == 0o644
        os.chmod(tmp_path / "f", 0o640)
        serialize_file({"a": spec(a)}, tmp_path / "f", sync=False)
        assert os.stat(tmp_path / "f").st_mode & 0o777 == 0o640
    finally:
        os.umask(mask)
    with pytest.raises(FileNotFoundError):
        serialize_file({"a": spec(a)}, tmp_path / "none" / "f")


def test_progress(tmp_path):
    seen = []
    big = np.zeros(40 << 20, np.uint8)
    ours.save_file({"a": big}, tmp_path / "f", progress=lambda *now: seen.append(now))
    assert seen and seen[-1][0] == seen[-1][1] >= big.nbytes

    class Stop(Exception):
        pass

    def stop(done, total):
        raise Stop

    with pytest.raises(Stop):
        ours.save_file({"a": big}, tmp_path / "g", progress=stop)
    assert os.listdir(tmp_path) == ["f"]
    with pytest.raises(TypeError):
        ours.save_file({"a": big}, tmp_path / "g", progress=3)


# ── Stubs ──

def test_stubs_name_what_the_extension_has():
    stub = os.path.join(os.path.dirname(libsafetensors.__file__), "_core.pyi")
    with open(stub) as text:
        tree = ast.parse(text.read())
    declared = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            declared[node.name] = node
        elif isinstance(node, ast.ClassDef) and not any("Protocol" in ast.dump(base)
                                                        for base in node.bases):
            declared[node.name] = {n.name if isinstance(n, ast.FunctionDef) else n.target.id
                                   for n in node.body
                                   if isinstance(n, (ast.FunctionDef, ast.AnnAssign))}
        elif isinstance(node, ast.AnnAssign) and not node.target.id.startswith("_Source"):
            declared[node.target.id] = None
    public = {name for name in dir(_core) if not name.startswith("_")} - {"annotations"}
    assert public <= set(declared), public - set(declared)
    for name, facts in declared.items():
        assert hasattr(_core, name), name
        if isinstance(facts, set):
            kind = getattr(_core, name)
            for method in facts:
                # Python before 3.12 has no __buffer__.
                assert hasattr(kind, method) or method == "__buffer__", (name, method)
            listed = {m for m in dir(kind) if not m.startswith("_")}
            if not issubclass(kind, Exception):
                assert listed <= facts, listed - facts
        elif facts is not None:
            check_signature(name, facts)


def check_signature(name, node):
    """It takes every argument of the stub by name, and no other."""
    call = getattr(_core, name)
    unknown = "keyword|takes no arguments"
    for argument in node.args.args + node.args.kwonlyargs:
        with pytest.raises((TypeError, ValueError)) as caught:
            call(**{argument.arg: object()})
        assert not re.search(unknown, str(caught.value)), (name, argument.arg)
    # A value of a wrong type would be refused before the name is looked at.
    plain = {"tuple": (), "int": 0, "Sequence": (), "Iterable": ()}
    given = {a.arg: plain.get(ast.unparse(a.annotation).partition("[")[0], "")
             for a in node.args.args}
    with pytest.raises(TypeError, match=unknown):
        call(**given, zzz=1)


def test_public_names_have_help():
    for name in libsafetensors.__all__:
        thing = getattr(libsafetensors, name)
        if callable(thing):
            assert inspect.getdoc(thing), name
