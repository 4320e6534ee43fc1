"""Patterns, conversions, strided arrays and put: what the official package then reads."""
import fnmatch

import hypothesis.strategies as some
import numpy as np
import pytest
from hypothesis import given, settings

import libsafetensors as st
from libsafetensors import numpy as st_numpy

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")
official = pytest.importorskip("safetensors.torch")

from libsafetensors import torch as st_torch  # noqa: E402

TORCH = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn,
         torch.float8_e5m2, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8,
         torch.bool]
NUMPY = ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?",
         ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
NAMES = some.text("ab.01[]*", min_size=1, max_size=5)


def bytes_of(tensor):
    packed = tensor.detach().clone(memory_format=torch.contiguous_format)
    return bytes(packed.untyped_storage().tolist())


@some.composite
def strided(draw):
    """A tensor of torch or an array of numpy, with any strides."""
    shape = draw(some.lists(some.integers(0, 5), max_size=3))
    seed = np.random.default_rng(draw(some.integers(0, 99)))
    values = seed.integers(0, 4, [n * 2 for n in shape])
    steps = tuple(slice(draw(some.sampled_from([None, 1])), None, draw(some.sampled_from([1, 2])))
                  for _ in shape)
    order = draw(some.permutations(range(len(shape))))
    if draw(some.booleans()):
        return torch.from_numpy(values).to(draw(some.sampled_from(TORCH)))[steps].permute(order)
    back = tuple(slice(None, None, draw(some.sampled_from([1, -1]))) for _ in shape)
    array = values.astype(draw(some.sampled_from(NUMPY)))[steps][back]
    return np.asarray(array).transpose(order)


MODELS = some.dictionaries(NAMES, strided(), max_size=5)


def as_torch(value):
    """The value as the official package would read it, contiguous."""
    if isinstance(value, torch.Tensor):
        return value.contiguous()
    kind = getattr(torch, value.dtype.name)
    if not value.size:
        return torch.empty(value.shape, dtype=kind)
    return torch.frombuffer(bytearray(value.tobytes()), dtype=kind).reshape(value.shape)


def check(path, model, metadata=None):
    found = official.load_file(path)
    assert set(found) == set(model)
    for name, value in model.items():
        wanted = as_torch(value)
        assert (found[name].dtype, found[name].shape) == (wanted.dtype, wanted.shape), name
        assert bytes_of(found[name]) == bytes_of(wanted), name
    with st.open(path, level="strict" if model else "default") as file:
        assert file.metadata() == metadata


@given(MODELS, some.booleans())
def test_a_writer_of_any_strides(tmp_path_factory, model, planned):
    path = tmp_path_factory.mktemp("w") / "m.safetensors"
    with st.Writer(path, model if planned else None) as writer:
        for name in writer.keys() if planned else model:
            if not planned:
                value = model[name]
                writer.add(name, value.dtype, value.shape)
            writer.write(name, model[name])
    check(path, model)


@given(MODELS, some.lists(MODELS, min_size=1, max_size=3), some.booleans())
@settings(max_examples=40)
def test_put_of_any_tensors(tmp_path_factory, model, changes, safe):
    path = tmp_path_factory.mktemp("p") / "m.safetensors"
    official.save_file({name: as_torch(value).clone() for name, value in model.items()}, path,
                       {"k": "v"})
    for change in changes:
        st.put(path, change, safe=safe, sync=False)
        model = {**model, **change}
        check(path, model, {"k": "v"})


FLOATS = [dtype for dtype in TORCH if dtype.is_floating_point]
INTS = [dtype for dtype in TORCH if not dtype.is_floating_point and dtype is not torch.bool]


@given(some.dictionaries(some.text("ab.01", min_size=1, max_size=4),
                         some.tuples(some.sampled_from(TORCH), some.integers(0, 6)), max_size=6),
       some.lists(some.text("ab.01*?", min_size=1, max_size=3), min_size=1, max_size=3),
       some.sampled_from([None, *FLOATS, *INTS]), some.sampled_from(["cpu", "meta", "one"]))
def test_names_dtypes_and_devices(tmp_path_factory, facts, names, dtype, device):
    path = tmp_path_factory.mktemp("n") / "m.safetensors"
    official.save_file({name: torch.arange(count).to(kind)
                        for name, (kind, count) in facts.items()}, path)
    there = official.load_file(path)
    wanted = {}
    for name in names:
        some_of_it = [one for one in there if one == name] or fnmatch.filter(there, name)
        wanted.update({one: there[one] for one in some_of_it})
        if not some_of_it:
            with pytest.raises(st.TensorNotFoundError):
                st_torch.load_file(path, names=names)
            return
    kinds = next((kinds for kinds in (FLOATS, INTS) if dtype in kinds), [])
    wanted = {name: tensor.to(dtype) if tensor.dtype in kinds else tensor
              for name, tensor in wanted.items()}
    if device == "one":  # of each Tensor, which is converted whatever it is
        found = {name: st.open(path)[name].torch(dtype=dtype) for name in wanted}
        wanted = {name: there[name].to(dtype or there[name].dtype) for name in wanted}
    else:
        found = st_torch.load_file(path, device, names=names, dtype=dtype)
    assert set(found) == set(wanted)
    for name, tensor in wanted.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        if device == "meta":
            assert found[name].is_meta
        else:
            assert bytes_of(found[name]) == bytes_of(tensor)


@given(some.sampled_from(["F32", "BF16", "F8_E4M3", "float16", np.float64]),
       some.lists(some.sampled_from(["a*", "b", "c.?"]), min_size=1, unique=True))
def test_dtypes_of_numpy(tmp_path_factory, dtype, names):
    path = tmp_path_factory.mktemp("d") / "m.safetensors"
    st_numpy.save_file({"a1": np.ones(3, "f4"), "a2": np.ones(2, "i2"), "b": np.zeros((), "f8"),
                        "c.d": np.full((2, 2), 3, ml_dtypes.bfloat16)}, path)
    found = st_numpy.load_file(path, names=names, dtype=dtype)
    theirs = official.load_file(path)
    for name, array in found.items():
        assert array.astype("f8").tolist() == theirs[name].double().tolist()
        assert (array.dtype == found[max(found)].dtype) or name == "a2" or max(found) == "a2"
    if "a*" in names:
        assert found["a2"].dtype == np.int16
