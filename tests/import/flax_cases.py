"""Flax checkpoints: made with msgpack as flax.serialization makes them, and by flax itself where it
is installed."""
import os

import ml_dtypes
import msgpack
import numpy as np

import files

NAMES = ("float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
         "uint32", "uint64", "bool", "complex64", "bfloat16", "float8_e4m3fn", "float8_e5m2",
         "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")


def leaf(array, old=False):
    name = array.dtype.name.encode() if old else array.dtype.name
    return msgpack.ExtType(1, msgpack.packb((array.shape, name, array.tobytes()),
                                            use_bin_type=not old))


def chunked(array, size):
    flat = array.ravel()
    parts = [flat[at:at + size] for at in range(0, flat.size, size)]
    return {"__msgpack_chunked_array__": True,
            "shape": {str(i): n for i, n in enumerate(array.shape)},
            "chunks": {str(i): leaf(part) for i, part in enumerate(parts)}}


def write(ctx, tree):
    path = os.path.join(ctx.folder, "m.msgpack")
    with open(path, "wb") as file:
        file.write(msgpack.packb(tree))
    return path


def compare(ctx, path, arrays, *options):
    found, _ = files.convert_raw(ctx, path, *options)
    assert set(found) == set(arrays), set(found) ^ set(arrays)
    for name, array in arrays.items():
        assert found[name] == (list(array.shape), array.tobytes()), name


def dtypes(ctx, old):
    for name in NAMES:
        kind = getattr(ml_dtypes, name, None) or np.dtype(name)
        array = np.array([[0, 1, 2], [3, 1, 0]], "f4").astype(kind)
        compare(ctx, write(ctx, {"a": {"b": leaf(array, old)}}), {"a.b": array})


def branches(ctx):
    w, m = np.arange(6, dtype="f4").reshape(2, 3), np.zeros(2)
    path = write(ctx, {"step": 3, "params": {"d": {"kernel": leaf(w)}},
                       "opt_state": {"0": {"mu": leaf(m)}}})
    compare(ctx, path, {"d.kernel": w})
    compare(ctx, path, {"params.d.kernel": w, "opt_state.0.mu": m}, "--all")
    compare(ctx, path, {"d/kernel": w}, "--separator", "/")


def chunks(ctx):
    array = np.arange(1000.0).reshape(10, 100)
    for size in (1, 7, 100, 999, 1000):
        compare(ctx, write(ctx, {"a": chunked(array, size), "b": leaf(array)}),
                {"a": array, "b": array})


def by_flax(ctx):
    try:
        from flax import serialization
    except ImportError:
        return
    arrays = {"a": np.arange(6, dtype="f4"), "b": np.ones((2, 2), ml_dtypes.bfloat16)}
    path = os.path.join(ctx.folder, "m.msgpack")
    with open(path, "wb") as file:
        file.write(serialization.to_bytes({"params": arrays}))
    compare(ctx, path, arrays)


def cases(ctx):
    yield "flax: dtypes", lambda: dtypes(ctx, False)
    yield "flax: dtypes as bytes, of old files", lambda: dtypes(ctx, True)
    yield "flax: branches", lambda: branches(ctx)
    yield "flax: arrays in chunks", lambda: chunks(ctx)
    yield "flax: by flax itself", lambda: by_flax(ctx)
