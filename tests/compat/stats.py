#!/usr/bin/env python3
"""ls --stats against exact arithmetic and numpy.

    stats.py [--only DTYPE]        needs build/safetensors (SFT_BUILD, SFT_COMMAND)

Tensors of every dtype: all codes where an element has at most 16 bits, random ones of several
pieces, extremes, nothing finite, nothing at all. Counts and extremes must be exact; mean and mean
of absolute values the true ones, rounded once; the standard deviation within one unit in the last
place of the true one and, where numpy does not overflow, close to numpy's. Any number of threads
must give the same bytes, and all tensors together what their concatenation gives.
"""
import argparse
import json
import math
import operator
import os
import shlex
import struct
import subprocess
import sys
import tempfile
from fractions import Fraction

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import ml_dtypes
    import numpy as np
except ImportError as error:
    print("stats: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
POINT = 1074  # units of 2^-1074: every double is a whole number of them

# dtype: bits of an element, numpy's dtype of its codes once unpacked
DTYPES = {
    "BOOL": (8, "bool"), "F4": (4, ml_dtypes.float4_e2m1fn),
    "F6_E2M3": (6, ml_dtypes.float6_e2m3fn), "F6_E3M2": (6, ml_dtypes.float6_e3m2fn),
    "U8": (8, "u1"), "I8": (8, "i1"), "F8_E5M2": (8, ml_dtypes.float8_e5m2),
    "F8_E4M3": (8, ml_dtypes.float8_e4m3fn), "F8_E8M0": (8, ml_dtypes.float8_e8m0fnu),
    "F8_E4M3FNUZ": (8, ml_dtypes.float8_e4m3fnuz), "F8_E5M2FNUZ": (8, ml_dtypes.float8_e5m2fnuz),
    "I16": (16, "<i2"), "U16": (16, "<u2"), "F16": (16, "<f2"), "BF16": (16, ml_dtypes.bfloat16),
    "I32": (32, "<i4"), "U32": (32, "<u4"), "F32": (32, "<f4"), "C64": (64, "<f4"),
    "F64": (64, "<f8"), "I64": (64, "<i8"), "U64": (64, "<u8"),
}


def unpack(data, bits):
    """Codes of packed elements."""
    raw = np.frombuffer(data, np.uint8)
    if bits >= 8:
        return raw
    stream = np.unpackbits(raw, bitorder="little").reshape(-1, bits)
    return np.packbits(stream, axis=1, bitorder="little").reshape(-1)


def values_of(data, dtype):
    """Elements as numpy sees them; halves of complex numbers."""
    bits, kind = DTYPES[dtype]
    codes = unpack(data, bits)
    if dtype == "BOOL":
        return codes != 0
    return codes.view(kind) if bits >= 8 else codes.astype(np.uint8).view(kind)


def doubles(values):
    with np.errstate(invalid="ignore"):  # signalling NaN
        return values.astype(np.float64)


def nearest(value):
    """A Fraction as the nearest double."""
    return value.numerator / value.denominator if value else 0.0


def root(value):
    """The square root of a Fraction, far beyond double precision."""
    shift = max(0, 400 - value.numerator.bit_length() + value.denominator.bit_length())
    shift += shift % 2
    whole = math.isqrt((value.numerator << shift) // value.denominator)
    return Fraction(whole, 1 << (shift // 2))


def expected(values):
    """(counts, min, max, mean, abs mean, std) by the definitions. Each value is taken once, as often
    as it is there."""
    if values.dtype.kind in "bui":
        each, times = np.unique(values, return_counts=True)
        ints, times = [int(v) for v in each.tolist()], times.tolist()
        scale, counts = 1, (values.size, values.size - np.count_nonzero(values), 0, 0)
    else:
        wide = doubles(values)
        finite = wide[np.isfinite(wide)]
        counts = (len(wide), int((wide == 0).sum()), int(np.isnan(wide).sum()),
                  int(np.isinf(wide).sum()))
        each, times = np.unique(finite, return_counts=True)
        pairs, times = [v.as_integer_ratio() for v in each.tolist()], times.tolist()
        scale = 1 << max((d.bit_length() - 1 for _, d in pairs), default=0)
        ints = [n * (scale // d) for n, d in pairs]
    if not ints:
        return counts, None, None, None, None, None
    n, total = sum(times), sum(map(operator.mul, ints, times))
    squares = sum(i * i * k for i, k in zip(ints, times))
    variance = Fraction(n * squares - total * total, n * n * scale * scale)
    return (counts, Fraction(min(ints), scale), Fraction(max(ints), scale),
            nearest(Fraction(total, n * scale)),
            nearest(Fraction(sum(abs(i) * k for i, k in zip(ints, times)), n * scale)),
            root(variance))


def differences(found, values):
    counts, low, high, mean, absolute, std = expected(values)
    names = ("values", "zeros", "nan", "inf")
    for name, want in zip(names, counts):
        if found[name] != want:
            yield "%s: expected %d, found %d" % (name, want, found[name])
    if low is None:
        for name in ("min", "max", "mean", "std", "abs_mean"):
            if found[name] is not None:
                yield "%s: expected null, found %r" % (name, found[name])
        return
    for name, want in (("min", low), ("max", high)):
        if Fraction(found[name]) != want:
            yield "%s: expected %s, found %r" % (name, want, found[name])
    for name, want in (("mean", mean), ("abs_mean", absolute)):
        if found[name] != want:
            yield "%s: expected %r, found %r" % (name, want, found[name])
    near = nearest(std)
    if abs(Fraction(found["std"]) - std) > Fraction(math.ulp(near)) * 51 / 100:
        yield "std: expected %r, found %r" % (near, found["std"])
    with np.errstate(all="ignore"):
        wide = doubles(values)
        theirs = float(np.std(wide[np.isfinite(wide)]))
        size = float(np.max(np.abs(wide[np.isfinite(wide)])))
    if math.isfinite(theirs) and theirs > 1e-150 and abs(theirs - near) > 1e-9 * size:
        yield "std: numpy has %r, expected %r" % (theirs, near)


def histogram_of(values):
    """[[power, negative, positive], ...] of all but zeros, NaN and infinities."""
    out = {}
    wide = doubles(values)
    wide = wide[np.isfinite(wide) & (wide != 0)]
    powers = np.clip(np.frexp(wide)[1] - 1, -64, 63)
    for negative in (0, 1):
        found, times = np.unique(powers[(wide < 0) == bool(negative)], return_counts=True)
        for power, count in zip(found.tolist(), times.tolist()):
            out.setdefault(power, [power, 0, 0])[2 - negative] = count
    return [out[p] for p in sorted(out)]


def tensors_of(dtype, random):
    """Packed bytes of each tensor to be looked at."""
    bits = DTYPES[dtype][0]
    group = bits if bits < 8 else bits // 8  # bytes of whole elements
    yield "none", b""
    yield "one", random.bytes(group)
    yield "zeros", bytes(24 * bits)
    if bits <= 8:
        codes = np.arange(1 << bits, dtype=np.uint8).repeat(3)
        stream = np.unpackbits(codes.reshape(-1, 1), axis=1, bitorder="little")[:, :bits]
        yield "codes", np.packbits(stream.reshape(-1), bitorder="little").tobytes()
    if bits == 16:
        yield "codes", np.arange(1 << 16, dtype="<u2").tobytes()
    yield "random", random.bytes(40 * group * 101)
    yield "pieces", random.bytes(group * (700_000 // group + 8 // group * group + 3))
    kind = DTYPES[dtype][1]
    if dtype in ("F16", "BF16", "F32", "F64", "C64"):
        normal = random.standard_normal(150_001).astype(np.float64)
        plain = (normal * 0.02 + 0.001).astype(kind)
        yield "weights", plain.tobytes() if dtype != "C64" else plain[:150_000].tobytes()
        yield "same", np.full(70_000, 0.1, kind).tobytes()
        yield "nan", np.full(32, np.nan, kind).tobytes()
        yield "inf", np.array([np.inf, -np.inf] * 4, kind).tobytes()
        top = np.finfo(kind) if dtype != "BF16" else ml_dtypes.finfo(ml_dtypes.bfloat16)
        yield "greatest", np.array([top.max] * 5 + [-top.max] * 3, kind).tobytes()
        yield "least", np.array([top.smallest_subnormal] * 7 + [0], kind).tobytes()
        yield "apart", np.array([top.max, top.smallest_subnormal], kind).tobytes()
        yield "minus zero", np.array([-0.0, -0.0, 0.0, -0.0], kind).tobytes()
    if dtype[0] in "UI":
        info = np.iinfo(kind)
        yield "limits", np.array([info.min, info.max] * 100_000, kind).tobytes()
        yield "greatest", np.full(70_000, info.max, kind).tobytes()
        yield "least", np.full(70_000, info.min, kind).tobytes()


def write(path, dtype, tensors):
    bits, header, at = DTYPES[dtype][0], {}, 0
    for name, data in tensors:
        header[name] = {"dtype": dtype, "shape": [len(data) * 8 // bits],
                        "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(d for _, d in tensors))


def stats(path, *options):
    done = subprocess.run([*COMMAND, "ls", "--stats", "--json", *options, path], check=True,
                          stdout=subprocess.PIPE)
    return done.stdout


def check(dtype, path, random):
    """(passed, problems) of one dtype."""
    tensors = list(tensors_of(dtype, random))
    write(path, dtype, tensors)
    texts = [stats(path, "--histogram", "--threads", n) for n in ("1", "2", "5")]
    result, = json.loads(texts[0])["results"]
    problems, passed = [], 0
    for entry, (name, data) in zip(result["tensors"], tensors, strict=True):
        values = values_of(data, dtype)
        bad = list(differences(entry["stats"], values))
        if entry["stats"]["histogram"] != histogram_of(values):
            bad.append("histogram: expected %r, found %r" % (histogram_of(values),
                                                             entry["stats"]["histogram"]))
        problems += ["%s %s: %s" % (dtype, name, text) for text in bad]
        passed += not bad
    both = values_of(b"".join(d for _, d in tensors), dtype)
    if dtype not in ("I64", "U64"):  # whose extremes are doubles here
        bad = list(differences(result["stats"], both))
        problems += ["%s all: %s" % (dtype, text) for text in bad]
        passed += not bad
    for text in texts[1:]:
        if text != texts[0]:
            problems.append("%s: another result with more threads" % dtype)
        passed += text == texts[0]
    return passed, problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only")
    only = parser.parse_args().only
    passed, problems = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for dtype in DTYPES:
            if only and dtype != only:
                continue
            path = os.path.join(folder, "model.safetensors")
            fine, bad = check(dtype, path, np.random.default_rng(7))
            passed += fine
            problems += bad
    print("\n".join(problems))
    print("%d passed, %d failed" % (passed, len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
