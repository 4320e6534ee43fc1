"""open(values=True): quantised tensors as the values that they stand for."""
import concurrent.futures
import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

import libsafetensors

QUANT = Path(__file__).resolve().parents[1] / "quant"
SIZES = {"I8": 1, "U8": 1, "F32": 4, "I16": 2, "BF16": 2}


def save(path, **tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.fixture
def model(tmp_path):
    marker = json.dumps({"format": "int8_tensorwise"}).encode()
    return save(tmp_path / "m.safetensors", **{
        "a.weight": ("I8", [4, 6], bytes(range(24))),
        "a.weight_scale": ("F32", [], struct.pack("<f", .5)),
        "a.comfy_quant": ("U8", [len(marker)], marker),
        "a.bias": ("BF16", [2], b"\x80\x3f\0\x40"),
        "c.codes": ("I16", [1], b"\1\0"), "c.codebooks": ("I8", [1], b"\1")})


@pytest.mark.parametrize("name, layout", [
    ("comfy_nvfp4", "nvfp4"), ("comfy_mxfp8", "mxfp8"), ("bnb_4bit", "bitsandbytes-4bit"),
    ("ct_pack_4", "pack-quantized"), ("hqq", "hqq"), ("torchao", None)])
def test_packages(tmp_path, name, layout):
    (tmp_path / "m.safetensors").write_bytes((QUANT / (name + ".safetensors")).read_bytes())
    if (QUANT / (name + ".json")).exists():
        (tmp_path / "config.json").write_bytes((QUANT / (name + ".json")).read_bytes())
    with libsafetensors.open(QUANT / (name + ".values.safetensors")) as file:
        wanted = file.numpy()
    with libsafetensors.open(tmp_path, values=True) as file:
        found, layouts = file.numpy(), file.layouts
    assert all(np.array_equal(found[key], value, equal_nan=True) and found[key].dtype == np.float32
               for key, value in wanted.items())
    assert layouts.keys() == wanted.keys()
    assert layout is None or set(layouts.values()) == {layout}


def test_file(model):
    whole = np.arange(24, dtype=np.float32).reshape(4, 6) / 2
    with libsafetensors.open(model, values=True) as file:
        assert sorted(file) == ["a.bias", "a.weight", "c.codebooks", "c.codes"]
        assert file.layouts == {"a.weight": "int8_tensorwise", "c.codes": None}
        weight = file["a.weight"]
        assert (weight.dtype, list(weight.shape)) == ("F32", [4, 6])
        assert np.array_equal(weight.numpy(), whole)
        assert np.array_equal(weight[::-1, 1:3].numpy(), whole[::-1, 1:3])
        assert file["a.bias"].dtype == "BF16" and not file.mapped
        assert weight.stats()["max"] == 11.5
        with pytest.raises(TypeError, match="aqlm") as caught:
            file["c.codes"].numpy()
        assert (caught.value.code, caught.value.tensor) == ("cast_dtype", "c.codes")
        again = pickle.loads(pickle.dumps(file))
        assert np.array_equal(again["a.weight"].numpy(), whole)
    assert np.array_equal(weight.numpy(), whole)  # which keeps the model
    with libsafetensors.open(model) as file:
        assert file.layouts == {} and file["a.weight"].dtype == "I8"


def test_torch(model):
    torch = pytest.importorskip("torch")
    with libsafetensors.open(model, values=True) as file:
        weight = file.torch(["a.*"], dtype=torch.float16)["a.weight"]
    assert weight.dtype == torch.float16
    assert torch.equal(weight, torch.arange(24).reshape(4, 6).to(torch.float16) / 2)


@pytest.mark.parametrize("of", ["bytes", "object", "read"])
def test_sources(model, of):
    with model.open("rb") as stream:
        source = {"bytes": model.read_bytes(), "object": stream, "read": model}[of]
        mode = "read" if of == "read" else "auto"
        with libsafetensors.open(source, mode=mode, values=True) as file:
            assert file["a.weight"].numpy()[3, 5] == 11.5


def test_modes(model, tmp_path):
    for mode in ("map", "cow"):
        with pytest.raises(ValueError, match="'auto' or 'read' for values"):
            libsafetensors.open(model, mode=mode, values=True)
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "odd"}}')
    with pytest.raises(TypeError, match='"odd"'):
        libsafetensors.open(model, values=True)


def test_threads(tmp_path):
    """Any number of threads may read one File."""
    codes = np.random.default_rng(3).integers(-127, 128, (8, 256, 512), dtype=np.int8)
    save(tmp_path / "m.safetensors",
         **{f"w{i}": ("I8", [256, 512], codes[i].tobytes()) for i in range(8)},
         **{f"w{i}_scale": ("F32", [], struct.pack("<f", 2.0 ** -i)) for i in range(8)})
    with libsafetensors.open(tmp_path / "m.safetensors", values=True) as file, \
            concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, found in enumerate(pool.map(lambda i: file[f"w{i % 8}"].numpy(), range(64))):
            assert np.array_equal(found, codes[i % 8].astype(np.float32) * 2.0 ** -(i % 8))
