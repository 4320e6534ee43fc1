"""What tensors are copied to a device from: never a private writable map of the file, whose pages
a driver would have to copy one by one in order to pin them."""
import sys

import pytest

torch = pytest.importorskip("torch")

import libsafetensors  # noqa: E402
from libsafetensors import safe_open  # noqa: E402
from libsafetensors.torch import load_file, load_model, save_file  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc/self/maps")

# A device that torch knows and that nobody has here.
DEVICE = torch.device("maia")


def mapping_at(address):
    """Permissions and path of the memory there."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            words = line.split(maxsplit=5)
            first, last = (int(word, 16) for word in words[0].split("-"))
            if first <= address < last:
                return words[1], words[5].strip() if len(words) > 5 else ""
    raise AssertionError("no memory at %#x" % address)


@pytest.fixture
def sources(monkeypatch):
    """(permissions, path) of the memory of each CPU tensor that is copied to the device; what
    arrives there is played by a clone."""
    found = []

    def record(tensor, *args, device=None, **more):
        device = args[0] if args and isinstance(args[0], torch.device) else device
        if device == DEVICE:
            found.append(mapping_at(tensor.data_ptr()))
            return tensor.clone()
        return plain(tensor, *args, **({"device": device} if device else {}), **more)

    plain = torch.Tensor.to
    monkeypatch.setattr(torch.Tensor, "to", record)
    return found


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.safetensors"
    save_file({"a": torch.arange(6000.0).reshape(60, 100), "b": torch.ones(3, dtype=torch.int64)},
              path)
    return path


def by_handle(path):
    with safe_open(path, "pt", device=DEVICE) as f:
        return {"a": f.get_tensor("a"), **{"b": f.get_tensors()["b"]}}


def by_slices(path):
    with safe_open(path, "pt", device=DEVICE) as f:
        part = f.get_slice("a")
        return {"a": torch.cat([part[:10], part[[*range(10, 60)]]]), "b": f.get_slice("b")[...]}


def by_model(path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            # Of another dtype: those of the file's are read to, and need no copy.
            self.a = torch.nn.Parameter(torch.zeros(60, 100, dtype=torch.float64))
            self.register_buffer("b", torch.zeros(3, dtype=torch.int64))
    model = Model()
    load_model(model, path, device=DEVICE)
    return {"a": model.a.detach().float(), "b": model.b}


WAYS = {
    "load_file": lambda path: load_file(path, device=DEVICE),
    "load_file, mmap": lambda path: load_file(path, DEVICE, backend="mmap"),
    "File.torch": lambda path: libsafetensors.open(path).torch(device=DEVICE),
    "File.torch, cow": lambda path: libsafetensors.open(path, mode="cow").torch(device=DEVICE),
    "File.torch, dtype": lambda path: libsafetensors.open(path).torch(device=DEVICE, dtype="F32"),
    "Tensor.torch": lambda path: {name: tensor.torch(device=DEVICE)
                                  for name, tensor in libsafetensors.open(path).items()},
    "a part": lambda path: {"a": libsafetensors.open(path)["a"][:].torch(device=DEVICE),
                            "b": libsafetensors.open(path)["b"].torch(device=DEVICE)},
    "safe_open": by_handle, "get_slice": by_slices, "load_model": by_model}


@pytest.mark.parametrize("way", WAYS)
def test_no_copy_from_a_private_map(path, sources, way):
    found = WAYS[way](path)
    assert torch.equal(found["a"], torch.arange(6000.0).reshape(60, 100))
    assert torch.equal(found["b"], torch.ones(3, dtype=torch.int64))
    assert sources and not [one for one in sources if one[0] == "rw-p" and one[1] == str(path)]


def test_the_control(path, sources):
    """The recorder tells a private map of the file from other memory."""
    tensor = libsafetensors.open(path, mode="cow")["a"].torch()
    tensor.to(DEVICE)
    assert sources == [("rw-p", str(path))]


# ── Copies on the CPU ──

def maps_of(path):
    with open("/proc/self/maps") as maps:
        return [line for line in maps if str(path) in line]


def test_a_copy_shares_nothing_with_the_file(path):
    found = load_file(path, copy=True)
    assert mapping_at(found["a"].data_ptr())[1] != str(path) and not maps_of(path)
    file = libsafetensors.open(path, mode="cow")
    for one, two in ((file.torch(copy=True)["a"], file.torch(copy=True)["a"]),
                     (file["a"].torch(copy=True), file["a"].torch(copy=True)),
                     (file.torch(copy=True, dtype="F32")["a"], found["a"])):
        assert mapping_at(one.data_ptr())[1] != str(path)
        assert torch.equal(one, two) and one.data_ptr() != two.data_ptr()
        assert torch.equal(one, file["a"].torch())
        one.zero_()
    assert torch.equal(file["a"].torch(), torch.arange(6000.0).reshape(60, 100))
    assert torch.equal(file["a"][3:5].torch(copy=True), file["a"].torch()[3:5])
