"""libsafetensors.numpy: arrays survive writing and reading unchanged."""
import gc
import io
import os
import subprocess
import sys

import pytest

import libsafetensors
from libsafetensors import SafetensorError, safe_open
from written import resident

np = pytest.importorskip("numpy")
from libsafetensors.numpy import load, load_file, save, save_file  # noqa: E402

NATIVE = ["bool", "uint8", "int8", "uint16", "int16", "float16", "uint32", "int32", "float32",
          "uint64", "int64", "float64", "complex64"]
SMALL = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz",
         "float8_e5m2fnuz"]


def sample(dtype, shape=(4, 6)):
    count = int(np.prod(shape, dtype=int))
    values = np.arange(count) % 2 if dtype == "bool" else np.arange(count)
    return values.reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(4, 6), (), (0,), (3, 0, 2), (1,)])
@pytest.mark.parametrize("dtype", NATIVE)
def test_round_trip(tmp_path, dtype, shape):
    array = sample(dtype, shape)
    save_file({"a": array}, tmp_path / "f")
    for backend in ("mmap", "pread"):
        got = load_file(tmp_path / "f", backend=backend)["a"]
        assert got.dtype == array.dtype and got.shape == array.shape
        np.testing.assert_array_equal(got, array)
    got = load((tmp_path / "f").read_bytes())["a"]
    assert got.dtype == array.dtype and got.shape == array.shape and got.flags.writeable
    assert save({"a": array}) == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("dtype", SMALL)
def test_ml_dtypes(tmp_path, dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, dtype):
        pytest.skip("this ml_dtypes has no " + dtype)
    for shape in ((4, 6), (), (0, 2)):
        array = np.arange(int(np.prod(shape, dtype=int)), dtype=np.uint8).reshape(shape)
        array = array.astype(np.float32).astype(getattr(ml_dtypes, dtype))
        save_file({"a": array}, tmp_path / "f")
        got = load_file(tmp_path / "f")["a"]
        assert got.dtype == array.dtype and got.shape == array.shape
        assert got.tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype,header", [("float4_e2m1fn", "F4"), ("float6_e2m3fn", "F6_E2M3"),
                                          ("float6_e3m2fn", "F6_E3M2")])
def test_packed_dtypes(tmp_path, dtype, header):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    if not hasattr(ml_dtypes, dtype):
        pytest.skip("this ml_dtypes has no " + dtype)
    array = np.arange(16, dtype=np.uint8).reshape(2, 8).view(getattr(ml_dtypes, dtype))
    save_file({"a": array}, tmp_path / "f")
    with libsafetensors.open(tmp_path / "f") as f:
        assert f["a"].dtype == header and f["a"].shape == (2, 8)
        bits = int(header[1])
        assert f["a"].nbytes == 16 * bits // 8
        value = int.from_bytes(f["a"].tobytes(), "little")
        assert [value >> bits * i & (1 << bits) - 1 for i in range(16)] == list(range(16))
    got = load_file(tmp_path / "f")["a"]
    if got.dtype == array.dtype:
        assert got.tobytes() == array.tobytes()


VIEWS = [
    lambda a: a.T, lambda a: np.asfortranarray(a), lambda a: a[::2], lambda a: a[:, ::3],
    lambda a: a[::-1], lambda a: a[:, ::-2], lambda a: a[1:3, 2:5], lambda a: a[:, 1],
    lambda a: np.broadcast_to(a[0], (5, 6)), lambda a: a[1:2, :0], lambda a: a.reshape(2, 2, 6).T,
    lambda a: a[None, :, None].transpose(3, 0, 1, 2), lambda a: np.lib.stride_tricks.as_strided(
        a, (3, 2), (a.itemsize, a.itemsize))]


@pytest.mark.parametrize("view", range(len(VIEWS)))
@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64", "bfloat16"])
def test_any_strides_are_packed(tmp_path, dtype, view):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    array = VIEWS[view](np.arange(24).reshape(4, 6).astype(dtype))
    save_file({"a": array, "b": array}, tmp_path / "f")
    for got in (load_file(tmp_path / "f"), load(save({"a": array, "b": array}))):
        for name in "ab":
            assert got[name].shape == array.shape and got[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c8", ">u2", "<f4", "=i8", "|b1"])
def test_byte_orders(dtype):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    for given in (array, array.T, array[::2]):
        got = load(save({"a": given}))["a"]
        assert got.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got, given)


def test_unaligned_and_record_fields():
    raw = np.frombuffer(b"x" + np.arange(5.0).tobytes(), np.uint8)[1:].view(np.float64)
    assert not raw.flags.aligned
    np.testing.assert_array_equal(load(save({"a": raw}))["a"], np.arange(5.0))
    record = np.zeros(4, [("x", "i1"), ("y", "<i4")])
    record["y"] = range(4)
    np.testing.assert_array_equal(load(save({"a": record["y"]}))["a"], range(4))


def test_scalars_and_refusals():
    assert load(save({"a": np.float32(2.5)}))["a"] == np.float32(2.5)
    for bad, kind in ((np.zeros(2, "S3"), SafetensorError), (np.zeros(2, object), SafetensorError),
                      (np.zeros(2, "complex128"), SafetensorError), ([1, 2], TypeError),
                      (np.zeros(2, "M8[s]"), SafetensorError)):
        with pytest.raises(kind):
            save({"a": bad})
    with pytest.raises(TypeError):
        save({1: np.zeros(1)})
    with pytest.raises(TypeError):
        save({"a": np.zeros(1)}, {"a": 5})


def written_by_a_writer(path, tensors):
    with libsafetensors.Writer(path, tensors) as writer:
        for name, array in tensors.items():
            writer.write(name, array)


def test_masked_elements_have_no_values(tmp_path):
    masked = np.ma.masked_array(np.ones(3, "f4"), mask=[False, True, False])
    save_file({"a": np.ones(3, "f4")}, tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    for write in (save, lambda tensors: save_file(tensors, tmp_path / "f"),
                  lambda tensors: libsafetensors.put(tmp_path / "f", tensors),
                  lambda tensors: libsafetensors.merge_models([tensors] * 2, tmp_path / "g"),
                  lambda tensors: written_by_a_writer(tmp_path / "g", tensors)):
        with pytest.raises(ValueError, match="'a': expected an array without masked elements"):
            write({"a": masked})
    assert (tmp_path / "f").read_bytes() == before and not (tmp_path / "g").exists()
    assert save({"a": np.ma.masked_array(np.ones(3, "f4"))}) == save({"a": masked.filled(1)})


def test_nothing_of_the_caller_changes(tmp_path):
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    tensors, metadata = {"b": array, "a": array}, {"k": "v"}
    save_file(tensors, tmp_path / "f", metadata)
    save(tensors, metadata)
    assert list(tensors) == ["b", "a"] and tensors["b"] is array and metadata == {"k": "v"}
    assert array.dtype.str == ">i4" and array.flags.f_contiguous


def test_views_share_the_map_and_never_reach_the_file(tmp_path):
    save_file({"a": np.arange(1000.0)}, tmp_path / "f")
    before = (tmp_path / "f").read_bytes()
    with libsafetensors.open(tmp_path / "f", mode="cow") as f:
        whole, part = f["a"].numpy(), f["a"][10:20].numpy()
        assert f.mapped and np.shares_memory(whole, part)
        whole[15] = -1
        assert part[5] == -1
    del f
    assert part[5] == -1 and (tmp_path / "f").read_bytes() == before
    loaded = load_file(tmp_path / "f")["a"]
    save_file({"a": loaded * 2}, tmp_path / "f")
    np.testing.assert_array_equal(loaded, np.arange(1000.0))


def test_order_alignment_and_options(tmp_path):
    arrays = {"b": np.zeros(3, np.uint8), "a": np.zeros(3, np.int64), "c": np.zeros(1, np.int64)}
    assert list(load(save(arrays))) == ["a", "c", "b"]
    assert list(load(save(arrays, keep_order=True))) == ["b", "a", "c"]
    for align in (8, 64, 256, 4096):
        save_file(arrays, tmp_path / "f", align=align)
        with libsafetensors.open(tmp_path / "f") as f:
            assert f["a"].offset % align == 0
    with pytest.raises(FileExistsError):
        save_file(arrays, tmp_path / "f", overwrite=False)
    with pytest.raises(TypeError):
        save_file(arrays, tmp_path / "f", nonsense=1)


def test_sources(tmp_path):
    arrays = {"a": np.arange(5.0), "b": np.arange(3, dtype=np.uint8)}
    data = save(arrays)
    (tmp_path / "f").write_bytes(data)
    for source in (str(tmp_path / "f"), tmp_path / "f", io.BytesIO(data)):
        got = load_file(source)
        assert set(got) == {"a", "b"}
    assert list(load_file(tmp_path / "f", names=["b"])) == ["b"]
    for buffer in (data, bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        np.testing.assert_array_equal(load(buffer)["a"], arrays["a"])
    held = bytearray(data)
    got = load(held)["a"]
    held[-40:] = bytes(40)
    np.testing.assert_array_equal(got, np.arange(5.0))


def test_many_small(tmp_path):
    arrays = {"t%d" % i: np.full(3, i, np.int32) for i in range(20000)}
    save_file(arrays, tmp_path / "f", sync=False)
    got = load_file(tmp_path / "f")
    assert len(got) == 20000 and all(got["t%d" % i][2] == i for i in range(0, 20000, 997))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_slice_reads_only_its_bytes(tmp_path):
    def read_so_far():
        with open("/proc/self/io") as facts:
            return int(facts.readline().split()[1])
    save_file({"a": np.zeros((1000, 1 << 14), np.uint8)}, tmp_path / "f")
    with libsafetensors.safe_open(tmp_path / "f", "np", backend="pread") as f:
        before = read_so_far()
        f.get_slice("a")[500:502]
        assert read_so_far() - before < 1 << 20
    assert os.path.getsize(tmp_path / "f") > 15 << 20


# ── Memory of its own ──

WAYS = {
    "load_file": lambda path: load_file(path)["x"],
    "pread": lambda path: load_file(path, backend="pread")["x"],
    "named": lambda path: load_file(path, names=["x"])["x"],
    "get_tensor": lambda path: safe_open(path, "np").get_tensor("x"),
    "get_tensors": lambda path: safe_open(path, "np").get_tensors()["x"],
    "get_slice": lambda path: safe_open(path, "np").get_slice("x")[:],
}
PROGRAM = """
import os, sys, numpy as np
sys.path[:0] = {paths!r}
from test_numpy import HARM, WAYS, save_file
for name, harm in HARM.items():
    path = os.path.join(sys.argv[1], name)
    save_file({{"x": np.arange(1 << 18, dtype="u1").repeat(16), "y": np.ones(3, "u1")}}, path)
    array = WAYS[{way!r}](path)
    exec(harm)
    assert array.flags.writeable and int(array[::4096].sum()) == {total}
    array[-1] = 7
    print(name, flush=True)
"""
HARM = {"truncated": "os.truncate(path, 100)", "opened for writing": "open(path, 'wb').close()",
        "overwritten": "f = open(path, 'r+b'); f.write(bytes(os.path.getsize(path))); f.close()"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.few(2)
def test_what_was_loaded_survives_its_file(way, tmp_path):
    total = int(np.arange(1 << 18, dtype="u1").repeat(16)[::4096].sum())
    program = PROGRAM.format(paths=sys.path, way=way, total=total)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True,
                          text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, [*HARM]), (done.stdout, done.stderr)


@pytest.mark.skipif(os.name == "nt", reason="files that are open cannot be cut")
@pytest.mark.parametrize("index", [np.s_[:, 3:5], np.s_[::2], np.s_[1, ::-1], np.s_[5:7]])
def test_slices_of_a_file_that_was_cut(tmp_path, index):
    """They are copied from a map, whose pages may be gone: an error, and no signal."""
    path, array = tmp_path / "x", np.arange(1 << 20, dtype="u4").reshape(1 << 10, 1 << 10)
    save_file({"x": array}, path)
    with safe_open(path, "np") as file:
        if index == np.s_[1, ::-1]:
            part = file._file["x"][index].numpy()
        else:
            part = file.get_slice("x")[index]
        assert np.array_equal(part, array[index])
        os.truncate(path, 4096)
        assert np.array_equal(part, array[index])
        with pytest.raises(OSError) as caught:
            file._file["x"][2:, 3:5].numpy()
        assert caught.value.code == "io_shrunk"
        part[...] = 0


def test_open_maps_all_the_same(tmp_path):
    path = tmp_path / "x"
    save_file({"x": np.arange(4, dtype="f4")}, path)
    with libsafetensors.open(path, mode="cow") as file:
        assert file.mapped and np.shares_memory(file.numpy()["x"], file["x"].numpy())


def test_one_array_keeps_no_other_alive():
    data = save({"a%d" % i: np.ones(1 << 20, "u1") for i in range(64)})
    kept = resident_after(lambda: load(data)["a3"])
    assert kept < 8 << 20


def resident_after(load):
    """How much memory the result of load keeps."""
    load()
    before = resident()
    kept = [load() for _ in range(24)]  # what the allocator keeps to itself counts once
    gc.collect()
    after = resident()
    del kept
    return (after - before) // 24


def test_neighbours_are_read_together_and_rightly(tmp_path):
    # Sizes around those at which reading changes its way, of one shard and in any order.
    sizes = [0, 1, 100, 32 << 10, (32 << 10) + 1, 3, 4, 200 << 10, 30 << 10, 30 << 10, 0, 5] * 4
    random = np.random.default_rng(1)
    tensors = {"t%03d" % i: random.integers(0, 256, size, np.uint8)
               for i, size in enumerate(sizes)}
    path = tmp_path / "x"
    save_file(tensors, path)
    names = list(tensors)
    random.shuffle(names)
    for chosen in (None, names, names[::3], names[:1]):
        got = load_file(path, names=chosen)
        assert list(got) == chosen if chosen else set(got) == set(tensors)
        assert all(np.array_equal(got[name], tensors[name]) for name in got)
    told = []
    load_file(path, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (sum(sizes),) * 2 and told == sorted(told)
    with pytest.raises(ZeroDivisionError):
        load_file(path, progress=lambda done, total: 1 / 0)
    file = libsafetensors.open(path, mode="read")
    os.truncate(path, 200000)
    with pytest.raises(OSError) as caught:
        file.numpy()
    assert caught.value.code == "io_shrunk" and caught.value.tensor.startswith("t")
