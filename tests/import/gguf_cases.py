"""GGUF, with gguf-py as writer and as oracle.

Values of all block types bit for bit, NaN as NaN: of 2,000 random blocks a type, of 1,000,000 with
ctx.full. ctx.command: the words of the command; ctx.folder: an empty folder.
"""
import os
import re
import shutil
import subprocess
import zlib

import ml_dtypes
import numpy as np
from gguf import GGUFEndian, GGUFWriter, quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type

from files import read

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "F64": np.float64,
          "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64}
PLAIN = [Type.F32, Type.F16, Type.F64, Type.I8, Type.I16, Type.I32, Type.I64]
SHORT, FULL, AT_ONCE = 2000, 1000000, 50000
# Where a block's F16 scales stand, so that values can be kept within F16.
SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0],
          Type.Q2_K: [80, 82], Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2],
          Type.Q6_K: [208], Type.TQ1_0: [52], Type.TQ2_0: [64], Type.IQ2_XXS: [0],
          Type.IQ2_XS: [0], Type.IQ2_S: [0], Type.IQ3_XXS: [0], Type.IQ3_S: [0], Type.IQ1_S: [0],
          Type.IQ4_NL: [0], Type.IQ4_XS: [0]}


def block_types():
    """Those that gguf-py computes."""
    return [t for t in Type if GGML_QUANT_SIZES[t][0] > 1 and t in quants._type_traits]


def write(path, tensors, pairs=(), alignment=None, **options):
    writer = GGUFWriter(path, "llama", **options)
    if alignment:
        writer.add_custom_alignment(alignment)
    for key, value, how in pairs:
        getattr(writer, how)(key, value)
    for name, array, kind in tensors:
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(ctx, path, *options):
    """The file that the command makes of it: {name: array}, metadata."""
    out = os.path.join(ctx.folder, "out.safetensors")
    done = subprocess.run([*ctx.command, "convert", path, "-o", out, "--force", "--no-sync",
                           *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return read(out)


def refuse(ctx, path, says, *options):
    """It must not be converted, and nothing be written."""
    out = os.path.join(ctx.folder, "refused.safetensors")
    done = subprocess.run([*ctx.command, "convert", path, "-o", out, *options],
                          capture_output=True, text=True)
    assert done.returncode in (1, 2) and says in done.stderr, (done.returncode, done.stderr)
    assert not os.path.exists(out), "something was written"


def same(found, expected):
    """Bit for bit; NaN as NaN."""
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
    bits = f"u{found.dtype.itemsize}"
    nan = np.isnan(expected) if expected.dtype.kind in "fV" else np.zeros(found.shape, bool)
    if nan.any():
        assert (np.isnan(found) == nan).all(), "other NaN"
    at = np.flatnonzero((found.view(bits) != expected.view(bits)) & ~nan)
    assert at.size == 0, (at[:5], found.ravel()[at[:5]], expected.ravel()[at[:5]])


def dequantize(blocks, kind):
    with np.errstate(all="ignore"):
        return quants.dequantize(blocks, kind)


# ── Blocks ──

def random_blocks(kind, count, seed, tame):
    stored = GGML_QUANT_SIZES[kind][1]
    blocks = np.random.default_rng([seed, int(kind)]).integers(0, 256, (count, stored), np.uint8)
    if tame:
        for at in SCALES.get(kind, []):
            blocks[:, at + 1] &= 0xa3  # below 2^-6
        if kind == Type.MXFP4:
            blocks[:, 0] = 100 + blocks[:, 0] % 36
        if kind == Type.IQ1_M:
            blocks[:, -1] &= 0xaf
    return blocks


def values(ctx, kind, dtype, count):
    path = os.path.join(ctx.folder, "blocks.gguf")
    for seed, first in enumerate(range(0, count, AT_ONCE)):
        blocks = random_blocks(kind, min(AT_ONCE, count - first), seed, dtype != "F32")
        write(path, [("t", blocks, kind)])
        found, _ = convert(ctx, path, "--dtype", dtype)
        with np.errstate(all="ignore"):
            same(found["t"], dequantize(blocks, kind).astype(DTYPES[dtype]))


def unit_checksums(ctx):
    """The table of tests/unit/formats/test_import_blocks.c is gguf-py's."""
    with open(os.path.join(ROOT, "tests/unit/formats/test_import_blocks.c"), encoding="utf-8") as file:
        table = re.findall(r"\{ (\d+), (0x[0-9a-f]{8}) \}, /\* (\w+) \*/", file.read())
    assert [int(n) for n, _, _ in table] == [int(t) for t in block_types()]
    for number, crc, name in table:
        kind, count = Type(int(number)), 2000
        stored = GGML_QUANT_SIZES[kind][1]
        with np.errstate(over="ignore"):
            z = np.arange(1, count * stored // 8 + 2, dtype=np.uint64)
            z = z * np.uint64(0x9e3779b97f4a7c15) + np.uint64(kind)
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
            z ^= z >> np.uint64(31)
        blocks = z.view(np.uint8)[:count * stored].reshape(count, stored)
        made = dequantize(blocks, kind)
        bits = np.where(np.isnan(made), np.uint32(0x7fc00000), made.view(np.uint32))
        assert zlib.crc32(bits.astype("<u4").tobytes()) == int(crc, 16), name


def quantized_weights(ctx):
    """What gguf-py made of weights, by default as F16."""
    weights = np.random.default_rng(5).standard_normal((96, 512)).astype(np.float32)
    kinds = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.TQ1_0, Type.TQ2_0,
             Type.MXFP4]
    stored = [quants.quantize(weights, kind) for kind in kinds]
    path = os.path.join(ctx.folder, "weights.gguf")
    write(path, [(kind.name, array, kind) for kind, array in zip(kinds, stored)])
    found, _ = convert(ctx, path)
    for kind, array in zip(kinds, stored):
        same(found[kind.name], dequantize(array, kind).astype(np.float16))


def out_of_range(ctx):
    blocks = random_blocks(Type.Q8_0, 8, 1, True)
    blocks[5, :4] = [0x00, 0x7b, 127, 127]
    path = os.path.join(ctx.folder, "range.gguf")
    write(path, [("first", blocks[:4], Type.Q8_0), ("wide.weight", blocks, Type.Q8_0)])
    refuse(ctx, path, "wide.weight")
    found, _ = convert(ctx, path, "--dtype", "BF16")
    same(found["wide.weight"], dequantize(blocks, Type.Q8_0).astype(ml_dtypes.bfloat16))


def factors(ctx):
    """A factor beside a weight, which is not in its blocks: values are refused, all else is not."""
    blocks = quants.quantize(np.ones((2, 64), np.float32), Type.Q8_0)
    path = os.path.join(ctx.folder, "factors.gguf")
    write(path, [("blk.0.attn_q.scale", np.full(1, 0.125, np.float32), None),
                 ("blk.0.attn_q.weight", blocks, Type.Q8_0),
                 ("blk.0.attn_k.scale", np.ones(1, np.float32), None),
                 ("blk.0.attn_k.weight", np.ones((2, 64), np.float32), None),
                 ("blk.0.attn_v.weight", blocks, Type.Q8_0)])
    for options in ([], ["--dtype", "F32"], ["--dequantize"]):
        refuse(ctx, path, "blk.0.attn_q.scale", *options)
    for words in (["ls", path], ["info", path], ["hash", path], ["cat", path,
                                                                 "blk.0.attn_v.weight[0]"]):
        subprocess.run([*ctx.command, *words], stdout=subprocess.DEVNULL, check=True)
    again = shutil.copy(path, os.path.join(ctx.folder, "again.gguf"))
    done = subprocess.run([*ctx.command, "dup", path, again], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "") and "the same file" in done.stdout, done


# ── Files ──

def plain_tensors(seed):
    random = np.random.default_rng(seed)
    shapes = [(7,), (2, 3), (1, 5, 2), (2, 1, 3, 4), (0, 4)]
    return [(f"{kind.name}.{i}", np.frombuffer(random.bytes(
                int(np.prod(shape)) * DTYPES[kind.name]().itemsize),
                DTYPES[kind.name]).reshape(shape), kind)
            for kind in PLAIN for i, shape in enumerate(shapes)]


PAIRS = [("a.u8", 200, "add_uint8"), ("a.i8", -5, "add_int8"), ("a.u16", 60000, "add_uint16"),
         ("a.i16", -30000, "add_int16"), ("a.u32", 4000000000, "add_uint32"),
         ("a.i32", -2000000000, "add_int32"), ("a.f32", 0.1, "add_float32"),
         ("a.u64", 2**64 - 1, "add_uint64"), ("a.i64", -2**63, "add_int64"),
         ("a.f64", 1e-300, "add_float64"), ("a.bool", True, "add_bool"),
         ("a.text", "grüße\n", "add_string"), ("a.list", ["x", "yz"], "add_array"),
         ("a.numbers", [1, 2, 3], "add_array"), ("a.nested", [[1, 2], [3]], "add_array")]


def plain(ctx, endian, alignment):
    path = os.path.join(ctx.folder, "plain.gguf")
    tensors = plain_tensors(3)
    write(path, [(name, array.copy(), None) for name, array, _ in tensors], PAIRS, alignment,
          endianess=endian)
    found, metadata = convert(ctx, path)
    assert set(found) == {name for name, _, _ in tensors}
    for name, array, _ in tensors:
        same(found[name], array)
    for key, value, how in PAIRS:
        text = metadata.get("gguf." + key)
        if how == "add_array":
            assert text is None, key
        elif how == "add_string":
            assert text == value
        elif how == "add_bool":
            assert text == "true"
        else:
            expected = np.float32(value) if how == "add_float32" else value
            assert type(value)(text) == expected, (key, text)
    assert metadata["gguf.general.architecture"] == "llama"


def parts(ctx):
    path = os.path.join(ctx.folder, "part.gguf")
    tensors = [(f"t{i}", np.arange(i, i + 40, dtype=np.float32), None) for i in range(7)]
    write(path, tensors, split_max_tensors=3)
    names = sorted(n for n in os.listdir(ctx.folder) if re.match(r"part-\d{5}-of-", n))
    assert len(names) == 3, names
    found, _ = convert(ctx, os.path.join(ctx.folder, names[0]))
    assert set(found) == {name for name, _, _ in tensors}
    for name, array, _ in tensors:
        same(found[name], array)
    refuse(ctx, os.path.join(ctx.folder, names[1]), "part 2 of 3")
    os.rename(os.path.join(ctx.folder, names[2]), os.path.join(ctx.folder, "gone"))
    refuse(ctx, os.path.join(ctx.folder, names[0]), names[2])


SHAPE = "comfy.gguf.orig_shape."


def original_shapes(ctx, split):
    """Weights that ComfyUI-GGUF wrote as rows of 256 elements, in parts too: shapes are in the
    first."""
    path = os.path.join(ctx.folder, "shapes.gguf")
    random = np.random.default_rng(11)
    kinds = [Type.Q8_0, Type.Q4_0, Type.F32, Type.F16, Type.BF16]
    arrays = {f"down.{kind.name}.weight":
              (random.standard_normal((32, 16, 3, 3)).astype("f4"), kind) for kind in kinds}
    pairs = [(SHAPE + name, list(array.shape), "add_array") for name, (array, _) in arrays.items()]
    pairs.append((SHAPE + "gone.weight", [2, 3], "add_array"))
    rows = {name: quants.quantize(array.reshape(-1, 256), kind)
            for name, (array, kind) in arrays.items()}
    write(path, [(name, rows[name], kind) for name, (_, kind) in arrays.items()], pairs,
          **({"split_max_tensors": 2} if split else {}))
    if split:
        path = path.replace(".gguf", "-00001-of-00003.gguf")
    found, metadata = convert(ctx, path, "--dtype", "F32")
    for name, (array, kind) in arrays.items():
        same(found[name], dequantize(rows[name], kind).astype(np.float32).reshape(array.shape))
    assert not any(SHAPE in key for key in metadata), metadata
    for word, says in (("ls", "[32,16,3,3]"), ("cat", "0.")):
        done = subprocess.run([*ctx.command, word, path, *(["down.Q8_0.weight[3,2]"] * (
            word == "cat"))], capture_output=True, text=True, check=True)
        assert says in done.stdout, done.stdout
    row = subprocess.run([*ctx.command, "cat", path, "down.Q4_0.weight[7,15]", "--as", "raw",
                          "--values"], capture_output=True, check=True).stdout
    assert row == dequantize(rows["down.Q4_0.weight"], Type.Q4_0).reshape(32, 16, 3, 3)[
        7, 15].astype("<f4").tobytes()


def wrong_shapes(ctx):
    path = os.path.join(ctx.folder, "wrong.gguf")
    weight = quants.quantize(np.ones((9, 256), np.float32), Type.Q8_0)
    for value, how, says in (
            ([16, 16, 3], "add_array", "2304 elements, as it has, found one of 768"),
            ([2**31 - 1] * 3, "add_array", "less than 2^64 elements"),
            ([-16, -16, 9], "add_array", "from 0 to 2^63 - 1"),
            ([16.0, 16.0, 9.0], "add_array", "found an array of f32"),
            ("16x16x9", "add_string", "found string"), (2304, "add_uint32", "found u32"),
            ([1] * 65, "add_array", "at most 64 dimensions, found 65")):
        write(path, [("w", weight, Type.Q8_0)], [(SHAPE + "w", value, how)])
        refuse(ctx, path, says)
    write(path, [("w", weight, Type.Q8_0)], [(SHAPE + "w", [2304], "add_array")])
    found, _ = convert(ctx, path)
    assert found["w"].shape == (2304,)


def damaged(ctx):
    """Every byte of a header, changed: read or refused, and nothing written when refused."""
    good, bad = os.path.join(ctx.folder, "good.gguf"), os.path.join(ctx.folder, "bad.gguf")
    out = os.path.join(ctx.folder, "damaged.safetensors")
    write(good, [("w", np.zeros((2, 34), np.uint8), Type.Q8_0),
                 ("f", np.zeros((3,), np.float32), None)], PAIRS[-5:])
    with open(good, "rb") as file:
        raw = file.read()
    verdicts = set()
    for at in range(4, len(raw) - 150):
        changed = bytearray(raw)
        changed[at] ^= (1, 0x80, 0xff)[at % 3]
        with open(bad, "wb") as file:
            file.write(changed)
        done = subprocess.run([*ctx.command, "convert", bad, "-o", out, "--no-sync"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode in (0, 1, 2), (at, done)
        assert os.path.exists(out) == (done.returncode == 0), at
        assert done.returncode == 0 or done.stderr.count("\n") <= 2, (at, done.stderr)
        if done.returncode == 0:
            os.remove(out)
        verdicts.add(done.returncode == 0)
    assert verdicts == {False, True}


def cases(ctx):
    count = FULL if getattr(ctx, "full", False) else SHORT
    for kind in block_types():
        yield f"gguf {kind.name} F32", lambda k=kind: values(ctx, k, "F32", count)
        for dtype in ("F16", "BF16"):
            yield f"gguf {kind.name} {dtype}", lambda k=kind, d=dtype: values(ctx, k, d, SHORT)
    yield "gguf checksums of the unit test", lambda: unit_checksums(ctx)
    yield "gguf quantised weights", lambda: quantized_weights(ctx)
    yield "gguf values out of range", lambda: out_of_range(ctx)
    yield "gguf factors beside weights", lambda: factors(ctx)
    for endian in (GGUFEndian.LITTLE, GGUFEndian.BIG):
        for alignment in (8, 32, 4096):
            yield (f"gguf plain types, {endian.name}, alignment {alignment}",
                   lambda e=endian, a=alignment: plain(ctx, e, a))
    yield "gguf in parts", lambda: parts(ctx)
    for split in (False, True):
        yield f"gguf original shapes, split {split}", lambda s=split: original_shapes(ctx, s)
    yield "gguf original shapes that contradict", lambda: wrong_shapes(ctx)
    yield "gguf damaged headers", lambda: damaged(ctx)
