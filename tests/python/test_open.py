"""open(): every kind of source, facts of the handle, and refused arguments."""
import io
import json
import os
import subprocess
import sys

import pytest
from reading import BITS, MAPS, WAYS, ReadAt, aligned, filling, one_of_each, opened, pack

import libsafetensors
from libsafetensors import _core


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    data = aligned(one_of_each(), {"format": "pt", "b": "ü"})
    path = tmp_path_factory.mktemp("open") / "model.safetensors"
    path.write_bytes(data)
    return str(path), data


@pytest.mark.parametrize("way", WAYS)
def test_every_source_gives_the_same_facts(sample, way):
    path, data = sample
    with opened(way, path, data) as file:
        assert len(file) == len(BITS) == 22
        assert list(file) == file.keys() == list(BITS)
        assert file.keys("name") == sorted(BITS)
        assert file.metadata() == {"format": "pt", "b": "ü"}
        assert file.nbytes == sum(24 * bits // 8 for bits in BITS.values())
        assert file.header() == data[8:8 + int.from_bytes(data[:8], "little")]
        assert not file.closed
        for name, (dtype, shape, raw) in one_of_each().items():
            tensor = file[name]
            assert (tensor.name, tensor.dtype, tensor.shape) == (name, dtype, shape)
            assert tensor.tobytes() == raw
    assert file.closed


def test_paths_and_mapped(sample, tmp_path):
    path, data = sample
    for source in (path, os.fsencode(path), __import__("pathlib").Path(path)):
        if isinstance(source, bytes):
            continue  # bytes are contents, see below
        file = _core.open(source)
        assert file.mapped == MAPS and file.paths == [path]
    assert not _core.open(path, mode="read").mapped
    assert not _core.open(data).mapped and _core.open(data, mode="map").mapped
    assert _core.open(data).paths == []
    with open(path, "rb") as file:
        assert repr(_core.open(file)) == "<File %r, 22 tensors>" % path


def test_bytes_are_contents_not_a_path(sample):
    with pytest.raises(libsafetensors.SafetensorError) as caught:
        _core.open(os.fsencode(sample[0]))
    assert caught.value.code != "not_found"


def test_orders_of_keys():
    tensors = {name: ("U8", [1], b"\0") for name in ("b.10", "b.9", "a")}
    file = _core.open(pack(tensors, order=["a", "b.9", "b.10"]))
    assert file.keys() == file.keys("offset") == ["b.10", "b.9", "a"]
    assert file.keys(order="name") == ["a", "b.10", "b.9"]
    assert file.keys("natural") == ["a", "b.9", "b.10"]
    assert file.keys("header") == ["a", "b.9", "b.10"]
    with pytest.raises(ValueError, match="'offset', 'name', 'natural', 'header'"):
        file.keys("size")


def test_names():
    name = "ü\0😀\n"
    file = _core.open(pack({name: ("U8", [1], b"\7"), "": ("U8", [1], b"\1")}))
    assert name in file and "" in file and "x" not in file and 3 not in file
    assert "\ud800" not in file
    assert file.keys() == [name, ""] and file[name].tobytes() == b"\7"
    with pytest.raises(TypeError):
        file[3]


def test_as_a_mapping(sample):
    file = _core.open(sample[0])
    assert [name for name, _ in file.items()] == file.keys() == [t.name for t in file.values()]
    assert {n: t.tobytes() for n, t in file.items()} == {n: file[n].tobytes() for n in file}
    name = file.keys()[0]
    assert file.get(name).tobytes() == file[name].tobytes()
    assert file.get("none") is None and file.get("none", 3) == 3 and file.get(1) is None
    pytest.importorskip("torch")
    for read in (file.numpy, file.torch):
        assert list(read(name)) == [name]
    file.close()
    for call in (file.items, file.values, lambda: file.get(name)):
        with pytest.raises(ValueError, match="File is closed"):
            call()


def test_metadata_none_and_empty():
    assert _core.open(pack({})).metadata() is None
    assert _core.open(pack({}, {})).metadata() == {}


def test_ls_json(sample):
    listed = json.loads(_core.open(sample[0]).ls_json("name"))
    assert listed["path"] == sample[0] and listed["ok"] is True
    assert [row["name"] for row in listed["tensors"]] == sorted(BITS)


@pytest.fixture
def sharded(tmp_path):
    names = {"one.safetensors": ["b", "a"], "two.safetensors": ["c"]}
    for i, (shard, held) in enumerate(names.items()):
        tensors = {name: ("I32", [2], filling("I32", 2, ord(name))) for name in held}
        (tmp_path / shard).write_bytes(aligned(tensors, {"n": str(i), shard: "x"}))
    index = {"metadata": {}, "weight_map": {n: s for s, held in names.items() for n in held}}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    return path


@pytest.mark.parametrize("mode", ["auto", "map", "read"])
def test_shards_are_one_model(sharded, mode):
    for source in (sharded, sharded.parent):
        file = _core.open(source, mode=mode)
        assert file.keys() == ["b", "a", "c"] and file.nbytes == 24
        assert [os.path.basename(path) for path in file.paths] == [
            "one.safetensors", "two.safetensors"]
        assert file.metadata() == {"n": "0", "one.safetensors": "x", "two.safetensors": "x"}
        assert file["c"].shard == 1 and file["c"].tobytes() == filling("I32", 2, ord("c"))
        assert b'"c"' in file.header(1) and b'"c"' not in file.header()
        arrays = file.numpy()
        assert {name: array.tobytes() for name, array in arrays.items()} == {
            name: filling("I32", 2, ord(name)) for name in "bac"}
        assert list(file.numpy(["c", "a"])) == ["c", "a"]
        with pytest.raises(IndexError):
            file.header(2)
        with pytest.raises(IndexError):
            file.header(-1)


def test_header_only():
    whole = aligned(one_of_each())
    cut = whole[:8 + int.from_bytes(whole[:8], "little")]
    with pytest.raises(libsafetensors.SafetensorError):
        _core.open(cut)
    file = _core.open(cut, header_only=True, mode="map")
    assert file["F32"].shape == (4, 6) and file["F32"].byte_ranges()
    with pytest.raises((OSError, libsafetensors.SafetensorError)):
        file["F32"].tobytes()
    with pytest.raises((OSError, libsafetensors.SafetensorError)):
        file["F32"].numpy()


def test_levels_and_limits():
    twice = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},' \
            b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    data = len(twice).to_bytes(8, "little") + twice + b"\0"
    assert _core.open(data, level="compat").keys() == ["a"]
    with pytest.raises(libsafetensors.SafetensorError) as caught:
        _core.open(data)
    assert caught.value.code == "tensor_duplicate"
    with pytest.raises(libsafetensors.SafetensorError) as caught:
        _core.open(data, level="compat", max_header_bytes=10)
    assert caught.value.code == "header_too_large"
    with pytest.raises(ValueError, match="'compat', 'default', 'strict'"):
        _core.open(data, level="lenient")


def test_a_path_with_methods_of_a_file_is_a_path(sample):
    class Local:
        """As py.path.local is."""

        def __fspath__(self):
            return sample[0]

        def read(self):
            raise AssertionError
    with _core.open(Local()) as file:
        assert file.mapped == MAPS and file.paths == [sample[0]]
    assert libsafetensors.ls(Local())["path"] == sample[0] == libsafetensors.info(Local())["path"]
    assert libsafetensors.safe_open(Local(), "np").keys()


def test_a_source_is_read_only_where_asked():
    tensors = {"big": ("U8", [1 << 20], bytes(1 << 20)), "x": ("U8", [4], b"abcd")}
    source = ReadAt(pack(tensors))
    file = _core.open(source)
    del source.reads[:]
    assert file["x"].tobytes() == b"abcd"
    assert file["big"][1000:1004].tobytes() == bytes(4)
    assert sum(length for _, length in source.reads) == 8


def test_size_may_be_unknown():
    file = _core.open(ReadAt(pack({"a": ("U8", [3], b"abc")}), known=False))
    assert file["a"].tobytes() == b"abc"


@pytest.mark.parametrize("source", [3, None, 1.5, object(), [b""]])
def test_what_is_no_source(source):
    with pytest.raises(TypeError):
        _core.open(source)


def test_a_read_at_without_size_is_refused():
    class Bad:
        def read_at(self, offset, length):
            return b""
    with pytest.raises(AttributeError, match="size"):
        _core.open(Bad())


def test_files_are_not_written_to(tmp_path):
    np = pytest.importorskip("numpy")
    path = tmp_path / "model.safetensors"
    path.write_bytes(aligned(one_of_each()))
    before = path.read_bytes()
    file = _core.open(path, mode="cow")
    array = file.numpy()["F32"]
    array[:] = 7
    assert np.array_equal(file["F32"].numpy(), array)  # one handle, one memory
    assert file["F32"].tobytes() == array.tobytes()
    assert path.read_bytes() == before
    assert not np.array_equal(_core.open(path)["F32"].numpy(), array)


def test_shared_map_is_read_only(sample):
    pytest.importorskip("numpy")
    array = _core.open(sample[0], mode="map")["F32"].numpy()
    with pytest.raises(ValueError):
        array[0, 0] = 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of address space")
def test_reads_where_the_system_does_not_map(tmp_path):
    path = tmp_path / "big.safetensors"
    size = 4 << 30
    with open(path, "wb") as file:
        head = pack({"small": ("U8", [4], b""), "big": ("U8", [size - 4], b"")})
        header = json.loads(head[8:])
        header["small"]["data_offsets"] = [0, 4]
        header["big"]["data_offsets"] = [4, size]
        text = json.dumps(header).encode()
        file.write(len(text).to_bytes(8, "little") + text + b"abcd")
        file.truncate(8 + len(text) + size)
    script = (
        "import resource, sys\n"
        "from libsafetensors import _core\n"
        "resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))\n"
        "for mode in ('auto', 'cow'):\n"
        "    file = _core.open(sys.argv[1], mode=mode)\n"
        "    assert not file.mapped and file['small'].tobytes() == b'abcd'\n"
        "try:\n"
        "    _core.open(sys.argv[1], mode='map')\n"
        "except OSError as error:\n"
        "    assert error.code == 'io_map', error.code\n"
        "else:\n"
        "    raise SystemExit('mapped')\n"
        "try:\n"
        "    file['big'].tobytes()\n"
        "except MemoryError:\n"
        "    print('fine')\n")
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True,
                          text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("mode", ["auto", "map", "cow", "read"])
def test_memory_of_tensors_side_by_side(sharded, mode):
    file = _core.open(sharded, mode=mode)
    b, a, c = (file[name] for name in "bac")
    begin, end = b.offset, a.offset + a.nbytes
    assert a.offset == b.offset + b.nbytes and a.shard == b.shard == 0
    both, third = file.memory(begin, end), file.memory(c.offset, c.offset + c.nbytes, shard=1)
    none = file.memory(end, end)
    for wrong in ((begin - 1, end), (begin, end + 1), (end, begin), (0, 0), (2 ** 63, 2 ** 64 - 1)):
        with pytest.raises(ValueError, match="expected bytes from %d to %d, found %d to %d"
                           % (begin, end, *wrong)):
            file.memory(*wrong)
    for shard in (2, -1):
        with pytest.raises(IndexError):
            file.memory(begin, end, shard)
    with pytest.raises(OverflowError):
        file.memory(-1, end)
    with pytest.raises(TypeError):
        file.memory("0", end)
    told = b.tobytes() + a.tobytes()
    file.close()
    del a, b
    assert bytes(both) == told and bytes(third) == c.tobytes() and bytes(none) == b""
    assert memoryview(both).readonly and memoryview(both).nbytes == end - begin


def test_memory_of_a_file_that_was_cut(tmp_path):
    path = tmp_path / "a.safetensors"
    _core.save_file(path, [("a", "U8", (4096,), bytes(4096), None)])
    file = _core.open(path, mode="read")
    begin = file["a"].offset
    os.truncate(path, begin + 100)
    assert bytes(file.memory(begin, begin + 100)) == bytes(100)
    with pytest.raises(OSError):
        file.memory(begin, begin + 4096)


def test_closing_twice_and_using_a_closed_one(sample):
    file = _core.open(sample[0])
    file.close()
    file.close()
    assert file.closed and repr(file) == "<File, closed>"
    for use in (len, list, lambda f: f["F32"], lambda f: "F32" in f, lambda f: f.keys(),
                lambda f: f.metadata(), lambda f: f.numpy(), lambda f: f.ls_json(),
                lambda f: f.header(), lambda f: f.paths, lambda f: f.mapped,
                lambda f: f.memory(8, 9), lambda f: f.nbytes, lambda f: f.__enter__()):
        with pytest.raises(ValueError, match="File is closed"):
            use(file)


def test_types_are_not_made_by_hand():
    for kind in (_core.File, _core.Tensor):
        with pytest.raises(TypeError):
            kind()
        with pytest.raises(TypeError):
            type("Sub", (kind,), {})


def test_a_buffer_is_locked_while_it_is_used():
    data = bytearray(aligned(one_of_each()))
    file = _core.open(data)
    with pytest.raises(BufferError):
        data.append(0)
    tensor = file["U8"]
    file.close()
    with pytest.raises(BufferError):
        data.append(0)
    del tensor
    data.append(0)


def test_a_shared_buffer_sees_writes():
    np = pytest.importorskip("numpy")
    data = bytearray(aligned({"a": ("U8", [3], b"abc")}))
    shared = _core.open(data, mode="map")["a"].numpy()
    shared[0] = 0
    assert data[-3:] == b"\0bc"
    own = _core.open(data)["a"].numpy()
    own[1] = 9
    assert data[-3:] == b"\0bc" and own.flags.writeable
    frozen = _core.open(bytes(data), mode="map")["a"].numpy()
    assert not frozen.flags.writeable and np.array_equal(frozen, [0, 98, 99])


def test_text_files_are_refused():
    with pytest.raises(TypeError):
        _core.open(io.StringIO("abcdefghijkl"))


def test_a_folder_is_its_model(sharded, tmp_path_factory):
    folder = tmp_path_factory.mktemp("single")
    with pytest.raises(OSError) as caught:
        _core.open(folder)
    assert caught.value.code == "io_not_file" and str(caught.value).startswith(str(folder))
    (folder / "model.safetensors").write_bytes(pack({"a": ("U8", [1], b"a")}))
    (folder / "config.json").write_text("{}")
    assert _core.open(folder).keys() == ["a"]
    assert _core.open(folder).paths == [str(folder / "model.safetensors")]
    (folder / "other.safetensors").write_bytes(pack({}))
    with pytest.raises(OSError, match="0 indexes and 2 files"):
        _core.open(folder)
    (sharded.parent / "b.safetensors.index.json").write_text("{}")
    with pytest.raises(OSError, match="2 indexes"):
        _core.open(sharded.parent)
