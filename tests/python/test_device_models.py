"""load_model: tensors are read into parameters, with the result of loading and copying them."""
import copy

import pytest

torch = pytest.importorskip("torch")
official = pytest.importorskip("safetensors.torch")
from torch import nn  # noqa: E402

from fake_device import FakeDevice  # noqa: E402
from libsafetensors import _core, _device, _models  # noqa: E402
from libsafetensors.torch import load_file, load_model, save_file  # noqa: E402
from reading import pack  # noqa: E402


class Model(nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.linear = nn.Linear(60, 40)
        self.norm = nn.BatchNorm1d(40)
        self.norm.running_mean.normal_()
        self.deep = nn.Sequential(nn.Conv2d(3, 5, 3), nn.Sequential(nn.Linear(4, 4, bias=False)))
        self.half = nn.Linear(8, 8).half()
        self.register_buffer("table", torch.randn(7))
        self.register_buffer("hidden", torch.randn(7), persistent=False)
        self.scale = nn.Parameter(torch.randn(()))
        self.strided = nn.Parameter(torch.randn(6, 5).t())


def alike(model, other):
    one, two = model.state_dict(), other.state_dict()
    return set(one) == set(two) and all(torch.equal(one[name], two[name]) for name in one)


@pytest.fixture
def path(tmp_path):
    save_file({name: tensor.contiguous() for name, tensor in Model(1).state_dict().items()},
              tmp_path / "m")
    return tmp_path / "m"


def both(path, make=Model, strict=True, change=None):
    """The same by us and by the official package: models and results, or texts of errors."""
    found = []
    for function in (load_model, official.load_model):
        model = make()
        if change:
            change(model)
        try:
            result = function(model, path, strict=strict)
            result = set(result[0]), sorted(result[1])
        except RuntimeError as error:
            result = str(error)
        found.append((model, result))
    return found


def same(path, **more):
    (ours, one), (theirs, two) = both(path, **more)
    assert one == two
    assert alike(ours, theirs)
    return ours, one


def test_plain(path):
    model, result = same(path)
    assert result == (set(), []) and alike(model, Model(1))


def test_the_parameters_stay_where_they_are_and_nothing_is_copied(path):
    model = Model()
    before = {name: value.data_ptr() for name, value in model.state_dict().items()}
    hidden = model.hidden.clone()
    with _core.open(path, mode="read") as file:
        state = _models.read_state(model, file, None)
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    assert all(state[name] is own[name] for name in state) and len(state) == len(before)
    load_model(model, path)
    assert before == {name: value.data_ptr() for name, value in model.state_dict().items()}
    assert torch.equal(model.hidden, hidden)


def test_other_dtypes_are_converted(path):
    model, _ = same(path, make=lambda: Model().double())
    assert model.linear.weight.dtype is torch.float64


def test_frozen_and_trained(path):
    model, _ = same(path, change=lambda model: model.requires_grad_(False))
    assert not model.linear.weight.requires_grad
    model, _ = same(path)
    assert model.linear.weight.requires_grad and model.linear.weight.is_leaf


def test_missing_and_unexpected(path, tmp_path):
    tensors = load_file(path)
    del tensors["linear.bias"]
    tensors["extra"] = torch.ones(3)
    save_file(tensors, tmp_path / "n")
    same(tmp_path / "n")
    model, result = same(tmp_path / "n", strict=False)
    assert result == ({"linear.bias"}, ["extra"])
    assert torch.equal(model.linear.weight, tensors["linear.weight"])


@pytest.mark.parametrize("shape", [(3,), (1,), (), (40, 60, 1), (0,)])
def test_other_shapes(path, tmp_path, shape):
    tensors = load_file(path)
    tensors["table"] = torch.full(shape, 2.0)
    save_file(tensors, tmp_path / "n")
    same(tmp_path / "n")


def test_one_element_for_a_scalar(path, tmp_path):
    tensors = load_file(path)
    tensors["scale"] = torch.tensor([2.5])
    save_file(tensors, tmp_path / "n")
    model, _ = same(tmp_path / "n")
    assert model.scale.item() == 2.5


class Renames(nn.Linear):
    """Takes its weight by an older name, and turned."""

    def __init__(self):
        super().__init__(60, 40)
        self._register_load_state_dict_pre_hook(self.older)

    def older(self, state, prefix, *_):
        state[prefix + "weight"] = state[prefix + "weight"].flip(0)


class Own(nn.Linear):
    def __init__(self):
        super().__init__(60, 40)

    def _load_from_state_dict(self, state, prefix, *rest):
        state[prefix + "weight"] = state[prefix + "weight"] + 1
        super()._load_from_state_dict(state, prefix, *rest)


@pytest.mark.parametrize("kind", [Renames, Own])
def test_modules_with_ways_of_their_own(path, kind):
    def change(model):
        model.linear = kind()
    model, _ = same(path, change=change)
    assert not torch.equal(model.linear.weight, load_file(path)["linear.weight"])
    assert torch.equal(model.table, load_file(path)["table"])


def test_a_hook_around_all(path):
    def change(model):
        model._register_load_state_dict_pre_hook(
            lambda state, *_: state.update(table=state["table"] * 2))
    model, _ = same(path, change=change)
    assert torch.equal(model.table, load_file(path)["table"] * 2)


def test_tied_weights(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(8, 8, bias=False)
            self.b = nn.Linear(8, 8, bias=False)
            self.b.weight = self.a.weight
    weights = {name: torch.randn(8, 8) for name in ("a.weight", "b.weight")}
    save_file({"a.weight": weights["a.weight"]}, tmp_path / "one")
    model, _ = same(tmp_path / "one", make=Tied)
    assert model.a.weight is model.b.weight
    assert torch.equal(model.b.weight, weights["a.weight"])
    # A file with both: they are copied one after another.
    save_file(weights, tmp_path / "two")
    same(tmp_path / "two", make=Tied)


def test_views_of_one_memory(tmp_path):
    class Views(nn.Module):
        def __init__(self):
            super().__init__()
            memory = torch.zeros(10)
            self.register_buffer("a", memory[:6])
            self.register_buffer("b", memory[4:])
    save_file({"a": torch.arange(6.0), "b": torch.arange(6.0) + 100}, tmp_path / "m")
    with _core.open(tmp_path / "m", mode="read") as file:
        model = Views()
        _models.read_state(model, file, None)
    assert model.a[:4].tolist() == [0, 1, 2, 3] and model.b[2:].tolist() == [102, 103, 104, 105]


def test_views_of_one_memory_that_do_not_touch_each_other():
    base = torch.zeros(8)
    inner, other, apart = base[1:2], base[4:5], torch.zeros(2)
    assert _models._overlapping([other, apart, base, inner]) == {
        base.data_ptr(), inner.data_ptr(), other.data_ptr()}
    assert _models._overlapping([other, apart, inner]) == set()


def test_meta_parameters(path):
    with torch.device("meta"):
        model = Model()
    with pytest.warns(UserWarning, match="meta"):
        load_model(model, path)
    assert model.linear.weight.is_meta


def test_parameters_on_a_device(path, monkeypatch):
    """Parameters of another place are filled through slots of it."""
    devices = []

    def device_of(device):
        devices.append(FakeDevice(len(devices)))
        return devices[-1]
    monkeypatch.setattr(_device, "device_of", device_of)
    model = Model()
    rows = [(tensor, dict(model.named_parameters())[name])
            for name, tensor in _core.open(path, mode="read").items()
            if name in ("linear.weight", "half.weight", "deep.0.weight")]
    _models._fill(device_of(None), rows)
    for tensor, into in rows:
        assert torch.equal(into, tensor.torch())
    assert devices[0].calls.get("empty") is None and "room" not in devices[0].calls
    assert devices[0].log.index("order") < devices[0].log.index("copy")


def test_a_file_that_cannot_be_read(path):
    model = Model()
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    with pytest.raises(_core.SafetensorError):
        load_model(model, path)
    assert alike(model, Model())


def test_copies_of_a_model(path):
    model = copy.deepcopy(Model())
    load_model(model, path)
    assert alike(model, Model(1))


def test_dtypes_that_torch_lacks(tmp_path):
    (tmp_path / "m").write_bytes(pack({"x": ("F6_E2M3", [4], bytes(3))}))
    with pytest.raises(TypeError):
        load_model(nn.Linear(2, 2), tmp_path / "m", strict=False)
