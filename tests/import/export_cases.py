"""Models written as .npz and .pt, read by numpy and torch; .npz byte for byte as numpy's own.

ctx as in npy_cases.py.
"""
import io
import json
import os
import shutil
import struct
import sys
import tempfile

import ml_dtypes
import numpy as np
import torch
from torch.utils import serialization

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import files  # noqa: E402

OF_TORCH = {"BF16": torch.bfloat16, "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
            "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
            "F8_E8M0": torch.float8_e8m0fnu}
SHAPES = [(), (0,), (1,), (5,), (3, 0, 2), (2, 3), (2, 1, 3, 1, 2), (1,) * 20]


def path_of(ctx, name):
    return os.path.join(ctx.folder, name)


def export(ctx, arrays, name, *options):
    files.write(path_of(ctx, "in.safetensors"), arrays)
    done = files.run(ctx, "convert", path_of(ctx, "in.safetensors"), "-o", path_of(ctx, name),
                     "--force", "--no-sync", *options)
    assert done.returncode == 0, done.stderr


def arrays_of(kinds):
    random = np.random.default_rng(7)
    out = {}
    for kind in kinds:
        for i, shape in enumerate(SHAPES):
            dtype = np.dtype(files.DTYPES[kind])
            raw = random.integers(0, 2 if kind == "BOOL" else 256,
                                  int(np.prod(shape)) * dtype.itemsize, np.uint8)
            out[f"{kind}.{i}"] = raw.view(dtype).reshape(shape)
    return out


def bytes_of(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()


def compare_torch(path, arrays):
    """As torch.load reads it, mapped or not, with offsets read or computed."""
    for mmap in (False, True):
        for computed in (False, True):
            with serialization.config.patch("load.calculate_storage_offsets", computed):
                found = torch.load(path, weights_only=True, mmap=mmap)
            assert set(found) == set(arrays), (sorted(found), sorted(arrays))
            for name, array in arrays.items():
                kind = files.NAMES[array.dtype]
                wanted = OF_TORCH.get(kind) or torch.from_numpy(np.zeros(1, array.dtype)).dtype
                assert found[name].dtype == wanted, (name, found[name].dtype)
                assert tuple(found[name].shape) == array.shape, (name, found[name].shape)
                assert bytes_of(found[name]) == array.tobytes(), name


def compare_numpy(path, arrays):
    with np.load(path) as archive:
        order = archive.files
        found = {name: archive[name] for name in order}
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name
    theirs = io.BytesIO()
    np.savez(theirs, **{name: arrays[name] for name in order})
    with open(path, "rb") as file:
        assert file.read() == theirs.getvalue(), "other bytes than numpy's"


def every_dtype(ctx):
    plain = [kind for kind in files.DTYPES if not kind.startswith("F8") and kind != "BF16"]
    arrays = arrays_of(plain)
    export(ctx, arrays, "m.npz")
    compare_numpy(path_of(ctx, "m.npz"), arrays)
    arrays = arrays_of(files.DTYPES)
    export(ctx, arrays, "m.pt")
    compare_torch(path_of(ctx, "m.pt"), arrays)
    files.same(files.convert(ctx, path_of(ctx, "m.pt")), arrays)


def large(ctx):
    """Tensors larger than what is held in memory."""
    random = np.random.default_rng(3)
    arrays = {"a": random.random((1000, 700)), "b": np.arange(5), "c": random.random(400001)}
    export(ctx, arrays, "m.npz")
    compare_numpy(path_of(ctx, "m.npz"), arrays)
    export(ctx, arrays, "m.pth")
    compare_torch(path_of(ctx, "m.pth"), arrays)


def names(ctx):
    keys = ["é 中", "a/b", "..x", "a/...", "x.npy", "A", "a", "model.layers.0.weight", "x" * 5000, "\n", "'"]
    arrays = {key: np.full(3, i, "f4") for i, key in enumerate(keys)}
    export(ctx, arrays, "m.npz")
    compare_numpy(path_of(ctx, "m.npz"), arrays)
    export(ctx, arrays, "m.pt")
    compare_torch(path_of(ctx, "m.pt"), arrays)
    # An archive cannot hold these names, or unpacks them elsewhere; PyTorch's keys are in the pickle.
    for bad in (["a\0b"], ["../x"], ["../../x"], ["/abs"], ["a/../b"], ["a/./b"], ["./a"], ["a//b"],
                ["/"], ["..\\x"], ["a\\b"], ["\\\\host\\x"], ["C:x"], ["c:/x"], ["x" * 60001],
                ["a", "a.npy"], ["a.npy", "a.npy.npy"]):
        arrays = {name: np.zeros(2) for name in bad}
        files.write(path_of(ctx, "in.safetensors"), arrays)
        files.refuse_as(ctx, path_of(ctx, "in.safetensors"), "n.npz", "foreign_name")
        export(ctx, arrays, "m.pt")
        compare_torch(path_of(ctx, "m.pt"), arrays)


def sizes(ctx):
    """First sizes of many digits, for which numpy leaves less space."""
    arrays = {str(n): np.zeros((n, 0), "u1") for n in (0, 1, 9, 10, 99, 100, 10 ** 9, 10 ** 18)}
    export(ctx, arrays, "m.npz")
    compare_numpy(path_of(ctx, "m.npz"), arrays)


def none(ctx):
    export(ctx, {}, "m.npz")
    compare_numpy(path_of(ctx, "m.npz"), {})
    export(ctx, {}, "m.pt")
    compare_torch(path_of(ctx, "m.pt"), {})


def many(ctx):
    """More than the end of an archive counts in 16 bits."""
    arrays = {f"t{i}": np.array(i % 256, "u1") for i in range(66000)}
    export(ctx, arrays, "m.npz")
    compare_numpy(path_of(ctx, "m.npz"), arrays)


def refused(ctx):
    """A dtype that the other library lacks names the tensor; a cast helps."""
    bf16 = {"plain": np.zeros(2), "half": np.arange(6).astype(ml_dtypes.bfloat16)}
    files.write(path_of(ctx, "in.safetensors"), bf16)
    message = files.refuse_as(ctx, path_of(ctx, "in.safetensors"), "n.npz", "cast_dtype")
    assert "BF16" in message and "NumPy" in message, message
    export(ctx, bf16, "m.npz", "--dtype", "F32")
    compare_numpy(path_of(ctx, "m.npz"), {k: v.astype("f4") for k, v in bf16.items()})
    export(ctx, bf16, "m.npz", "--opaque")
    with np.load(path_of(ctx, "m.npz")) as archive:
        assert archive["half"].dtype == np.dtype("V2")
        assert archive["half"].view(ml_dtypes.bfloat16).tolist() == bf16["half"].tolist()
    export(ctx, bf16, "m.pt", "--dtype", "F16")
    compare_torch(path_of(ctx, "m.pt"), {k: v.astype("f2") for k, v in bf16.items()})


def across(ctx):
    """From one format to another; names that share a tensor all get one."""
    shared = torch.arange(12.0).reshape(3, 4)
    torch.save({"a": shared, "b": shared, "t": shared.t()}, path_of(ctx, "in.pt"))
    done = files.run(ctx, "convert", path_of(ctx, "in.pt"), "-o", path_of(ctx, "m.npz"),
                     "--force")
    assert done.returncode == 0, done.stderr
    arrays = {"a": shared.numpy(), "b": shared.numpy(),
              "t": np.ascontiguousarray(shared.t().numpy())}
    compare_numpy(path_of(ctx, "m.npz"), arrays)
    done = files.run(ctx, "convert", path_of(ctx, "m.npz"), "-o", path_of(ctx, "m.pt"), "--force")
    assert done.returncode == 0, done.stderr
    compare_torch(path_of(ctx, "m.pt"), arrays)


def wide(ctx):
    """More than 4 GiB in one tensor, and one behind it, which a hole in the file stands for."""
    size = (1 << 32) + 5
    path = path_of(ctx, "in.safetensors")
    header = {"b": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]},
              "c": {"dtype": "U8", "shape": [4], "data_offsets": [size, size + 4]}}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.seek(size - 3, os.SEEK_CUR)
        file.write(bytes(range(1, 8)))
    for name in ("m.npz", "m.pt"):
        done = files.run(ctx, "convert", path, "-o", path_of(ctx, name), "--no-sync")
        assert done.returncode == 0, done.stderr
        done = files.run(ctx, "diff", path, path_of(ctx, name))
        same = not done.stdout or "2 equal, 0 changed, 0 added, 0 removed" in done.stdout
        assert done.returncode in (0, 1) and same, done
        if name == "m.npz":
            with np.load(path_of(ctx, name)) as archive:
                assert archive["c"].tolist() == [4, 5, 6, 7]
        for computed in (False, True) if name == "m.pt" else ():
            with serialization.config.patch("load.calculate_storage_offsets", computed):
                found = torch.load(path_of(ctx, name), weights_only=True, mmap=True)
            assert found["b"][-3:].tolist() == [1, 2, 3] and found["c"].tolist() == [4, 5, 6, 7]
        os.remove(path_of(ctx, name))


def cases(ctx):
    yield "export: every dtype", lambda: every_dtype(ctx)
    yield "export: large tensors", lambda: large(ctx)
    yield "export: names", lambda: names(ctx)
    yield "export: sizes of many digits", lambda: sizes(ctx)
    yield "export: nothing", lambda: none(ctx)
    yield "export: many tensors", lambda: many(ctx)
    yield "export: dtypes of one library", lambda: refused(ctx)
    yield "export: from one format to another", lambda: across(ctx)
    if ctx.full and shutil.disk_usage(tempfile.gettempdir()).free > 6 << 30:
        yield "export: over 4 GiB", lambda: wide(ctx)
