"""One handle, many threads."""
import threading

import pytest
from reading import aligned, filling, opened

from libsafetensors import _core

np = pytest.importorskip("numpy")

TENSORS = {"t%d" % i: ("I32", (32, 8), filling("I32", 256, i)) for i in range(40)}


def at_once(work, count=8):
    """Runs work(i) on many threads that start together; raises the first exception."""
    gate, failed = threading.Barrier(count), []

    def run(i):
        try:
            gate.wait()
            work(i)
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


@pytest.fixture
def path(tmp_path):
    name = tmp_path / "model.safetensors"
    name.write_bytes(aligned(TENSORS))
    return str(name)


@pytest.mark.parametrize("way", ["auto", "map", "read", "bytes", "lent", "fileobj", "trickle",
                                 "read_at"])
def test_reading(path, way):
    file = opened(way, path, aligned(TENSORS))

    def work(i):
        for turn in range(10):
            for name, (_, _, raw) in TENSORS.items():
                tensor = file[name]
                assert tensor.tobytes() == raw
                part = tensor[turn % 7::3, ::-1]
                want = np.frombuffer(raw, "<i4").reshape(32, 8)[turn % 7::3, ::-1]
                assert part.numpy().tobytes() == want.tobytes()
            assert file.numpy().keys() == TENSORS.keys()
            assert len(file.keys("natural")) == 40
    at_once(work)


def test_one_tensor_makes_one_copy(path):
    for _ in range(20):
        tensor = _core.open(path, mode="read")["t3"]
        arrays = [None] * 8

        def work(i):
            arrays[i] = tensor.numpy()
        at_once(work)
        arrays[0][:] = 7
        assert all((array == 7).all() for array in arrays)


def test_torch(path):
    pytest.importorskip("torch")
    file = _core.open(path)

    def work(i):
        for _ in range(20):
            tensors = file.torch()
            assert tensors["t%d" % i].numpy().tobytes() == TENSORS["t%d" % i][2]
    at_once(work)


def test_closing_meanwhile(path):
    for mode in ("auto", "read"):
        for _ in range(30):
            file = _core.open(path, mode=mode)

            def work(i):
                try:
                    for name, (_, _, raw) in TENSORS.items():
                        if i == 7 and name == "t20":
                            file.close()
                        assert file[name].tobytes() == raw
                except ValueError as error:
                    assert str(error) == "File is closed"
            at_once(work)
            assert file.closed


def test_opening_together(path):
    def work(i):
        for _ in range(30):
            with _core.open(path, mode=("auto", "read")[i % 2]) as file:
                assert file["t%d" % i].tobytes() == TENSORS["t%d" % i][2]
    at_once(work)


class Waits:
    """A source whose second read waits till another thread has run."""

    def __init__(self, data):
        self.data, self.size = data, len(data)
        self.asked, self.go = threading.Event(), threading.Event()
        self.slow = False

    def read_at(self, offset, length):
        if self.slow:
            self.asked.set()
            assert self.go.wait(20)
        return self.data[offset:offset + length]


def test_other_threads_run_while_one_reads():
    source = Waits(aligned(TENSORS))
    file = _core.open(source)
    source.slow = True
    got = []
    thread = threading.Thread(target=lambda: got.append(file["t1"].tobytes()))
    thread.start()
    assert source.asked.wait(20)
    assert file.keys() and "t2" in file and len(file) == 40
    source.go.set()
    thread.join()
    assert got == [TENSORS["t1"][2]]


def test_an_exception_stays_in_its_thread():
    class Bad:
        def __init__(self, data):
            self.data, self.size, self.broken = data, len(data), False

        def read_at(self, offset, length):
            if self.broken:
                raise KeyError(threading.get_ident())
            return self.data[offset:offset + length]
    source = Bad(aligned(TENSORS))
    file = _core.open(source)
    source.broken = True

    def work(i):
        for _ in range(50):
            with pytest.raises(KeyError) as caught:
                file["t%d" % i].tobytes()
            assert caught.value.args == (threading.get_ident(),)
    at_once(work)
