#!/usr/bin/env python3
"""Casts against ml_dtypes, numpy and exact arithmetic.

    convert.py [--only FROM[:TO]]        needs build/tests/cast (SFT_BUILD)

For every pair of dtypes: all inputs where the source has 16 bits or less, else a set around
every place where a result changes, and 2^18 random ones. Floats that are no NaN must equal
ml_dtypes (numpy for F16, F32, F64) bit for bit; NaN must be NaN of the same sign, and quiet.
ml_dtypes brings F64 and the wide integers to F32 first and so rounds twice: where that loses
something the result must be that of exact arithmetic, which is asked for the others as well.
Floats to integers and integers to integers are compared with exact arithmetic; what is out
of range must be refused alone, and take the nearest limit when saturated.
"""
import argparse
import functools
import os
import shlex
import subprocess
import sys
from fractions import Fraction

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import ml_dtypes
    import numpy as np
except ImportError as error:
    print("convert: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
CAST = shlex.split(os.environ.get("SFT_EMULATE", "")) + [os.path.join(BUILD, "tests", "cast")]


class Float:
    """A format by its definition. over: what is too large becomes."""

    def __init__(self, bits, mantissa, bias, dtype, top, over="inf", nan="ieee"):
        self.bits, self.mantissa, self.bias, self.over, self.nan = bits, mantissa, bias, over, nan
        self.dtype = np.dtype(dtype)
        self.top = top  # code of the greatest finite value
        self.word = np.dtype("u%d" % max(1, bits // 8))

    def value(self, code):
        """Of a finite code without sign."""
        exponent, mantissa = code >> self.mantissa, code & ((1 << self.mantissa) - 1)
        if exponent:
            mantissa += 1 << self.mantissa
        power = max(exponent, 1) - self.bias - self.mantissa
        return Fraction(mantissa << power) if power >= 0 else Fraction(mantissa, 1 << -power)

    def is_nan(self, codes):
        codes = codes.astype(np.uint64)
        sign = 1 << (self.bits - 1)
        if self.nan == "fnuz":
            return codes == sign
        if self.nan == "none":
            return np.zeros(codes.shape, bool)
        if self.nan == "e8m0":
            return codes == 255
        return (codes & np.uint64(sign - 1)) > self.top + (self.over == "inf")

    def round(self, value, negative):
        """Codes of an exact value (not NaN), as it is and saturated; None: an infinity."""
        if self.nan == "e8m0":
            return self.round_power(value, negative)
        sign = (1 << (self.bits - 1)) if negative else 0
        code = self.top + 1 if value is None else self.nearest(abs(value))
        if code > self.top:
            most = sign | self.top
            if self.nan == "none":
                return most, most
            if self.over == "inf":
                infinity = sign | self.top + 1
                return infinity, infinity if value is None else most
            return self.lost(sign), most
        code = 0 if code == 0 and self.nan == "fnuz" else sign | code
        return code, code

    def lost(self, sign):
        return 1 << (self.bits - 1) if self.nan == "fnuz" else sign | self.top + 1

    def nearest(self, value):
        over, under = value.numerator, value.denominator
        if over == 0:
            return 0
        power = over.bit_length() - under.bit_length()
        if over << max(-power, 0) < under << max(power, 0):
            power -= 1
        power = max(power, 1 - self.bias)
        shift = power - self.mantissa
        whole, rest = divmod(over << max(-shift, 0), under << max(shift, 0))
        whole += 2 * rest > under << max(shift, 0) or (
            2 * rest == under << max(shift, 0) and whole & 1)
        return whole + ((power - 1 + self.bias) << self.mantissa)

    def round_power(self, value, negative):
        if value is None:
            return 255, 255 if negative else 254
        if negative or value == 0:
            return 255, 255
        power = value.numerator.bit_length() - value.denominator.bit_length()
        if Fraction(2) ** power > value:
            power -= 1
        if power == -127 and value > Fraction(2) ** power:  # as ml_dtypes and torch
            return 1, 1
        power += value >= Fraction(2) ** power * Fraction(3, 2)
        code = max(power + 127, 0)
        return (code, code) if power <= 127 else (255, 254)


class Int:
    def __init__(self, bits, dtype):
        self.bits, self.dtype = bits, np.dtype(dtype)
        self.word = np.dtype("u%d" % (bits // 8))
        info = np.iinfo(self.dtype) if self.dtype != bool else None
        self.least, self.most = (int(info.min), int(info.max)) if info else (0, 1)


M = ml_dtypes
FLOATS = {
    "F64": Float(64, 52, 1023, "f8", 0x7fefffffffffffff),
    "F32": Float(32, 23, 127, "f4", 0x7f7fffff),
    "F16": Float(16, 10, 15, "f2", 0x7bff),
    "BF16": Float(16, 7, 127, M.bfloat16, 0x7f7f),
    "F8_E5M2": Float(8, 2, 15, M.float8_e5m2, 0x7b),
    "F8_E4M3": Float(8, 3, 7, M.float8_e4m3fn, 0x7e, "nan"),
    "F8_E4M3FNUZ": Float(8, 3, 8, M.float8_e4m3fnuz, 0x7f, "nan", "fnuz"),
    "F8_E5M2FNUZ": Float(8, 2, 16, M.float8_e5m2fnuz, 0x7f, "nan", "fnuz"),
    "F8_E8M0": Float(8, 0, 127, M.float8_e8m0fnu, 254, "nan", "e8m0"),
    "F6_E2M3": Float(6, 3, 1, M.float6_e2m3fn, 0x1f, "top", "none"),
    "F6_E3M2": Float(6, 2, 3, M.float6_e3m2fn, 0x1f, "top", "none"),
    "F4": Float(4, 1, 1, M.float4_e2m1fn, 0x7, "top", "none"),
}
INTS = {"BOOL": Int(8, bool)}
INTS.update({"%s%d" % (kind, bits): Int(bits, "%s%d" % (kind.lower(), bits // 8))
             for kind in "IU" for bits in (8, 16, 32, 64)})
ALL = {**FLOATS, **INTS}


# ── Packing ──

def pack(codes, bits):
    if bits >= 8:
        return codes.tobytes()
    flat = np.unpackbits(codes.astype(np.uint8)[:, None], axis=1, bitorder="little")[:, :bits]
    return np.packbits(flat.reshape(-1), bitorder="little").tobytes()


def unpack(text, bits, word):
    if bits >= 8:
        return np.frombuffer(text, word)
    flat = np.unpackbits(np.frombuffer(text, np.uint8), bitorder="little").reshape(-1, bits)
    return np.packbits(flat, axis=1, bitorder="little")[:, 0]


def cast(name, to, codes, saturate=False):
    """(codes, None), or (None, what it said)."""
    short = -len(codes) % 8
    codes = np.concatenate([codes, np.repeat(codes[-1:], short)])
    words = [name, to] + ["saturate"] * saturate
    done = subprocess.run(CAST + words, input=pack(codes, ALL[name].bits),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        return None, done.stderr.decode()
    out = unpack(done.stdout, ALL[to].bits, ALL[to].word)
    return out[:len(out) - short], None


# ── Inputs ──

def around(form, targets):
    """F32 or F64 codes at, half-way between and next to the values of all small formats."""
    values = []
    for target in targets:
        step = max(1, (target.top + 1) // 512)
        codes = list(range(0, target.top + 2, step)) + list(range(0, min(target.top, 40)))
        codes += list(range(max(0, target.top - 40), target.top + 2))
        codes += [1 << target.mantissa, (1 << target.mantissa) - 1]
        got = sorted({target.value(code) for code in codes})
        values += got + [(a + b) / 2 for a, b in zip(got, got[1:])]
    codes = set()
    for value in values:
        code = form.nearest(value)
        codes.update(c for c in (code - 1, code, code + 1) if 0 <= c <= form.top)
    codes = np.array(sorted(codes), np.uint64)
    return np.concatenate([codes, codes | np.uint64(1 << (form.bits - 1))])


def specials(form):
    sign, low = 1 << (form.bits - 1), form.mantissa
    infinity = form.top + 1
    codes = [0, 1, form.top, infinity, infinity + 1, infinity + (1 << (low - 1)),
             infinity + (1 << (low - 1)) + 1, infinity + (1 << (low - 2)), sign - 1]
    return np.array(codes + [c | sign for c in codes], np.uint64)


def limits_as(form):
    """Codes around every limit of the integers, and fractions."""
    values = []
    for i in INTS.values():
        for v in (i.least, i.most):
            values += [Fraction(v) + Fraction(k, 4) for k in range(-8, 9)]
    values += [Fraction(k, 8) for k in range(-40, 41)]
    codes = []
    for value in values:
        code = form.nearest(abs(value))
        sign = (1 << (form.bits - 1)) if value < 0 else 0
        codes += [sign | c for c in (code - 1, code, code + 1) if c >= 0]
    return np.array(codes, np.uint64)


def wide_integers(i):
    values = set(range(-300, 301)) | {i.least, i.most}
    for power in range(2, 65):
        for mantissa in (2, 3, 4, 8, 9, 11, 12, 24, 25, 53, 54):
            ulp = 1 << max(0, power - mantissa)
            for k in (-3, -2, -1, 0, 1, 2, 3):
                values.update(s * (1 << power) + k * ulp + d
                              for s in (1, -1) for d in (-1, 0, 1))
    return np.array([v % (1 << i.bits) for v in sorted(values) if i.least <= v <= i.most],
                    np.uint64)


RANDOM = np.random.default_rng(4)
CODES = {}


def inputs(name):
    """(all codes, how many of them are asked of exact arithmetic)."""
    if name in CODES:
        return CODES[name]
    form = ALL[name]
    if form.bits <= 16:
        codes = np.arange(1 << form.bits, dtype=np.uint64)
        chosen = len(codes)
    else:
        if isinstance(form, Float):
            small = [f for n, f in FLOATS.items() if f.bits <= 16]
            small += [FLOATS["F32"]] if name == "F64" else []
            chosen = np.concatenate([around(form, small), specials(form), limits_as(form)])
        else:
            chosen = wide_integers(form)
        random = RANDOM.integers(0, 1 << form.bits, 1 << 18, np.uint64, endpoint=False) \
            if form.bits < 64 else RANDOM.integers(0, 2**64 - 1, 1 << 18, np.uint64, True)
        if isinstance(form, Float):  # half of them where the small formats are
            exponent = RANDOM.integers(form.bias - 160 if name == "F64" else 0,
                                       form.bias + 130 if name == "F64" else 255, 1 << 17)
            mask = np.uint64((1 << form.mantissa) - 1 | 1 << (form.bits - 1))
            random[::2] = random[::2] & mask | exponent.astype(np.uint64) << np.uint64(
                form.mantissa)
        codes = np.concatenate([chosen, random])
        chosen = len(chosen)
    CODES[name] = codes.astype(form.word), chosen
    return CODES[name]


# ── Judging ──

passed, failures = 0, []


def demand(ok, what):
    global passed
    passed += bool(ok)
    if not ok:
        failures.append(what)
        print("FAIL " + what, flush=True)


def compare(what, codes, got, want, mask=None):
    bad = got != want
    if mask is not None:
        bad &= mask
    where = np.flatnonzero(bad)
    demand(not len(where), "%s: %d differ, first %#x: %#x, expected %#x" % (
        what, len(where), *((codes[where[0]], got[where[0]], want[where[0]])
                            if len(where) else (0, 0, 0))))


@functools.cache
def exact_value(name, code):
    """(value or None for an infinity or "nan", whether it is negative)."""
    form = ALL[name]
    if isinstance(form, Int):
        value = int(np.array([code], form.word).view(form.dtype)[0]) \
            if name != "BOOL" else int(code != 0)
        return Fraction(value), value < 0
    if form.is_nan(np.array([code], np.uint64))[0]:
        return "nan", code >> (form.bits - 1)
    if form.nan == "e8m0":
        return Fraction(2) ** (code - 127), False
    negative, magnitude = code >> (form.bits - 1), code & ((1 << (form.bits - 1)) - 1)
    if magnitude > form.top:
        return None, negative
    value = form.value(magnitude)
    return (-value if negative else value), negative


def peer(name, to, codes):
    """The results of numpy and ml_dtypes."""
    source = ALL[name]
    values = codes.view(source.dtype) if name != "BOOL" else codes != 0
    with np.errstate(all="ignore"):
        if isinstance(source, Float) and source.bits <= 8:  # not all are castable directly
            values = values.astype(np.float32)
        return values.astype(ALL[to].dtype).view(ALL[to].word)


def rounds_once(name, to, codes):
    """Where ml_dtypes does: what F32 holds exactly."""
    source = ALL[name]
    wide = source.bits > 32 or (isinstance(source, Int) and source.bits > 16)
    if not wide or to in ("F64", "F32", "F16"):
        return np.ones(codes.shape, bool)
    with np.errstate(all="ignore"):
        values = codes.view(source.dtype)
        back = values.astype(np.float32).astype(np.float64)
        if isinstance(source, Int):
            there = np.array([int(v) if abs(float(v)) < 2.0**63 else -1 for v in back], object)
            return there == values.astype(object)
        return (back == values) | np.isnan(values)


def check_nan(name, to, codes, got, nan):
    source, target = ALL[name], ALL[to]
    if target.nan == "none" or not nan.any():
        return
    demand(target.is_nan(got[nan]).all(), "%s to %s: a NaN is lost" % (name, to))
    if target.nan in ("fnuz", "e8m0"):
        return
    before = codes[nan].astype(np.uint64) >> np.uint64(source.bits - 1) & np.uint64(1)
    if source.nan == "e8m0":
        before[:] = 0
    after = got[nan].astype(np.uint64) >> np.uint64(target.bits - 1)
    demand((before == after).all(), "%s to %s: the sign of a NaN is lost" % (name, to))
    if target.mantissa > 1 and target.over == "inf":
        quiet = got[nan].astype(np.uint64) >> np.uint64(target.mantissa - 1) & np.uint64(1)
        demand(quiet.all(), "%s to %s: a NaN is not quiet" % (name, to))


def to_float(name, to):
    source, target = ALL[name], ALL[to]
    codes, chosen = inputs(name)
    nan = source.is_nan(codes) if isinstance(source, Float) else np.zeros(len(codes), bool)
    if target.nan == "none" and nan.any():
        first = codes[nan][:1]
        got, said = cast(name, to, np.repeat(first, 8))
        demand(said and said.startswith("0 cast_value: ") and "NaN" in said,
               "%s to %s: NaN: %s" % (name, to, said))
        chosen = int((~nan[:chosen]).sum())
        codes, nan = codes[~nan], nan[~nan]
    got, said = cast(name, to, codes)
    demand(got is not None, "%s to %s: %s" % (name, to, said))
    if got is None:
        return
    if name == to:
        compare("%s to itself" % name, codes, got, codes)
        return
    once = rounds_once(name, to, codes) & ~nan
    if to == "F8_E8M0" and name == "F64":  # a positive F64 may become the F32 0, a NaN
        values = codes.view("f8")
        once &= ~((values > 0) & (values < 2.0**-149))
    compare("%s to %s, peer" % (name, to), codes, got, peer(name, to, codes), once)
    check_nan(name, to, codes, got, nan)
    step = 1 if source.bits > 16 or len(codes) <= 256 else 7
    some, kept = codes[:chosen:step], ~nan[:chosen:step]
    exact = [target.round(*exact_value(name, int(code))) for code in some[kept]]
    for saturate in (False, True):
        got, said = cast(name, to, some, saturate)
        want = got.copy()
        want[kept] = [pair[saturate] for pair in exact]
        compare("%s to %s, exact%s" % (name, to, " saturated" * saturate), some, got, want, kept)


def to_int(name, to):
    source, target = ALL[name], ALL[to]
    codes, chosen = inputs(name)
    codes = codes[:chosen] if source.bits > 16 else codes
    fits, want, limit = [], [], []
    for code in codes:
        value, negative = exact_value(name, int(code))
        if to == "BOOL":
            value = Fraction(value != 0)
        whole = 0
        if value == "nan":
            inside = False
        elif value is None:
            inside, whole = False, (target.least if negative else target.most)
        else:
            whole = abs(value).numerator // abs(value).denominator * (-1 if value < 0 else 1)
            inside = target.least <= whole <= target.most
        whole = min(max(whole, target.least), target.most)
        fits.append(inside)
        limit.append(whole % (1 << target.bits))
    fits, limit = np.array(fits), np.array(limit, target.word)
    if name == to and to != "BOOL":
        fits[:] = True
        limit = codes
    if name == to == "BOOL":
        limit = codes.astype(target.word)  # a copy
    got, said = cast(name, to, codes[fits]) if fits.any() else (limit[fits], None)
    demand(got is not None, "%s to %s: %s" % (name, to, said))
    if got is not None:
        compare("%s to %s" % (name, to), codes[fits], got, limit[fits])
    got, said = cast(name, to, codes, True)
    demand(got is not None, "%s to %s saturated: %s" % (name, to, said))
    if got is not None:
        compare("%s to %s saturated" % (name, to), codes, got, limit)
    refused = np.flatnonzero(~fits)
    for k in refused[::max(1, len(refused) // 8)]:
        group = np.concatenate([np.repeat(codes[fits][:1], 5), codes[k:k + 1],
                                np.repeat(codes[fits][:1], 2)])
        got, said = cast(name, to, group)
        demand(said and said.startswith("5 cast_value: "), "%s to %s: %#x: %s" % (
            name, to, codes[k], said))


def number(text):
    base, _, power = text.partition("^")
    return Fraction(2) ** int(power) if power else Fraction(base if "e" not in base else
                                                            int(float(base)))


def check_page():
    """docs/convert.md says of each target what the definitions say."""
    with open(os.path.join(ROOT, "docs", "convert.md"), encoding="utf-8") as f:
        page = f.read()
    for name, form in FLOATS.items():
        part = page.split("\n### %s\n" % name)[1].split("\n#")[0]
        told = {}
        for line in part.splitlines():
            cells = [cell.strip(" `") for cell in line.split("|")[1:-1]]
            if len(cells) == 3:
                told[cells[0]] = cells[1:]
        value, code = told["greatest"]
        demand(int(code, 16) == form.top and number(value) == (
            Fraction(2) ** 127 if form.nan == "e8m0" else form.value(form.top)), name)
        for row, code in (("least normal", 1 << form.mantissa), ("least subnormal", 1)):
            if form.nan != "e8m0":
                demand(told[row][1] == "%0*x" % (-(-form.bits // 4), code) and
                       number(told[row][0]) == form.value(code), name + ", " + row)
    for name, form in INTS.items():
        if name != "BOOL":
            demand("| %s | %d | %d |" % (name, form.least, form.most) in page, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    only = args.only.split(":")
    check_page()
    for name in ALL:
        for to in ALL:
            if only[0] and (name != only[0] or (len(only) > 1 and to != only[1])):
                continue
            (to_float if to in FLOATS else to_int)(name, to)
    for name, to in (("C64", "F32"), ("F32", "C64"), ("C64", "I8")):
        said = subprocess.run(CAST + [name, to], input=b"12345678", stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL)
        demand(said.returncode == 1 and b"cast_dtype" in said.stderr, name + " to " + to)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
