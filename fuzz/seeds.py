#!/usr/bin/env python3
"""Write the seeds of the fuzz harnesses to fuzz/corpus. Files that a fuzzer found and that are
kept have names of their own and stay."""
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "examples", "models")


def framed(text, data=b"", n=None):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text) if n is None else n) + text + data


def entry(dtype, shape, begin, end):
    return '{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (
        dtype, json.dumps(shape, separators=(",", ":")), begin, end)


def u8(n=1, begin=0):
    return entry("U8", [n], begin, begin + n)


def headers():
    one = '{"t":%s}' % entry("I32", [2], 0, 8)
    swapped = '{"b":%s,"a":%s}' % (entry("F16", [2], 4, 8), entry("F32", [], 0, 4))
    none = '{"a":%s,"b":%s}' % (entry("U8", [0, 3], 0, 0), u8())
    bits = '{"a":%s,"b":%s}' % (entry("F4", [3, 2], 0, 3), entry("F6_E2M3", [4], 3, 6))
    pairs = r'{"__metadata__":{"a":"b","\u00e9":"\n\ud83d\ude00"},"t":%s}' % u8()
    variant = '{"t":{"dtype":{"I32":null},"shape":[2],"data_offsets":[0,8]}}'
    double = r'{"t":%s,"\u0074":%s}' % (u8(), entry("I8", [1], 0, 1))
    extra = '{"t":{"dtype":"U8","extra":%s,"shape":[1],"data_offsets":[0,1]}}'
    blank = '\t{ "t" :\r\n{"dtype" : "U8", "shape":[ 1 ] ,"data_offsets":[0 , 1]} } '
    out = {
        "empty": b"", "zero": framed(""), "object": framed("{}"), "one": framed(one, b"x" * 8),
        "padded": framed(one + "   ", b"x" * 8), "leading": framed("  " + one, b"x" * 8),
        "two": framed(swapped, b"8bytes!!"), "no-elements": framed(none, b"x"),
        "sub-byte": framed(bits, b"sixbyt"), "metadata": framed(pairs, b"x"),
        "metadata-null": framed('{"__metadata__":null}'),
        "metadata-twice": framed('{"__metadata__":{"a":"1","a":"2"}}'),
        "array-entry": framed('{"t":["I32",[2],[0,8]]}', b"x" * 8),
        "dtype-object": framed(variant, b"x" * 8), "duplicate": framed(double, b"x"),
        "other-order": framed('{"t":{"data_offsets":[0,1],"shape":[1],"dtype":"BOOL"}}', b"x"),
        "extra-field": framed(extra % '[{"x":[1.5e3,null]}]', b"x"),
        "white-space": framed(blank, b"x"),
        "legacy": framed('{"t":{"dtype":"float16","shape":[2],"offsets":[0,4]}}', b"four"),
        "rank": framed('{"t":%s}' % entry("U8", [1] * 65, 0, 1), b"x"),
        "overflow": framed('{"t":%s}' % entry("U8", [2**63, 4, 0], 0, 0)),
        "zero-first": framed('{"t":%s}' % entry("U8", [0, 2**63, 4], 0, 0)),
        "gap": framed('{"t":%s}' % u8(begin=1), b"xx"),
        "short": framed(one, b"x" * 7), "long": framed(one, b"x" * 9),
        "huge-length": framed(one, b"x" * 8, 2**63), "bad-utf8": framed(b'{"\xff":null}'),
        "nested": framed(extra % ("[" * 125 + "]" * 125), b"x"),
        "cut-in-shape": framed('{"t":{"dtype":"U8","shape":[', b'],"data_offsets":[0,0]}}'),
        "cut-after-dim": framed('{"t":{"dtype":"U8","shape":[0,', b'1],"data_offsets":[0,0]}}'),
        "cut-before-begin": framed('{"t":{"dtype":"U8","shape":[0],"data_offsets":[', b"0,0]}}"),
        "cut-in-offsets": framed('{"t":{"dtype":"U8","shape":[1],"data_offsets":[5,', b"1]}}x"),
        "lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "zip": b"PK\x03\x04" + b"\0" * 40, "gguf": b"GGUF\x03\0\0\0" + b"\0" * 16,
    }
    with open(os.path.join(MODELS, "every-dtype.safetensors"), "rb") as f:
        out["every-dtype"] = f.read()
    with open(os.path.join(MODELS, "lora", "neon-city.safetensors"), "rb") as f:
        raw = f.read(8)
        text = json.loads(f.read(struct.unpack("<Q", raw)[0]))
    out["lora-metadata"] = framed(json.dumps({"__metadata__": text["__metadata__"]}))
    return out


def texts():
    plain = ["null", "[]", "{}", "0", "-0", "1.5e-3", '"\\u0041\\n"',
             '{"a":{"a":[1,2,{"b":null}]}}',
             "[true,false,null,18446744073709551615,18446744073709551616]", '"\\ud83d\\ude00"',
             '"\\ud83d"', "[1,]", "{,}", "01", "[" * 127 + "]" * 127, "[" * 128 + "]" * 128,
             ' { "a" : "b" , "c" : [ ] } ', '{"a":1,"a":2}', '"\u00e9\u2028"', '"\x7f"',
             "[1 2]", "nul"]
    out = {"%02d" % i: text.encode() for i, text in enumerate(plain)}
    for name in ("lora/neon-city.json", "lora/neon-city.civitai.info"):
        with open(os.path.join(MODELS, name), "rb") as f:
            out[os.path.basename(name)] = f.read()
    return out


def indexes():
    def weights(**where):
        return json.dumps({"metadata": {"total_size": 1}, "weight_map": where}).encode()
    with open(os.path.join(MODELS, "sharded", "model.safetensors.index.json"), "rb") as f:
        real = f.read()
    return {"real": real, "one": weights(a="x.safetensors"), "empty": weights(),
            "up": weights(a="../x.safetensors"), "absolute": weights(a="/x.safetensors"),
            "below": weights(a="b/x.safetensors", b="b/x.safetensors", c="b/x10", d="b/x9"),
            "hidden-up": weights(a="b/../../x"), "backslash": weights(a="..\\x"),
            "nul": weights(a="x\0y"), "dot": weights(a="./x"), "no-name": weights(a=""),
            "not-text": b'{"weight_map":{"a":1}}', "no-map": b'{"metadata":{}}', "list": b"[]",
            "twice": b'{"weight_map":{"a":"x","a":"y"}}'}


def slices():
    """dtype, rank, dims, count of parts, parts (kind, value, start, stop, step), text."""
    def parts(*values):
        coded = [v if i % 5 == 0 else (v + 11) % 23 for i, v in enumerate(values)]
        return bytes([len(values) // 5] + coded)
    out = {"whole": bytes([17, 2, 3, 4]) + parts() + b"...",
           "row": bytes([17, 2, 3, 4]) + parts(1, 1, 0, 0, 0) + b"1",
           "column": bytes([13, 2, 5, 4]) + parts(0, 0, 0, 0, 0, 1, 2, 0, 0, 0) + b"[...,2]",
           "backwards": bytes([20, 1, 8]) + parts(32 + 3, 0, 0, 0, -2) + b"::-2",
           "middle": bytes([4, 3, 2, 5, 3]) + parts(3, 0, 0, 0, 0, 27, 0, 1, 4, 1) + b"[:, 1:4]",
           "half-bytes": bytes([1, 2, 4, 4]) + parts(24 + 3, 0, 1, 3, 1) + b"[1:3, 0:2]",
           "scalar": bytes([17, 0]) + parts(),
           "far": bytes([4, 1, 5, 1, 3 + 56, 0, 251, 253, 252]),
           "text": bytes([4, 4, 2, 3, 4, 5, 0]) + b"[-1, ..., 9223372036854775808:, ::3]"}
    return out


def main():
    for name, make in (("open", headers), ("json", texts), ("index", indexes), ("slice", slices)):
        folder = os.path.join(HERE, "corpus", name)
        os.makedirs(folder, exist_ok=True)
        for seed, data in make().items():
            with open(os.path.join(folder, seed), "wb") as f:
                f.write(data)


main()
