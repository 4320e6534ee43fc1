"""The table of functions for CUDA, over a torch.cuda that only writes down what it is asked."""
import contextlib

import pytest

torch = pytest.importorskip("torch")

import libsafetensors  # noqa: E402
from libsafetensors import _device  # noqa: E402
from libsafetensors.torch import load_file  # noqa: E402
from reading import pack  # noqa: E402


class Stream:
    def __init__(self, log, name):
        self.log, self.name = log, name

    def wait_stream(self, other):
        self.log.append(("wait_stream", self.name, other.name))

    def wait_event(self, event):
        self.log.append(("wait_event", self.name, event.number))

    def synchronize(self):
        self.log.append(("synchronize", self.name))


@pytest.fixture
def cuda(monkeypatch):
    """What was called, in order. Memory of the device is memory of the CPU."""
    log = []
    home, current = Stream(log, "home"), []
    current.append(home)
    numbers = iter(range(1, 1 << 20))

    class Event:
        def __init__(self, blocking=False):
            assert blocking, "threads that read need the processor"
            self.number = next(numbers)

        def record(self, stream):
            log.append(("record", stream.name, self.number))

        def query(self):
            return False

        def synchronize(self):
            log.append(("wait", self.number))

    @contextlib.contextmanager
    def entered(stream):
        current.append(stream)
        yield
        current.pop()

    def made(*args, device=None, pin_memory=False, **more):
        kind = torch.device(device).type if device is not None else "cpu"
        if pin_memory:
            log.append(("pin", args[0]))
        elif kind == "cuda":
            log.append(("allocate", current[-1].name))
        return empty(*args, **more)

    def copied(target, source, non_blocking=False):
        log.append(("copy", current[-1].name, non_blocking))
        return copy(target, source)

    empty, copy = torch.empty, torch.Tensor.copy_
    monkeypatch.setattr(torch, "empty", made)
    monkeypatch.setattr(torch.Tensor, "copy_", copied)
    for name, value in (("Stream", lambda device: Stream(log, "side")), ("Event", Event),
                        ("stream", entered), ("current_device", lambda: 0),
                        ("device_count", lambda: 1),
                        ("current_stream", lambda device: current[-1]),
                        ("memory_reserved", lambda device: 0),
                        ("memory_allocated", lambda device: 0),
                        ("mem_get_info", lambda device: (1 << 40, 1 << 40))):
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(_device.CudaDevice, "slots", _device.Slots(_device._pinned, 1 << 28))
    monkeypatch.setattr(torch.version, "hip", None)
    return log, home, entered


@pytest.fixture
def path(tmp_path):
    data = {"t%d" % i: ("U8", [size], bytes([i]) * size)
            for i, size in enumerate([100, 20 << 20, 2 << 20, 0, 513])}
    (tmp_path / "m").write_bytes(pack(data))
    return tmp_path / "m"


def test_the_order(path, cuda):
    log, _, _ = cuda
    plain = load_file(path)
    log.clear()
    found = load_file(path, device="cuda")
    assert all(torch.equal(found[name], plain[name]) for name in plain)
    kinds = [one[0] for one in log]
    # The side stream has waited for the caller's before its first copy, and after each
    # allocation; every copy is on it and does not block.
    first = kinds.index("copy")
    assert ("wait_stream", "side", "home") in log[:first]
    for at, one in enumerate(log):
        if one[0] == "allocate" and "copy" in kinds[at:]:
            assert one[1] == "home"
            until = kinds.index("copy", at)
            assert ("wait_stream", "side", "home") in log[at:until]
    assert {one[1:] for one in log if one[0] == "copy"} == {("side", True)}
    # An event behind the copies of each slot.
    for before, one in zip(log, log[1:]):
        if before[0] == "copy":
            assert one[0] == "copy" or one[:2] == ("record", "side")
    # At the end: one more event, for which the caller's stream waits, and then the host.
    last = max(one[2] for one in log if one[0] == "record")
    tail = [one for one in log if one[0] in ("record", "wait_event", "wait", "synchronize")][-4:]
    assert tail == [("record", "side", last), ("wait_event", "home", last), ("wait", last),
                    ("synchronize", "side")]
    # Four slots; each is tried twice, since this memory is not at a page as pinned memory is.
    assert kinds.count("pin") <= 2 * 4


def test_a_slot_is_lent_again_after_its_event(path, cuda):
    """The reader gets slots back in the order of their events, each after it has happened."""
    log, _, _ = cuda
    load_file(path, device="cuda")
    recorded = [one[2] for one in log if one[0] == "record"]
    waited = [one[1] for one in log if one[0] == "wait"]
    assert recorded == sorted(recorded) and waited == sorted(waited)
    assert set(waited) <= set(recorded)


def test_memory_is_asked_for_once(path, cuda, monkeypatch):
    log, _, _ = cuda
    monkeypatch.setattr(_device, "_WARM", 1 << 20)
    load_file(path, device="cuda")
    assert log.index(("allocate", "home")) < [one[0] for one in log].index("copy")
    assert sum(one[0] == "allocate" for one in log) == 1 + 3 + 1 + 2
    del log[:]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 20, 1 << 40))
    load_file(path, device="cuda")
    assert sum(one[0] == "allocate" for one in log) == 3 + 1 + 2


def test_a_loader_that_is_used_under_another_stream(path, cuda, monkeypatch):
    """Tensors are allocated for the stream of prefetch(); the one that takes them is told to the
    allocator."""
    log, _, entered = cuda
    told = []
    monkeypatch.setattr(torch.Tensor, "record_stream",
                        lambda tensor, stream: told.append(stream.name))
    with libsafetensors.safe_open(path, "pt", device="cuda") as f, f.prefetch() as loader:
        loader.take("t2")
        assert told == []
        with entered(Stream(log, "other")):
            loader.take("t0")
            loader.take("t1")
        assert told == ["other", "other"]
    assert {one[1] for one in log if one[0] == "allocate"} <= {"home", "other"}
    sizes = [one for one in log if one[0] == "allocate" and one[1] == "other"]
    assert len(sizes) <= 1  # of nothing: the tensor over a shared block


def test_what_cannot_be_pinned(monkeypatch):
    def refuse(*args, pin_memory=False, **more):
        if pin_memory:
            raise RuntimeError("out of memory")
        return plain(*args, **more)
    plain = torch.empty
    monkeypatch.setattr(torch, "empty", refuse)
    slots = _device.Slots(_device._pinned, 1 << 28)
    slot = slots.take(True)
    assert slot.nbytes == _device.SLOT_BYTES and slot.data_ptr() % 4096 == 0


def test_devices_that_go_by_tensor_to(monkeypatch):
    for name in ("mps", "xpu", "meta", "maia", "cpu"):
        assert _device.device_of(torch.device(name)) is None
    monkeypatch.setattr(torch.version, "hip", "6.2")
    assert _device.device_of(torch.device("cuda")) is None
