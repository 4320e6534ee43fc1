"""Tensor.stats(): numpy's numbers, of whole tensors and of slices; convert(dequantize=)."""
import json
import math
import struct

import numpy as np
import pytest

import libsafetensors


def save(path, **arrays):
    names = {"float32": "F32", "int64": "I64", "uint64": "U64", "bool": "BOOL", "uint8": "F8_E4M3"}
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": names[str(array.dtype)], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.mark.parametrize("mode", ["map", "read"])
def test_stats(tmp_path, mode):
    random = np.random.default_rng(2)
    f = random.standard_normal((300, 400)).astype(np.float32)
    f[0, :4] = [0, np.nan, np.inf, -0.0]
    i = np.array([2**63 - 1, -2**63, 5, 0])
    u = np.array([2**64 - 1, 3], np.uint64)
    path = save(tmp_path / "m.safetensors", f=f, i=i, u=u, none=f[:0], b=f > 0)
    with libsafetensors.open(path, mode=mode) as file:
        finite = f[np.isfinite(f)].astype(np.float64)
        s = file["f"].stats()
        assert s["mean"] == math.fsum(finite) / finite.size
        assert s["std"] == pytest.approx(finite.std(), rel=1e-12)
        assert s["abs_mean"] == pytest.approx(np.abs(finite).mean(), rel=1e-12)
        assert (s["min"], s["max"]) == (finite.min(), finite.max())
        assert [s[k] for k in ("values", "zeros", "nan", "inf")] == [120000, 2, 1, 1]
        assert file["f"].stats(threads=3) == s
        s = file["i"].stats()
        assert (s["min"], s["max"], s["mean"]) == (-2**63, 2**63 - 1, 1.0)
        assert file["u"].stats()["max"] == 2**64 - 1
        assert file["b"].stats()["max"] == 1 and file["b"].stats()["mean"] == (f > 0).mean()
        s = file["none"].stats()
        assert s["values"] == 0 and s["min"] is s["max"] is s["mean"] is s["std"] is None
        part = f[10:200:3, ::-2].astype(np.float64)
        s = file["f"][10:200:3, ::-2].stats()
        assert s["values"] == part.size and s["mean"] == math.fsum(part.reshape(-1)) / part.size


def test_progress(tmp_path):
    path = save(tmp_path / "m.safetensors", f=np.zeros(1 << 21, np.float32))
    calls = []
    with libsafetensors.open(path) as file:
        file["f"].stats(progress=lambda done, total: calls.append((done, total)))
        assert calls[-1] == (1 << 23, 1 << 23)

        def stop(done, total):
            raise KeyError(done)

        with pytest.raises(KeyError):
            file["f"].stats(progress=stop)
        with pytest.raises(TypeError):
            file["f"].stats(3)


def test_histograms(tmp_path):
    random = np.random.default_rng(4)
    f = random.standard_normal(5000).astype(np.float32)
    f[:5] = [0, np.nan, -np.inf, 1.0, -2.0]
    path = save(tmp_path / "m.safetensors", f=f, i=np.array([3, -4, 0, 2**40]), **{"<b>": f[:0]})
    with libsafetensors.open(path) as file:
        told = file.stats(histogram=True)
        assert list(told) == list(file) and repr(told) == "<Stats of 3 tensors>"
        for name in file:
            assert told[name] == file[name].stats(histogram=True, threads=1)
            plain = dict(told[name])
            bins = plain.pop("histogram")
            assert file[name].stats() == plain
            values = file[name].numpy().astype(np.float64)
            values = values[np.isfinite(values) & (values != 0)]
            exponents = np.floor(np.log2(np.abs(values)))
            assert bins == [(int(e), int(((exponents == e) & (values < 0)).sum()),
                             int(((exponents == e) & (values > 0)).sum()))
                            for e in np.unique(exponents)]
        assert told.histogram()[-1] == (40, 0, 1)
        assert sum(sum(one[1:]) for one in told.histogram()) == 4997 + 3
        page = told._repr_html_()
        assert page.count("<svg") == 3 and "<b>" not in page and "&lt;b&gt;" in page  # all, f and i
        assert "currentColor" in page and "script" not in page
        assert list(file.stats("[fi]", threads=1)) == ["f", "i"]
        assert "<svg" not in file.stats()._repr_html_() and file.stats().histogram() == []
        with pytest.raises(libsafetensors.TensorNotFoundError):
            file.stats(["nope"])
        seen = []
        file.stats(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (file.nbytes, file.nbytes)
    with pytest.raises(ValueError):
        file.stats()


def test_hostile_arguments_of_statistics(tmp_path):
    class Boom(Exception):
        pass

    class Bad:
        def __bool__(self):
            raise Boom

    def names():
        yield "f"
        raise Boom

    def stop(done, total):
        file.close()
        raise Boom

    path = save(tmp_path / "m.safetensors", f=np.ones(5, np.float32))
    file = libsafetensors.open(path)
    for call in (lambda: file.stats(histogram=Bad()), lambda: file["f"].stats(histogram=Bad()),
                 lambda: file.stats(names()), lambda: file.stats(progress=stop)):
        with pytest.raises(Boom):
            call()
    assert file.closed


def test_statistics_of_values(tmp_path):
    codes = np.array([[0x38, 0x40], [0xb8, 0x00]], np.uint8)  # 1, 2, -1, 0
    path = save(tmp_path / "m.safetensors", w=codes, w_scale=np.array([0.5, 4], np.float32))
    with libsafetensors.open(path, values=True) as file:
        assert file.stats(histogram=True)["w"]["histogram"] == [(-1, 0, 1), (0, 0, 1), (2, 1, 0)]


def test_dequantize(tmp_path):
    codes = np.array([[0x38, 0x40], [0xb8, 0x00]], np.uint8)  # 1, 2, -1, 0
    scale = np.array([0.5, 4], np.float32)
    path = save(tmp_path / "m.safetensors", w=codes, w_scale=scale, other=scale)
    out = tmp_path / "out.safetensors"
    counts = libsafetensors.convert(path, out, "F32", dequantize=True, sync=False)
    assert (counts["dequantize"], counts["drop"], counts["other"]) == (1, 1, 1)
    with libsafetensors.open(out) as file:
        assert sorted(file.keys()) == ["other", "w"]
        assert file["w"].numpy().tolist() == [[0.5, 1], [-4, 0]]
    with pytest.raises(ValueError):
        libsafetensors.convert(path, out, "I32", dequantize=True, overwrite=True)
