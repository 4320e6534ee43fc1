"""What the cases of several formats share: the command run on a file, and its result as arrays."""
import json
import os
import struct
import subprocess

import ml_dtypes
import numpy as np

from plain import read_plain

DTYPES = {"BOOL": np.bool_, "I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16,
          "F16": np.float16, "BF16": ml_dtypes.bfloat16, "I32": np.int32, "U32": np.uint32,
          "F32": np.float32, "C64": np.complex64, "I64": np.int64, "U64": np.uint64,
          "F64": np.float64, "F8_E4M3": ml_dtypes.float8_e4m3fn,
          "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
          "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz}
NAMES = {np.dtype(kind): name for name, kind in DTYPES.items()}


def read(path):
    """{name: array} and metadata of a safetensors file."""
    tensors, metadata = read_plain(path)
    return {name: np.frombuffer(data, DTYPES[dtype]).reshape(shape)
            for name, (dtype, shape, data) in tensors.items()}, metadata


def write(path, arrays):
    """A safetensors file of {name: array}."""
    header, data = {}, b""
    for name, array in arrays.items():
        begin = len(data)
        data += np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def run(ctx, *words):
    return subprocess.run([*ctx.command, *words], capture_output=True, text=True, timeout=300)


def convert(ctx, path, *options):
    """The tensors of the file that the command makes of it."""
    return convert_and_say(ctx, path, *options)[0]


def convert_and_say(ctx, path, *options):
    out = os.path.join(ctx.folder, "out.safetensors")
    done = run(ctx, "convert", path, "-o", out, "--force", "--no-sync", *options)
    assert done.returncode == 0, done.stderr
    return read(out)[0], done.stdout + done.stderr


def convert_raw(ctx, path, *options):
    """{name: (shape, bytes)} and metadata of the file that the command makes of it."""
    convert_and_say(ctx, path, *options)
    tensors, metadata = read_plain(os.path.join(ctx.folder, "out.safetensors"))
    return {name: (shape, data) for name, (_, shape, data) in tensors.items()}, metadata


def refuse(ctx, path, code, *options):
    """It must not be converted, for that reason, and nothing be written; the message."""
    return refuse_as(ctx, path, "refused.safetensors", code, *options)


def refuse_as(ctx, path, name, code, *options):
    out = os.path.join(ctx.folder, name)
    done = run(ctx, "convert", path, "-o", out, "--no-sync", "--json", *options)
    assert done.returncode in (1, 2), done
    error = json.loads(done.stdout)["results"][0]["error"]
    assert error["code"] == code, (error, code)
    assert not os.path.exists(out), "something was written"
    return error["message"]


def same(found, expected):
    """Bit for bit."""
    assert set(found) == set(expected), (sorted(found), sorted(expected))
    for name, array in expected.items():
        wanted = array.astype(array.dtype.newbyteorder("<")) if array.dtype.kind in "iufc" else array
        assert found[name].shape == wanted.shape, (name, found[name].shape, wanted.shape)
        assert found[name].dtype == wanted.dtype, (name, found[name].dtype, wanted.dtype)
        assert found[name].tobytes() == np.ascontiguousarray(wanted).tobytes(), name
