"""Writer: files written piece by piece, to paths and to objects."""
import gc
import io
import os
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from alarms import alarm
from libsafetensors import _core
from written import grows, parse, tensor_bytes

TENSORS = [("a", "U8", [4]), ("b", "F32", [2]), ("empty", "I64", [0, 3])]
DATA = {"a": b"abcd", "b": np.array([1, 2], np.float32).tobytes(), "empty": b""}
SPECS = [(name, dtype, shape, DATA[name], None) for name, dtype, shape in TENSORS]


class Target:
    """An object whose write() takes a limited number of bytes."""
    def __init__(self, most=None, fail_at=None):
        self.data, self.most, self.fail_at = bytearray(), most, fail_at

    def write(self, data):
        assert type(data) is bytes
        if self.fail_at is not None and len(self.data) + len(data) > self.fail_at:
            raise RuntimeError("the target is full")
        piece = data[:self.most]
        self.data += piece
        return len(piece)


def fill(writer):
    for name in writer.keys():
        writer.write(name, DATA[name])


# ── With a plan ──

def test_same_as_save(tmp_path):
    path = tmp_path / "x"
    with _core.Writer(path, TENSORS, {"k": "v"}) as writer:
        assert writer.keys() == ["empty", "b", "a"]
        fill(writer)
        assert not path.exists()
    assert path.read_bytes() == _core.save_bytes(SPECS, {"k": "v"})
    assert os.listdir(tmp_path) == ["x"]


def test_any_order_and_any_pieces(tmp_path):
    path = tmp_path / "x"
    writer = _core.Writer(path, TENSORS, sync=False)
    for name, data in (("a", b"ab"), ("b", DATA["b"][:3]), ("a", b""), ("b", DATA["b"][3:]),
                       ("a", memoryview(b"cd"))):
        assert writer.write(name, data) is None
    assert writer.finish() is None
    assert path.read_bytes() == _core.save_bytes(SPECS)


@pytest.mark.parametrize("dtype, kind", [("F32", "f4"), ("F16", "f2"), ("C64", "c8")])
def test_strided_views_of_numpy(dtype, kind):
    """memoryview has no values for some formats of numpy."""
    file, values = io.BytesIO(), np.arange(6).astype(kind)
    with _core.Writer(file, [("x", dtype, (3,))]) as writer:
        writer.write("x", memoryview(values)[::2])
    assert file.getvalue().endswith(values[::2].tobytes())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_random_pieces(tmp_path_factory, tensors, data):
    path = tmp_path_factory.mktemp("writer") / "x"
    left = {str(i): tensor for i, tensor in enumerate(tensors)}
    writer = _core.Writer(path, [(name, "U8", [len(t)]) for name, t in left.items()],
                          sync=False)
    while any(left.values()):
        name = data.draw(st.sampled_from([n for n, rest in left.items() if rest]))
        cut = data.draw(st.integers(1, len(left[name])))
        writer.write(name, left[name][:cut])
        left[name] = left[name][cut:]
    writer.finish()
    assert path.read_bytes() == _core.save_bytes(
        [(str(i), "U8", [len(t)], t, None) for i, t in enumerate(tensors)])


def test_options(tmp_path):
    path = tmp_path / "x"
    two = [("b", "U8", [1]), ("a", "U8", [1])]
    with _core.Writer(path, two, align=4096, keep_order=True) as writer:
        assert writer.keys() == ["b", "a"]
        writer.write("b", b"1")
        writer.write("a", b"2")
    assert (8 + int.from_bytes(path.read_bytes()[:8], "little")) % 4096 == 0
    with pytest.raises(FileExistsError):
        with _core.Writer(path, [], overwrite=False):
            pass
    with pytest.raises(ValueError):
        _core.Writer(path, [], link="keep")
    with pytest.raises(ValueError):
        _core.Writer(path, None, header_room=-1)


# ── Without a plan ──

def test_tensors_are_added(tmp_path):
    path = tmp_path / "x"
    with _core.Writer(path, metadata={"k": "v"}, header_room=4096) as writer:
        for name, dtype, shape in TENSORS:
            writer.add(name, dtype, shape)
            writer.write(name, DATA[name])
        assert writer.keys() == ["a", "b", "empty"]
    header, metadata, _ = parse(path.read_bytes())
    assert list(header) == ["a", "b", "empty"] and metadata == {"k": "v"}
    for name in DATA:
        assert tensor_bytes(path.read_bytes(), name) == DATA[name]


def test_what_cannot_be_added(tmp_path):
    with _core.Writer(tmp_path / "x", header_room=256) as writer:
        writer.add("a", "U8", [1])
        for spec, code in ((("a", "U8", [1]), "tensor_duplicate"),
                           (("b", "F99", [1]), "dtype_unknown"),
                           (("b" * 300, "U8", [1]), "header_too_large")):
            with pytest.raises(_core.SafetensorError) as caught:
                writer.add(*spec)
            assert caught.value.code == code
        with pytest.raises(UnicodeEncodeError):
            writer.add("\ud800", "U8", [1])
        writer.write("a", b"1")
    assert tensor_bytes((tmp_path / "x").read_bytes(), "a") == b"1"
    with _core.Writer(tmp_path / "y", []) as writer:
        with pytest.raises(Exception):
            writer.add("a", "U8", [1])
        writer.abandon()


# ── To an object ──

def test_object_gets_the_bytes():
    for target in (Target(), Target(most=3), io.BytesIO()):
        with _core.Writer(target, TENSORS) as writer:
            fill(writer)
        data = target.getvalue() if isinstance(target, io.BytesIO) else bytes(target.data)
        assert data == _core.save_bytes(SPECS)


def test_large_pieces_go_through():
    data = np.random.default_rng(0).integers(0, 256, 5 << 20, np.uint8)
    target = Target()
    with _core.Writer(target, [("x", "U8", data.shape)]) as writer:
        writer.write("x", data)
    assert bytes(target.data) == _core.save_bytes([("x", "U8", data.shape, data, None)])


def test_object_needs_the_plan_and_its_order():
    with pytest.raises(_core.SafetensorError) as caught:
        _core.Writer(Target())
    assert caught.value.code == "out_of_order"
    writer = _core.Writer(Target(), TENSORS)
    with pytest.raises(_core.SafetensorError) as caught:
        writer.write("a", DATA["a"])
    assert caught.value.code == "out_of_order"


@pytest.mark.parametrize("full", [0, 300])
def test_exceptions_of_the_object_are_raised(full):
    target = Target(fail_at=full)
    with pytest.raises(RuntimeError, match="the target is full"):
        with _core.Writer(target, [("x", "U8", [3 << 20])]) as writer:
            writer.write("x", bytes(3 << 20))
    assert len(target.data) <= full


def test_object_that_takes_nothing():
    with pytest.raises(OSError, match="write"):
        _core.Writer(Target(most=0), TENSORS)

    class Odd:
        def write(self, data):
            return len(data) + 1
    with pytest.raises(OSError):
        _core.Writer(Odd(), TENSORS)

    class Silent:
        def write(self, data):
            return None
    _core.Writer(Silent(), []).finish()


def test_object_calls_its_writer():
    class Nested:
        def write(self, data):
            with pytest.raises(RuntimeError, match="at a time"):
                writer.write("a", b"a")
            return len(data)
    writer = None
    target = Target()
    writer = _core.Writer(target, TENSORS)
    target.write = Nested().write
    writer.write("b", DATA["b"])
    writer.abandon()


# ── The two endings ──

def test_block_that_raises_leaves_nothing(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(KeyError):
        with _core.Writer(tmp_path / "x", TENSORS) as writer:
            fill(writer)
            raise KeyError
    assert os.listdir(tmp_path) == ["x"] and (tmp_path / "x").read_bytes() == b"old"


def test_incomplete_is_not_published(tmp_path):
    writer = _core.Writer(tmp_path / "x", TENSORS)
    writer.write("b", DATA["b"])
    with pytest.raises(_core.SafetensorError) as caught:
        writer.finish()
    assert (caught.value.code, caught.value.tensor) == ("incomplete", "a")
    assert str(tmp_path / "x") in str(caught.value)
    assert os.listdir(tmp_path) == []
    with pytest.raises(ValueError):
        writer.finish()


def test_after_the_end(tmp_path):
    for end in ("finish", "abandon"):
        writer = _core.Writer(tmp_path / end, [("x", "U8", [0])])
        getattr(writer, end)()
        for call in (lambda: writer.write("x", b""), lambda: writer.add("y", "U8", []),
                     writer.finish, writer.__enter__):
            with pytest.raises(ValueError, match="finished or abandoned"):
                call()
        assert writer.abandon() is None and writer.keys() == ["x"]
        assert writer.__exit__(None, None, None) is None
    assert os.listdir(tmp_path) == ["finish"]


def test_ended_inside_the_block(tmp_path):
    with _core.Writer(tmp_path / "x", []) as writer:
        writer.finish()
    with _core.Writer(tmp_path / "y", []) as writer:
        writer.abandon()
    assert os.listdir(tmp_path) == ["x"]


def test_forgotten_writer_is_abandoned(tmp_path):
    _core.Writer(tmp_path / "x", TENSORS).write("a", b"ab")
    gc.collect()
    assert os.listdir(tmp_path) == []
    writer = _core.Writer(target := Target(), [])
    target.writer = writer
    del target, writer
    gc.collect()


# ── What is refused ──

def test_too_many_bytes(tmp_path):
    writer = _core.Writer(tmp_path / "x", TENSORS)
    with pytest.raises(Exception) as caught:
        writer.write("a", b"abcde")
    assert caught.value.code == "buffer_size" and caught.value.tensor == "a"
    writer.abandon()


def test_unknown_names(tmp_path):
    with _core.Writer(tmp_path / "x", TENSORS) as writer:
        with pytest.raises(_core.SafetensorError) as caught:
            writer.write("c", b"")
        assert (caught.value.code, caught.value.tensor) == ("tensor_not_found", "c")
        with pytest.raises(TypeError):
            writer.write(1, b"")
        with pytest.raises(TypeError):
            writer.write("a", 1)
        fill(writer)


def test_wrong_beginnings(tmp_path):
    for args in ((), (3,), (tmp_path / "x", 3), (tmp_path / "x", [("a",)]),
                 (tmp_path / "x", [], {"a": 1})):
        with pytest.raises(TypeError):
            _core.Writer(*args)
    with pytest.raises(FileNotFoundError):
        _core.Writer(tmp_path / "no" / "x", [])
    assert os.listdir(tmp_path) == []


# ── Threads, signals, memory ──

def test_two_threads_do_not_meet(tmp_path):
    writer = _core.Writer(tmp_path / "x", [("x", "U8", [1 << 28])], sync=False)
    started, met = threading.Event(), []

    def work():
        started.set()
        writer.write("x", bytes(1 << 28))
    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    while thread.is_alive() and not met:
        try:
            writer.write("x", b"")
        except RuntimeError as error:
            met.append(error)
        time.sleep(0.001)
    thread.join()
    writer.finish()
    assert met and (tmp_path / "x").stat().st_size > 1 << 28


def test_a_signal_ends_a_long_write(tmp_path):
    class Stop(Exception):
        pass

    def handler(number, frame):
        raise Stop

    class Slow(Target):
        def write(self, data):
            time.sleep(0.01)
            return len(data)
    with alarm(handler, 0.05):
        with pytest.raises(Stop):
            with _core.Writer(Slow(), [("x", "U8", [1 << 28])]) as writer:
                writer.write("x", bytes(1 << 28))


def test_nothing_leaks(tmp_path):
    target, data = Target(), bytes(4)

    def work():
        for _ in range(3):
            writer = _core.Writer(target, TENSORS, {"a": "b"})
            writer.write("empty", b"")
            with pytest.raises(Exception):
                writer.write("a", data)
        with _core.Writer(tmp_path / "x", sync=False) as writer:
            writer.add("a", "U8", [4])
            writer.write("a", data)
        with pytest.raises(Exception):
            _core.Writer(tmp_path / "x", [("a", "U8", [1])] * 2)
        target.data.clear()
    work()
    count = sys.getrefcount(target)
    assert grows(work, 300) < 1 << 20
    assert sys.getrefcount(target) == count


# ── An object, without a plan ──

def add_all(target, before=0):
    with _core.Writer(target, metadata={"k": "v"}) as writer:
        for name, dtype, shape in TENSORS:
            writer.add(name, dtype, shape)
            writer.write(name, DATA[name])


def check_all(data):
    file = _core.open(data)
    assert {name: file[name].tobytes() for name in file} == DATA and file.metadata() == {"k": "v"}


def test_without_a_plan_into_memory(tmp_path):
    out = io.BytesIO()
    add_all(out)
    check_all(out.getvalue())
    assert out.tell() == len(out.getvalue())
    with _core.Writer(tmp_path / "x", metadata={"k": "v"}) as writer:
        for name, dtype, shape in TENSORS:
            writer.add(name, dtype, shape)
            writer.write(name, DATA[name])
    assert (tmp_path / "x").read_bytes() == out.getvalue()


@pytest.mark.parametrize("buffering", [-1, 0])
def test_without_a_plan_into_an_open_file(tmp_path, buffering):
    with open(tmp_path / "x", "wb", buffering=buffering) as out:
        add_all(out)
    check_all((tmp_path / "x").read_bytes())


def test_it_begins_where_the_target_is():
    out = io.BytesIO(b"before" + bytes(20))
    out.seek(6)
    add_all(out)
    assert out.getvalue()[:6] == b"before" and out.tell() == len(out.getvalue())
    check_all(out.getvalue()[6:])


def test_two_files_one_behind_the_other():
    out, ends = io.BytesIO(), [0]
    for _ in range(2):
        add_all(out)
        ends.append(out.tell())
    for begin, end in zip(ends, ends[1:]):
        check_all(out.getvalue()[begin:end])


def test_what_cannot_seek_needs_the_plan(tmp_path):
    class Pipe(io.BytesIO):
        def seekable(self):
            return False
    with open(tmp_path / "x", "ab") as appends:
        for target in (Pipe(), Target(), appends):
            with pytest.raises(_core.SafetensorError, match="expected tensors=.*cannot seek"):
                _core.Writer(target)


def test_exceptions_of_seek_are_raised():
    class Bad(io.BytesIO):
        def seek(self, *where):
            raise ZeroDivisionError
    writer = _core.Writer(Bad())
    writer.add("a", "U8", [1])
    with pytest.raises(ZeroDivisionError):
        writer.write("a", b"a")
        writer.finish()
    writer.abandon()


def test_write_before_add(tmp_path):
    adding, planned = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    with _core.Writer(adding) as writer:
        with pytest.raises(_core.TensorNotFoundError, match="'x'.*call add.name, dtype, shape. f"):
            writer.write("x", b"ab")
        writer.add("x", "U8", (2,))
        writer.write("x", b"ab")
    with _core.Writer(planned, {"x": ("U8", (2,))}) as writer:
        with pytest.raises(_core.TensorNotFoundError, match="expected a tensor of the plan"):
            writer.write("y", b"ab")
        writer.write("x", b"ab")
    assert adding.read_bytes()[-2:] == planned.read_bytes()[-2:] == b"ab"
