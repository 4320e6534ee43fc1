"""Loading further: lists and masks, patterns, near names, models on "meta", prefetch of shards, servers
that refuse."""
import asyncio
import os
import socket
import sys
import time

import numpy as np
import pytest

import libsafetensors as st
from libsafetensors import SafetensorError, TensorNotFoundError
from libsafetensors.numpy import load_file, save_file

VALUES = np.random.default_rng(5).standard_normal((7, 6, 5)).astype("f4")


@pytest.fixture(params=["auto", "read"])
def tensor(tmp_path, request):
    save_file({"model.layers.0.weight": VALUES, "empty": np.zeros((0, 3), "f4"),
               "model.norm": np.arange(9, dtype="i2")}, tmp_path / "a.safetensors", {"k": "v" * 3})
    with st.open(tmp_path / "a.safetensors", mode=request.param) as file:
        yield file["model.layers.0.weight"]


# ── Lists and masks ──

INDEXES = [[1, 5, 2], [-1, 0], [True] * 3 + [False] * 4, [], np.array([], int), VALUES[:, 0, 0] > 0,
           VALUES[:, :, 0] > 0, VALUES > 0, VALUES > 9, (slice(None), [1, 2, 2]), (0, [1, 4]),
           ([1, 2], 0), ([1, 2], 0, slice(1, 3)), (Ellipsis, [0, 4, 1]),
           (slice(1, 4), [0, 3], slice(0, 3)), (slice(None), VALUES[0] > 0), (2, VALUES[0] > 0),
           (Ellipsis, VALUES[0, 0] > 0), (slice(None, None, -2), [5, 0]), np.arange(200) % 7,
           np.uint8([1, 2]), ([2], Ellipsis, slice(4, None, -1)), (Ellipsis, [1], slice(None))]


@pytest.mark.parametrize("index", INDEXES, ids=range(len(INDEXES)))
def test_as_numpy(tensor, index):
    wanted, found = VALUES[index], tensor[index]
    assert found.shape == wanted.shape and found.dtype == "F32" and found.name == tensor.name
    assert (found.numpy() == wanted).all()


def test_random_lists_as_numpy(tensor):
    rng = np.random.default_rng(6)
    for _ in range(300):
        axis = rng.integers(3)
        choice = rng.integers(-VALUES.shape[axis], VALUES.shape[axis], rng.integers(12))
        index = (*[slice(None, None, rng.choice([1, 2, -1]))] * axis, choice.tolist())
        assert (tensor[index].numpy() == VALUES[index]).all()


def test_tensors_of_torch_choose(tensor):
    torch = pytest.importorskip("torch")
    assert (tensor[torch.tensor([3, 1])].torch() == torch.from_numpy(VALUES)[[3, 1]]).all()
    mask = torch.from_numpy(VALUES) > 0
    assert (tensor[mask].torch() == torch.from_numpy(VALUES)[mask]).all()


@pytest.mark.parametrize("index", [[7], [-8], [0.5], [True, False], ([1], [2]), ["a"], [None],
                                   (0, slice(None), [1]), ([1], slice(None), 0), [[1, 2], [3, 4]],
                                   VALUES[0] > 0, ([1], 0, 0, 0), (Ellipsis, Ellipsis, [0])])
def test_indexes_that_are_none(tensor, index):
    with pytest.raises(IndexError):
        tensor[index]


def test_only_the_rows_are_read(tmp_path):
    rows = np.arange(400000, dtype="u2").reshape(4000, 100)
    data = bytearray()
    save_file({"x": rows}, tmp_path / "a")
    asked = []

    class Source:
        size = os.path.getsize(tmp_path / "a")

        def read_at(self, offset, length):
            asked.append(length)
            return memoryview(data)[offset:offset + length]
    data += (tmp_path / "a").read_bytes()
    tensor = st.open(Source())["x"]
    asked.clear()
    assert (tensor[[5, 6, 7, 3000]].numpy() == rows[[5, 6, 7, 3000]]).all()
    assert sum(asked) == 4 * 200 and len(asked) == 2


def test_elements_below_a_byte(tmp_path):
    st._core.save_file(tmp_path / "a", [("x", "F4", (4, 4), bytes(range(8)), None)])
    tensor = st.open(tmp_path / "a")["x"]
    assert tensor[[3, 0]].tobytes() == bytes([6, 7, 0, 1])
    with pytest.raises(SafetensorError, match="begin at a byte"):
        tensor[:, [1]]


def test_references(tensor):
    index = [1, 2]
    before = sys.getrefcount(index), sys.getrefcount(tensor)
    for _ in range(1000):
        tensor[index]
        with pytest.raises(IndexError):
            tensor[[9]]
    assert (sys.getrefcount(index), sys.getrefcount(tensor)) == before


def hostile(rank):
    class Hostile:
        """An index whose attributes raise."""
        ndim = rank

        def __array__(self, *_, **__):
            raise KeyError("mine")
    return Hostile()


def test_hostile_indexes(tensor):
    with pytest.raises(KeyError, match="mine"):
        tensor[hostile(1)]
    with pytest.raises(TypeError):
        tensor[hostile(property(lambda self: 1 / 0))]


# ── Names ──

def test_a_pattern_alone(tensor, tmp_path):
    path = tmp_path / "a.safetensors"
    with st.open(path) as file:
        assert set(file.numpy("model.*")) == {"model.layers.0.weight", "model.norm"}
        assert set(file.numpy("empty")) == {"empty"}
        with pytest.raises(TensorNotFoundError):
            file.numpy("nope*")
    assert set(load_file(path, names="model.*")) == set(load_file(path, names=["model.*"]))
    assert st.convert(path, tmp_path / "b", "F16", names="model.l*")["cast"] == 1
    torch = pytest.importorskip("torch")
    from libsafetensors.torch import load_file as load_torch
    found = load_torch(path, names="model.l*", dtype=torch.float16)
    assert [one.dtype for one in found.values()] == [torch.float16]


@pytest.mark.parametrize("name, near", [
    ("model.layer.0.weight", "model.layers.0.weight"), ("layers.0.weight", "model.layers.0.weight"),
    ("model.layers.0.wieght", "model.layers.0.weight"), ("model.model.norm", "model.norm"),
    ("model.layers.1.weight", "model.layers.0.weight"), ("norm", "model.norm"), ("xyz", None),
    ("", None), ("\ud800", None), ("e", None)])
def test_near_names(tensor, tmp_path, name, near):
    with st.open(tmp_path / "a.safetensors") as file, pytest.raises(TensorNotFoundError) as caught:
        file[name]
    said = str(caught.value)
    assert said.endswith(': did you mean "%s"?' % near) if near else "did you mean" not in said


def test_near_dtypes_and_devices(tensor):
    for name, near in (("flaot32", "float32"), ("bfloat", "bfloat16"), ("float8_e4m3", "float8_e4m3fn")):
        with pytest.raises(SafetensorError, match='did you mean "%s"' % near):
            tensor.numpy(dtype=name)
    for name in ("half", "fp16", "FP16".lower()):
        assert tensor.numpy(dtype=name).dtype == "float16"
    with pytest.raises(SafetensorError, match="found \"float\""):
        tensor.numpy(dtype="float")
    torch = pytest.importorskip("torch")
    with pytest.raises(RuntimeError, match="there are: cpu"):
        tensor.torch(device="cuda:%d" % (torch.cuda.device_count() + 1))


# ── Models ──

def test_assign_to_a_model_without_memory(tmp_path):
    torch = pytest.importorskip("torch")
    from libsafetensors.torch import load_model, save_model

    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(5, 4)
            self.norm = torch.nn.BatchNorm1d(4)
            self.head = torch.nn.Linear(4, 5, bias=False)
            self.head.weight = self.embed.weight
    one = Tied()
    path = tmp_path / "m.safetensors"
    save_model(one, path)
    with torch.device("meta"):
        other = Tied()
    assert load_model(other, path, assign=True) == (set(), [])
    assert other.head.weight is other.embed.weight
    assert all((a == b).all() and not b.is_meta and type(a) is type(b) for a, b in
               zip(one.state_dict(keep_vars=True).values(), other.state_dict(keep_vars=True).values()))
    assert other.head.weight.requires_grad and other.norm.running_mean.requires_grad is False
    state = load_file(path)
    del state["norm.weight"]
    save_file({**state, "more": np.ones(2)}, path)
    with torch.device("meta"):
        third = Tied()
    with pytest.raises(RuntimeError, match="norm.weight"):
        load_model(third, path, assign=True)
    assert all(value.is_meta for value in third.state_dict().values())
    assert load_model(third, path, strict=False, assign=True) == ({"norm.weight"}, ["more"])
    assert third.norm.weight.is_meta and not third.norm.bias.is_meta


def test_prefetch_of_shards(tmp_path):
    torch = pytest.importorskip("torch")
    values = {"layer.%d" % i: torch.full((50, 3), float(i)) for i in range(20)}
    st.save_sharded(values, tmp_path / "m", max_shard_size=2000)
    with st.safe_open(tmp_path / "m", "pt") as file, file.prefetch() as loader:
        found = dict(loader)
    assert found.keys() == values.keys()
    assert all((found[name] == value).all() for name, value in values.items())

    async def collect(**options):
        return {name: one async for name, one in st.aprefetch(tmp_path / "m", **options)}
    found = asyncio.run(collect())
    assert all((found[name] == value).all() for name, value in values.items())
    found = asyncio.run(collect(plan={"layer.3": (slice(2, 4),), "layer.19": None}))
    assert {name: tuple(one.shape) for name, one in found.items()} == {
        "layer.3": (2, 3), "layer.19": (50, 3)}

    async def early():
        async for name, _ in st.aprefetch(tmp_path / "m"):
            return name
    assert asyncio.run(early()) in values
    with pytest.raises(SafetensorError, match="layer.99"):
        asyncio.run(collect(plan={"layer.99": None}))

    async def beside():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)
        task = asyncio.create_task(tick())
        async for _ in st.aprefetch(tmp_path / "m"):
            pass
        task.cancel()
        return ticks
    assert asyncio.run(beside()) > 5


@pytest.mark.few(1)
def test_a_refused_connection_is_told_soon(transport):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    begin = time.monotonic()
    with pytest.raises(ConnectionRefusedError, match="refused"):
        st.open("http://127.0.0.1:%d/a.safetensors" % port)
    assert time.monotonic() - begin < 3


# ── Models that load in their own way ──

def test_models_with_loaders_of_their_own(tmp_path):
    """What a model does with a state is up to it: nothing was read into it before."""
    torch = pytest.importorskip("torch")
    import types

    from libsafetensors.torch import load_model, save_file, save_model

    class KeepsHead(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(1, 1, bias=False)
            self.head = torch.nn.Linear(1, 1, bias=False)

        def load_state_dict(self, state, strict=True, assign=False):
            left = {name: one for name, one in state.items() if not name.startswith("head.")}
            return super().load_state_dict(left, strict=False, assign=assign)

    path = tmp_path / "head.safetensors"
    save_file({"body.weight": torch.ones(1, 1), "head.weight": torch.ones(1, 1)}, path)
    model = KeepsHead()
    model.head.weight.data.fill_(7.)
    load_model(model, path, strict=False)
    assert model.head.weight.item() == 7 and model.body.weight.item() == 1

    class Strips(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def load_state_dict(self, state, strict=True, assign=False):
            return super().load_state_dict({name.removeprefix("module."): one
                                            for name, one in state.items()}, strict, assign)

    path = tmp_path / "module.safetensors"
    save_file({"module.layer.weight": torch.ones(1, 1), "module.layer.bias": torch.ones(1)}, path)
    model = Strips()
    assert load_model(model, path) == (set(), []) and model.layer.weight.item() == 1

    class Scaled(torch.nn.Linear):
        extra = None

        def get_extra_state(self):
            return torch.zeros(2) if self.extra is None else self.extra

        def set_extra_state(self, state):
            self.extra = state

    first, second = (torch.nn.Sequential(Scaled(1, 1)) for _ in range(2))
    first[0].extra = torch.tensor([3., 4.])
    save_model(first, tmp_path / "extra.safetensors")
    load_model(second, tmp_path / "extra.safetensors")
    assert second[0].extra.tolist() == [3, 4]
    save_model(second, tmp_path / "again.safetensors")

    one = torch.nn.Linear(1, 1)
    one.weight.data.fill_(7.)
    one._load_from_state_dict = types.MethodType(lambda self, *rest: None, one)
    path = tmp_path / "own.safetensors"
    save_file({"weight": torch.ones(1, 1), "bias": torch.ones(1)}, path)
    load_model(one, path, strict=False)
    assert one.weight.item() == 7
