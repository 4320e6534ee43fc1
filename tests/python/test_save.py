"""save_file and save_bytes: the same bytes as the official writer, and what it cannot do."""
import errno
import json
import os
import stat
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alarms import alarm
from libsafetensors import _core
from written import grows, parse, spec_of, tensor_bytes

OFFICIAL = {
    "BOOL": "bool", "F4": "float4_e2m1fn_x2", "U8": "uint8", "I8": "int8",
    "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "I16": "int16",
    "U16": "uint16", "F16": "float16", "BF16": "bfloat16", "I32": "int32", "U32": "uint32",
    "F32": "float32", "C64": "complex64", "F64": "float64", "I64": "int64", "U64": "uint64",
}


# ── The official bytes ──

def official(tensors, metadata):
    """What the official package writes of {name: (dtype, shape as it counts, bytes)}."""
    found = pytest.importorskip("safetensors")
    TensorSpec, serialize = found.TensorSpec, found.serialize
    kept, specs = [], {}
    for name, (dtype, shape, data) in tensors.items():
        memory = np.frombuffer(data or b"\0", dtype=np.uint8)
        kept.append(memory)
        specs[name] = TensorSpec(dtype=OFFICIAL[dtype], shape=shape, data_ptr=memory.ctypes.data,
                                 data_len=len(data))
    return bytes(serialize(specs, metadata))


@st.composite
def tensors(draw):
    dtype = draw(st.sampled_from(sorted(OFFICIAL)))
    least = 1 if dtype == "F4" else 0
    shape = draw(st.lists(st.integers(0, 4), min_size=least, max_size=4))
    count = int(np.prod(shape, dtype=np.int64))
    size = count if dtype == "F4" else count * _core.DTYPES[dtype][0] // 8
    return dtype, shape, draw(st.binary(min_size=size, max_size=size))


names = st.text(max_size=12).filter(lambda name: name != "__metadata__")
models = st.dictionaries(names, tensors(), max_size=6)
pairs = st.one_of(st.none(), st.dictionaries(st.text(max_size=8), st.text(max_size=8),
                                             min_size=1, max_size=1))


def specs_of(model):
    for name, (dtype, shape, data) in model.items():
        logical = shape[:-1] + [2 * shape[-1]] if dtype == "F4" else shape
        yield name, dtype, logical, data, None


@settings(max_examples=300, deadline=None)
@given(models, pairs)
def test_bytes_are_the_official_ones(model, metadata):
    assert _core.save_bytes(specs_of(model), metadata) == official(model, metadata)


@settings(max_examples=60, deadline=None)
@given(models, st.one_of(st.none(), st.dictionaries(st.text(max_size=8), st.text(max_size=8))))
def test_file_is_the_same_as_bytes(tmp_path_factory, model, metadata):
    path = tmp_path_factory.mktemp("save") / "model.safetensors"
    assert _core.save_file(path, specs_of(model), metadata, sync=False) is None
    written = path.read_bytes()
    assert written == _core.save_bytes(specs_of(model), metadata)
    assert parse(written)[1] == (None if metadata is None else metadata)


def test_f6_is_written():
    data = _core.save_bytes([("x", "F6_E2M3", [4], b"abc", None)])
    assert parse(data)[0] == {"x": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]}}


def test_metadata_is_sorted_and_may_be_empty():
    one = _core.save_bytes([], {"b": "1", "a": "2"})
    assert one == _core.save_bytes([], {"a": "2", "b": "1"})
    assert one[8:].rstrip() == b'{"__metadata__":{"a":"2","b":"1"}}'
    assert _core.save_bytes([], {})[8:].rstrip() == b'{"__metadata__":{}}'
    assert _core.save_bytes([])[8:] == b"{}      "


def test_order_alignment_and_spare(tmp_path):
    specs = [("b", "U8", [1], b"1", None), ("a", "U8", [1], b"2", None)]
    assert list(parse(_core.save_bytes(specs))[0]) == ["a", "b"]
    assert list(parse(_core.save_bytes(specs, keep_order=True))[0]) == ["b", "a"]
    data = _core.save_bytes(specs, align=4096)
    assert (8 + int.from_bytes(data[:8], "little")) % 4096 == 0
    path = tmp_path / "x"
    _core.save_file(path, specs, align=64, spare=1000)
    text = path.read_bytes()[8:-2]
    assert len(text) - len(text.rstrip()) >= 1000 and (len(text) + 8) % 64 == 0


# ── Alignment of the data ──

@st.composite
def views(draw):
    """An array that need not be packed: transposed, cut, backwards, broadcast."""
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    dtype = draw(st.sampled_from(["uint8", "int16", "float32", "complex64", "int64"]))
    count = int(np.prod(shape, dtype=np.int64))
    array = np.arange(count).astype(dtype).reshape(shape)
    array = array.transpose(draw(st.permutations(range(len(shape)))))
    step = st.sampled_from([-3, -2, -1, 1, 2, 3])
    array = array[tuple(slice(None, None, draw(step)) for _ in shape)]
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(0, 3)),) + array.shape)
    return array


@settings(max_examples=300, deadline=None)
@given(views())
def test_strided_arrays_are_packed(array):
    data = _core.save_bytes([spec_of("x", array, strides=True), ("y", "U8", [1], b"!", None)])
    assert tensor_bytes(data, "x") == array.tobytes()
    assert tensor_bytes(data, "y") == b"!"


def test_fortran_order_is_not_what_is_written(tmp_path):
    array = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    _core.save_file(tmp_path / "x", [spec_of("x", array, strides=True)])
    assert tensor_bytes((tmp_path / "x").read_bytes(), "x") == array.tobytes("C")
    with pytest.raises((BufferError, ValueError)):
        _core.save_bytes([spec_of("x", array)])


def test_addresses_and_buffers_are_alike():
    array = np.arange(20, dtype=np.int32)
    want = _core.save_bytes([spec_of("x", array)])
    for data in (array.tobytes(), bytearray(array), memoryview(array),
                 (array.ctypes.data, array.nbytes)):
        assert _core.save_bytes([("x", "I32", (20,), data, None)]) == want
    every = array[::2]
    by_address = ("x", "I32", (10,), (every.ctypes.data, every.nbytes), every.strides)
    assert _core.save_bytes([by_address]) == _core.save_bytes([spec_of("x", every, True)])


def test_strides_stay_inside_their_buffer():
    array = np.zeros(8, dtype=np.int32)
    for shape, strides in (([8], [8]), ([8], [-4]), ([2, 4], [16, 8]), ([8], [2**61])):
        with pytest.raises(_core.SafetensorError) as caught:
            _core.save_bytes([("x", "I32", shape, array, strides)])
        assert (caught.value.code, caught.value.tensor) == ("size_mismatch", "x")
    with pytest.raises(ValueError, match="strides"):
        _core.save_bytes([("x", "I32", [8], array, [4, 4])])


def test_buffers_are_given_back():
    data = bytearray(8)
    _core.save_bytes([("x", "U8", [8], data, None)])
    data.append(1)
    with pytest.raises(_core.SafetensorError):
        _core.save_bytes([("x", "U8", [8], data, None)])
    data.append(1)


# ── What is refused ──

def refused(code, specs, metadata=None):
    with pytest.raises(_core.SafetensorError) as caught:
        _core.save_bytes(specs, metadata)
    assert caught.value.code == code
    return caught.value


def test_lengths_are_checked():
    error = refused("size_mismatch", [("w", "F32", [2, 2], bytes(15), None)])
    assert error.tensor == "w" and "16" in str(error) and "15" in str(error)
    refused("size_mismatch", [("w", "F32", [], b"", None)])
    refused("size_partial_byte", [("w", "F4", [3], b"ab", None)])
    refused("size_overflow", [("w", "F32", [2**63, 4], b"", None)])


def test_names_and_dtypes_are_checked():
    assert refused("dtype_unknown", [("w", "F99", [], b"", None)]).tensor == "w"
    refused("tensor_duplicate", [("w", "U8", [], b"1", None)] * 2)
    with pytest.raises(Exception) as caught:
        _core.save_bytes([("__metadata__", "U8", [], b"1", None)])
    assert caught.value.code == "name_reserved"
    for name in ("\ud800", "a\udfffb"):
        with pytest.raises(UnicodeEncodeError):
            _core.save_bytes([(name, "U8", [], b"1", None)])


@pytest.mark.parametrize("metadata", [{"a": 1}, {1: "a"}, {"a": None}, {"a": b"b"}, ["a"], 3])
def test_metadata_is_of_str(metadata):
    with pytest.raises(TypeError, match="metadata"):
        _core.save_bytes([], metadata)


@pytest.mark.parametrize("specs", [
    3, [3], [("x",)], [["x", "U8", [], b"1", None]], [(1, "U8", [], b"1", None)],
    [("x", 1, [], b"1", None)], [("x", "U8", [1.5], b"1", None)], [("x", "U8", 3, b"1", None)],
    [("x", "U8", [], 7, None)], [("x", "U8", [], (1,), None)], [("x", "U8", [], ("a", 1), None)],
    [("x", "U8", [], b"1", 5)],
])
def test_specs_of_the_wrong_type(specs):
    with pytest.raises(TypeError):
        _core.save_bytes(specs)


def test_exceptions_of_an_iterable_are_raised():
    def rows():
        yield "x", "U8", [1], b"1", None
        raise KeyError("rows")
    with pytest.raises(KeyError, match="rows"):
        _core.save_bytes(rows())


def test_null_is_no_memory():
    with pytest.raises((_core.SafetensorError, ValueError), match="NULL"):
        _core.save_bytes([("x", "U8", [4], (0, 4), None)])
    assert parse(_core.save_bytes([("x", "U8", [0], (0, 0), None)]))[2] == b""


# ── The file ──

ONE = [("x", "U8", [3], b"abc", None)]
OTHER = [("x", "U8", [3], b"xyz", None)]


@pytest.fixture
def umask():
    old = os.umask(0o022)
    yield os.umask
    os.umask(old)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.mark.parametrize("mask, mode", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_mode_is_by_umask(tmp_path, umask, mask, mode):
    umask(mask)
    _core.save_file(tmp_path / "x", ONE)
    assert mode_of(tmp_path / "x") == mode


def test_mode_of_the_old_file_is_kept(tmp_path, umask):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    path.chmod(0o640)
    _core.save_file(path, ONE)
    assert mode_of(path) == 0o640
    assert tensor_bytes(path.read_bytes(), "x") == b"abc"


@pytest.mark.parametrize("kind", [str, os.fsencode, lambda path: path])
def test_any_kind_of_path(tmp_path, kind):
    path = tmp_path / "größe.safetensors"
    _core.save_file(kind(path), ONE, sync=False)
    assert os.listdir(tmp_path) == [path.name]


def test_overwriting_can_be_refused(tmp_path):
    path = tmp_path / "x"
    _core.save_file(path, ONE, overwrite=False)
    with pytest.raises(FileExistsError) as caught:
        _core.save_file(path, OTHER, overwrite=False)
    assert caught.value.code == "exists" and caught.value.errno == errno.EEXIST
    assert str(path) in str(caught.value)
    assert tensor_bytes(path.read_bytes(), "x") == b"abc" and os.listdir(tmp_path) == ["x"]
    _core.save_file(path, OTHER)
    assert tensor_bytes(path.read_bytes(), "x") == b"xyz"


def test_links(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"

    def again():
        real.write_bytes(b"old")
        if link.is_symlink() or link.exists():
            link.unlink()
        link.symlink_to(real)
    again()
    _core.save_file(link, ONE, link="follow")
    assert link.is_symlink() and tensor_bytes(real.read_bytes(), "x") == b"abc"
    again()
    _core.save_file(link, ONE)
    assert not link.is_symlink() and real.read_bytes() == b"old"
    again()
    with pytest.raises(OSError) as caught:
        _core.save_file(link, ONE, link="refuse")
    assert caught.value.code == "is_link" and real.read_bytes() == b"old"
    with pytest.raises(ValueError, match="follow"):
        _core.save_file(link, ONE, link="keep")


def test_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileNotFoundError):
        _core.save_file(tmp_path / "no" / "x", ONE)
    with pytest.raises(OSError):
        _core.save_file(tmp_path, ONE)
    if getattr(os, "geteuid", lambda: 0)() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(PermissionError):
            _core.save_file(tmp_path / "x", ONE)
    assert os.listdir(tmp_path) == []


def test_saving_over_the_mapped_source(tmp_path):
    path = tmp_path / "x"
    array = np.arange(1000, dtype=np.int64)
    _core.save_file(path, [spec_of("x", array)])
    mapped = np.memmap(path, dtype=np.uint8, mode="r")
    data = mapped[-8000:]
    _core.save_file(path, [("x", "I64", [1000], data, None)])
    assert tensor_bytes(path.read_bytes(), "x") == array.tobytes()


# ── Long work ──

def endless(gib):
    """A spec of so many GiB that takes no memory."""
    array = np.broadcast_to(np.zeros(1, np.uint8), (gib << 30,))
    return [("x", "U8", array.shape, array, array.strides)]


class Stop(Exception):
    pass


def test_progress_is_called(tmp_path):
    seen = []
    _core.save_file(tmp_path / "x", ONE, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3, 3)
    with pytest.raises(TypeError):
        _core.save_file(tmp_path / "x", ONE, progress=3)


def test_what_progress_raises_leaves_nothing_behind(tmp_path):
    def progress(done, total):
        assert 0 <= done < total
        raise Stop(done)
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(Stop):
        _core.save_file(tmp_path / "x", endless(1), sync=False, progress=progress)
    assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_bytes() == b"old"


def test_what_progress_raises_at_the_end_leaves_nothing_behind(tmp_path):
    def progress(done, total):
        if done == total:
            raise Stop
    for specs in (ONE, ONE + [("y", "U8", [0], b"", None)], endless(1)):
        with pytest.raises(Stop):
            _core.save_file(tmp_path / "x", specs, sync=False, progress=progress)
        assert os.listdir(tmp_path) == []


def test_the_end_is_reported_once(tmp_path):
    seen = []
    specs = ONE + [("z%d" % i, "U8", [0], b"", None) for i in range(5)]
    _core.save_file(tmp_path / "x", specs, progress=lambda *now: seen.append(now))
    assert seen == [(3, 3)]


def test_a_signal_leaves_nothing_behind(tmp_path):
    def handler(number, frame):
        raise Stop
    with alarm(handler, 0.05):
        with pytest.raises(Stop):
            _core.save_file(tmp_path / "x", endless(1), sync=False)
    assert os.listdir(tmp_path) == []


def test_other_threads_run_meanwhile():
    array = np.broadcast_to(np.zeros(1, np.uint8), (1 << 28,))
    spans, running = [], threading.Event()

    def work():
        running.set()
        begin = time.perf_counter()
        _core.save_bytes([("x", "U8", array.shape, array, array.strides)])
        spans.append((begin, time.perf_counter()))
    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    ticks = []
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    thread.join()
    begin, end = spans[0]
    inside = [tick for tick in ticks if begin < tick < end]
    assert len(inside) >= 5, (len(inside), end - begin)


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    program = textwrap.dedent("""
        import resource, signal, sys
        from libsafetensors import _core
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        try:
            _core.save_file(sys.argv[1], [("x", "U8", [1000000], bytes(1000000), None)])
        except OSError as error:
            print(type(error).__name__, error.errno, error.code)
    """)
    out = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True,
                         check=True)
    assert out.stdout.split() == ["OSError", str(errno.EFBIG), "io_write"]
    assert os.listdir(tmp_path) == ["x"] and path.read_bytes() == b"old"


# ── Memory ──

def test_nothing_leaks(tmp_path):
    array = np.arange(64, dtype=np.float32).reshape(8, 8).T
    good = [spec_of("x", array, True), ("y", "U8", [100], bytes(100), None)]
    bad = [good[0], ("y", "U8", [100], bytes(99), None)]

    def work():
        _core.save_bytes(good, {"a": "b"})
        for specs, metadata in ((bad, None), (good + good, {"a": "b"}), (good, {"a": 1}),
                                ([("\ud800", "U8", [], b"1", None)], None)):
            with pytest.raises(Exception):
                _core.save_bytes(specs, metadata)
        with pytest.raises(OSError):
            _core.save_file(tmp_path / "no" / "x", good)
    count = sys.getrefcount(array)
    assert grows(work, 1000) < 1 << 20
    assert sys.getrefcount(array) == count


def test_memory_is_not_doubled(tmp_path):
    program = textwrap.dedent("""
        import resource, sys
        import numpy as np
        from libsafetensors import _core
        array = np.ones((128 << 20,), np.uint8).reshape(1 << 14, 1 << 13)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for a in (array, array.T):
            _core.save_file(sys.argv[1], [("x", "U8", a.shape, a, a.strides)], sync=False)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """)
    out = subprocess.run([sys.executable, "-c", program, tmp_path / "x"], capture_output=True,
                         text=True, check=True)
    assert int(out.stdout) < 16 << 10  # KiB


def test_json_of_the_header_is_strict():
    data = _core.save_bytes([("a\"\\\n\u0001é", "U8", [1], b"1", None)], {"\u2028": "\x7f"})
    header, metadata, _ = parse(data)
    assert list(header) == ["a\"\\\n\u0001é"] and metadata == {"\u2028": "\x7f"}
    json.loads(data[8:8 + int.from_bytes(data[:8], "little")], strict=True)


def test_a_stream_that_would_block_is_no_success():
    """Its write() returns None where it takes nothing."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with open(reader, "rb"), open(writer, "wb", buffering=0) as stream:
        with pytest.raises(BlockingIOError, match="would block"):
            _core.save_file(stream, [("x", "U8", (4 << 20,), bytes(4 << 20), None)])


def test_write_may_return_any_integer():
    class Slow:
        taken = b""

        def write(self, data):
            self.taken += data[:1000]
            return np.int64(min(len(data), 1000))
    rows, slow = [("x", "U8", (9999,), bytes(range(9)) * 1111, None)], Slow()
    _core.save_file(slow, rows)
    assert slow.taken == _core.save_bytes(rows)
