#!/usr/bin/env python3
"""Write the conformance corpus: small .safetensors files, each with a known verdict.

    make.py DIR          write the files and manifest.json into DIR (default: this folder)
    make.py --check      write nothing; fail if this folder differs from what would be written

Every byte is spelled out here. Nothing depends on time, chance or any package; README.md
says what the folders and the manifest mean, docs/format.md has the rules.
"""
import json
import os
import struct
import sys

from sets import add_sets

HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = ("compat", "default", "strict")

# Rule of docs/format.md -> code, in the order of the enum sft_code.
RULES = dict(enumerate("""
    header_too_small header_too_large header_truncated header_utf8
    json_syntax json_string json_number json_depth json_trailing
    header_not_object entry_type field_missing field_duplicate dtype_type dtype_unknown
    shape_type offsets_type metadata_type metadata_value metadata_duplicate legacy_layout
    tensor_duplicate metadata_key_duplicate entry_not_object dtype_not_string rank_too_large
    strict_first_byte strict_padding strict_field strict_name strict_metadata
    offsets_reversed offsets_gap offsets_overlap size_overflow size_partial_byte
    size_mismatch data_truncated data_trailing
    index_type index_path index_shard_missing index_tensor_missing index_tensor_misplaced
    index_tensor_duplicate
""".split(), 1))

NUMBERS = {code: number for number, code in RULES.items()}

# Header name and bits per element, in the official sort order.
DTYPES = [
    ("BOOL", 8), ("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6), ("U8", 8), ("I8", 8),
    ("F8_E5M2", 8), ("F8_E4M3", 8), ("F8_E8M0", 8), ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8),
    ("I16", 16), ("U16", 16), ("F16", 16), ("BF16", 16), ("I32", 32), ("U32", 32),
    ("F32", 32), ("C64", 64), ("F64", 64), ("I64", 64), ("U64", 64),
]


# ── Bytes ──

def frame(text, data=b"", n=None):
    """A file: length, header, data. n overrides the length written."""
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(text) if n is None else n) + text + data


def entry(name="t", dtype='"I32"', shape="[2]", offsets="[0,8]", more=""):
    """One entry as header text; dtype, shape and offsets are JSON text."""
    return '"%s":{"dtype":%s,"shape":%s,"data_offsets":%s%s}' % (
        name, dtype, shape, offsets, more)


def header(*entries):
    return "{" + ",".join(entries) + "}"


def one(data=bytes(8), **fields):
    """A file of one entry; the default is valid."""
    return frame(header(entry(**fields)), data)


def u8(name, begin, end, count=None):
    """An entry of bytes, for tests of layout."""
    count = end - begin if count is None else count
    return entry(name, '"U8"', "[%d]" % count, "[%d,%d]" % (begin, end))


META = '"__metadata__":'
T = entry()


# ── The list of files ──

class Corpus:
    def __init__(self):
        self.files = {}
        self.rows = []
        self.sets = []
        self.numbers = NUMBERS

    def add(self, rule, slug, data, note, codes, folder=None, **more):
        """codes: per level the code's name, or None for accepted."""
        folder = folder or folder_of(codes)
        name = "%s/%s%s.safetensors" % (folder, "R%d-" % rule if rule else "", slug)
        assert name not in self.files, name
        self.files[name] = data
        row = {"file": name, "note": note}
        first = next((code for code in codes if code), None)
        row["rule"] = first and "R%d" % NUMBERS[first]
        row["verdict"] = {l: "refuse" if c else "accept" for l, c in zip(LEVELS, codes)}
        row["code"] = dict(zip(LEVELS, codes))
        if not codes[0]:
            row.update(contents(data))
        row.update(more)
        self.rows.append(row)

    def accept(self, rule, slug, data, note, **more):
        self.add(rule, slug, data, note, (None, None, None), **more)

    def refuse(self, rule, slug, data, note, default=None, strict=None, **more):
        code = RULES[rule]
        default = default or code
        self.add(rule, slug, data, note, (code, default, strict or default), **more)

    def refuse_field(self, rule, slug, data, note):
        """Refused for what stands in a field that level strict does not allow at all."""
        self.refuse(rule, slug, data, note, strict="strict_field")

    def compat_only(self, rule, slug, data, note, **more):
        self.add(rule, slug, data, note, (None, RULES[rule], RULES[rule]), **more)

    def not_strict(self, rule, slug, data, note, **more):
        self.add(rule, slug, data, note, (None, None, RULES[rule]), **more)


def folder_of(codes):
    return {(True, True, True): "refuse", (False, True, True): "compat-only",
            (False, False, True): "not-strict", (False, False, False): "accept"}[
                tuple(c is not None for c in codes)]


def contents(data):
    """What a reader must find in an accepted file: the last of equal names counts."""
    n = struct.unpack_from("<Q", data)[0]
    found = json.loads(data[8:8 + n], parse_float=str)
    metadata = found.pop("__metadata__", None)
    tensors = []
    for name, value in found.items():
        if isinstance(value, list):
            value = dict(zip(("dtype", "shape", "data_offsets"), value))
        dtype = value["dtype"]
        dtype = dtype if isinstance(dtype, str) else next(iter(dtype))
        tensors.append([name, dtype, value["shape"], value["data_offsets"]])
    tensors.sort(key=lambda t: t[3])
    return {"tensors": tensors, "metadata": metadata}


# ── Framing ──

def framing(c):
    for n in range(8):
        c.refuse(1, "%d-bytes" % n, bytes(n), "a file of %d bytes has no header length" % n)
    c.refuse(1, "length-cut", frame(header(T))[:7], "a valid file cut inside the length")
    c.accept(1, "10-bytes", frame("{}"), "the shortest valid file: an empty object")
    c.accept(1, "empty-padded", frame("{}      "), "the official writer's empty file")

    huge = [("one-over", 100000001), ("2-to-31", 2 ** 31), ("2-to-32", 2 ** 32),
            ("2-to-53", 2 ** 53), ("2-to-63", 2 ** 63), ("wraps-to-7", 2 ** 64 - 1),
            ("wraps-to-zero", 2 ** 64 - 8), ("big-endian", 2 << 56),
            ("2-to-32-plus-2", 2 ** 32 + 2)]
    for slug, n in huge:
        c.refuse(2, slug, frame("{}", n=n), "header length %d is over 100,000,000" % n)

    short = [("by-one", frame(header(T), n=len(header(T)) + 9)),
             ("cap-exactly", frame("{}", n=100000000)),
             ("length-only", frame("", n=2)), ("two-of-three", frame("{}", n=3)),
             ("no-header", frame("", n=1))]
    for slug, data in short:
        c.refuse(3, slug, data, "the header's length passes the end of the file")
    c.accept(3, "ends-with-file", frame("{ }"), "the header's last byte is the file's last")
    c.accept(3, "n-odd", frame(header(entry("tt")), bytes(8)), "a length not divisible by 8",
             notes=["header_unpadded", "unaligned"])


def utf8(c):
    bad = [("ff", b"\xff"), ("fe", b"\xfe"), ("lone-continuation", b"\x80"),
           ("lone-continuation-bf", b"\xbf"), ("cut-2", b"\xc3"), ("cut-3", b"\xe2\x82"),
           ("cut-4", b"\xf0\x9f\x98"), ("overlong-slash", b"\xc0\xaf"),
           ("overlong-nul", b"\xc0\x80"), ("overlong-2", b"\xc1\xbf"),
           ("overlong-3", b"\xe0\x9f\xbf"), ("overlong-4", b"\xf0\x8f\xbf\xbf"),
           ("surrogate-low-end", b"\xed\xa0\x80"), ("surrogate-high-end", b"\xed\xbf\xbf"),
           ("surrogate-pair", b"\xed\xa0\xbd\xed\xb8\x80"),
           ("past-10ffff", b"\xf4\x90\x80\x80"), ("f5", b"\xf5\x80\x80\x80"),
           ("five-bytes", b"\xf8\x88\x80\x80\x80"), ("latin1", b"caf\xe9"),
           ("second-not-continuation", b"\xc3\x28"), ("third-not-continuation", b"\xe2\x82\x28"),
           ("fourth-not-continuation", b"\xf0\x9f\x98\x28"),
           ("f1-second", b"\xf1\x28\x98\x80"), ("f1-third", b"\xf1\x9f\x28\x80"),
           ("f1-fourth", b"\xf1\x9f\x98\x28"), ("e2-second", b"\xe2\x28\xa1"),
           ("e2-third", b"\xe2\x82\x41"), ("e0-second-9f", b"\xe0\x9f\x80"),
           ("f0-second-8f", b"\xf0\x8f\x80\x80")]
    for slug, raw in bad:
        text = header(T).encode().replace(b'"t"', b'"' + raw + b'"')
        c.refuse(4, slug, frame(text, bytes(8)), "a name that is not UTF-8")
    places = [("in-metadata-key", header(META + '{"%":"b"}', T)),
              ("in-metadata-value", header(META + '{"a":"%"}', T)),
              ("in-ignored-field", header(entry(more=',"x":"%"'))),
              ("in-field-name", header(entry(more=',"%":1'))),
              ("between-entries", header(T).replace('{"t"', '{%"t"')),
              ("before-object", "%" + header(T)), ("after-object", header(T) + "%")]
    for slug, text in places:
        text = text.encode().replace(b"%", b"\xff")
        c.refuse(4, slug, frame(text, bytes(8)), "a byte FF outside any name")
    for slug, raw in [("2", b"\xc3"), ("3", b"\xe2\x82"), ("4", b"\xf0\x9f\x98"),
                      ("lead", b"\xf0")]:
        c.refuse(4, "cut-at-end-" + slug, frame(header(T).encode() + raw),
                 "the header ends inside a character")
    good = [("7f", b"\x7f"), ("2-first", b"\xc2\xa0"), ("2-last", b"\xdf\xbf"),
            ("3-first", b"\xe0\xa0\x80"), ("before-surrogates", b"\xed\x9f\xbf"),
            ("after-surrogates", b"\xee\x80\x80"), ("3-last", b"\xef\xbf\xbf"),
            ("4-first", b"\xf0\x90\x80\x80"), ("4-last", b"\xf4\x8f\xbf\xbf"),
            ("bom-in-name", b"\xef\xbb\xbf"), ("line-separator", b"\xe2\x80\xa8"),
            ("bidi", b"\xe2\x80\xae"), ("emoji", b"\xf0\x9f\x98\x80")]
    for slug, raw in good:
        text = header(T).encode().replace(b'"t"', b'"' + raw + b'"')
        add = c.not_strict if slug == "7f" else c.accept
        add(30 if slug == "7f" else 4, slug, frame(text, bytes(8)),
            "DEL, a control character, in a name" if slug == "7f" else "a name in UTF-8")


# ── JSON ──

def grammar(c):
    whole = header(T)
    for n in range(len(whole)):
        c.refuse(5, "cut-%02d" % n, frame(whole[:n]),
                 "the header's text ends after %d of %d bytes" % (n, len(whole)))
    bad = [("bom", "\ufeff" + whole), ("comma-first", "{," + T + "}"),
           ("comma-last", "{" + T + ",}"), ("comma-twice", "{" + T + ",," + u8("b", 8, 8) + "}"),
           ("comma-missing", "{" + T + " " + u8("b", 8, 8) + "}"),
           ("colon-missing", whole.replace('"t":', '"t"')),
           ("colon-twice", whole.replace('"t":', '"t"::')),
           ("equals", whole.replace('"t":', '"t"=')),
           ("comment-block", whole.replace("{", "{/*x*/", 1)),
           ("comment-line", whole.replace("{", "{//x\n", 1)),
           ("comment-hash", whole.replace("{", "{#x\n", 1)),
           ("single-quotes", whole.replace('"', "'")), ("bare-name", whole.replace('"t"', "t")),
           ("number-name", whole.replace('"t"', "1")), ("null-name", whole.replace('"t"', "null")),
           ("bare-dtype", whole.replace('"I32"', "I32")),
           ("formfeed", whole.replace(":", ":\f", 1)),
           ("vertical-tab", whole.replace(":", ":\v", 1)),
           ("no-break-space", whole.replace(":", ":\u00a0", 1)),
           ("line-separator", whole.replace(":", ":\u2028", 1)),
           ("nul-between", whole.replace(":", ":\0", 1)),
           ("wrong-bracket", "{" + T + "]"), ("round-brackets", whole.replace("[2]", "(2)")),
           ("offsets-round-brackets", whole.replace("[0,8]", "(0,8)")),
           ("value-missing", '{"t":}'), ("key-only", '{"t"}'), ("close-only", "}"),
           ("nul-header", "\0" * 8), ("dot", ".")]
    for slug, text in bad:
        c.refuse(5, slug, frame(text, bytes(8)), "not JSON: " + slug)
    c.refuse(5, "only-space", frame("    "), "a header of spaces", strict="strict_first_byte")
    for slug, value in [("shape-comma-last", "[2,]"), ("shape-comma-first", "[,2]"),
                        ("shape-comma-missing", "[1 2]"),
                        ("shape-plus", "[+2]"), ("shape-dot-first", "[.2]"),
                        ("shape-hex", "[0x2]"), ("shape-underscore", "[1_0]"),
                        ("shape-nan", "[NaN]"), ("shape-infinity", "[Infinity]"),
                        ("shape-unit", "[2u]"), ("shape-comma-only", "[,]")]:
        c.refuse(5, slug, one(shape=value), "not JSON: %s as a shape" % value)
    for slug, value in [("offsets-comma-last", "[0,8,]"), ("offsets-comma-first", "[,0,8]")]:
        c.refuse(5, slug, one(offsets=value), "not JSON: %s as offsets" % value)
    c.refuse(5, "semicolon-between", frame(header(u8("a", 0, 4))[:-1] + ";" + u8("b", 4, 8) + "}",
                                           bytes(8)), "a semicolon between entries")
    for slug, end in [("high", "\\ud800"), ("high-backslash", "\\ud800\\"), ("u", "\\u"),
                      ("u-0", "\\u0"), ("high-u-3", "\\ud800\\udc0")]:
        c.refuse(6, "cut-after-" + slug, frame('{"t' + end), "the header ends inside an escape")
    c.refuse(5, "cut-after-backslash", frame('{"t\\', bytes(8)), "the header ends with a backslash")
    # A semicolon for each comma and colon there can be: a reader that skips a byte there
    # without looking would read on.
    for slug, text in [("after-name", whole.replace('"t":', '"t";')),
                       ("after-field-name", whole.replace('"dtype":', '"dtype";')),
                       ("between-fields", whole.replace('"I32",', '"I32";')),
                       ("in-shape", whole.replace("[2]", "[2;1]")),
                       ("in-offsets", whole.replace("[0,8]", "[0;8]")),
                       ("in-pair", header(META + '{"a";"b"}', T)),
                       ("between-pairs", header(META + '{"a":"b";"c":"d"}', T)),
                       ("field-half-quoted", whole.replace('"dtype"', 'dtype"')),
                       ("metadata-half-quoted", header(META + '{a":"b"}', T)),
                       ("field-is-number", whole.replace('"dtype":', '1,"dtype":')),
                       ("metadata-key-is-number", header(META + '{1}', T)),
                       ("name-half-quoted", whole.replace('"t"', 't"'))]:
        c.refuse(5, "semicolon-" + slug, frame(text, bytes(8)), "not JSON: " + slug)
    for slug, value in [("in-pair", '{"a";1}'), ("between-pairs", '{"a":1;"b":2}'),
                        ("in-array", "[1;2]"), ("deep-in-pair", '[[{"a";1}]]'),
                        ("deep-in-array", '{"a":[[1;2]]}'), ("colon-in-array", '["a":1]'),
                        ("array-closed-as-object", "[1}"), ("object-closed-as-array", '{"a":1]'),
                        ("value-missing", '{"a":}'), ("no-value-in-array", "[,1]"),
                        ("deep-comma-last", '[{"a":[1,]}]'), ("deep-pair-comma-last", '[{"a":1,}]'),
                        ("unclosed", '[{"a":[1]')]:
        c.refuse_field(5, "field-" + slug, one(more=',"x":' + value),
                       "not JSON in an ignored field: " + value)
    c.refuse_field(5, "field-key-half-quoted", one(more=',"x":{a":1}'),
                   "a key without its first quote, in an ignored field")
    for word in ("True", "TRUE", "tru", "truex", "trux", "falsy", "nulL",
                 "False", "fals", "nul", "Null", "nulll", "nil",
                 "None", "undefined", "NaN", "Infinity", "'x'", "[1,]", '{"a":1,}', '{"a"}',
                 "[1 2]", "{1:2}"):
        slug = "field-" + "".join("%02x" % ord(ch) if not ch.isalnum() else
                                  ("_" + ch.lower() if ch.isupper() else ch) for ch in word)
        c.refuse_field(5, slug, one(more=',"x":' + word),
                       "not JSON in an ignored field: " + word)

    for i, space in enumerate((" ", "\t", "\n", "\r", "  \r\n\t ")):
        text = whole
        for mark in '{}[]:,"':
            text = text.replace(mark, "\1" + mark) if mark in "}]:," else text
        text = text.replace(":", ":\1").replace(",", ",\1").replace("{", "{\1").replace("[", "[\1")
        c.accept(5, "space-inside-%d" % i, frame(text.replace("\1", space), bytes(8)),
                 "white space between all tokens: %r" % space)
    c.accept(5, "field-order", frame('{"t":{"data_offsets":[0,8],"shape":[2],"dtype":"I32"}}',
                                     bytes(8)), "fields in another order")
    c.accept(5, "two", frame(header(u8("a", 0, 4), u8("b", 4, 8)), bytes(8)), "two tensors")

    rest = [("letter", "x"), ("nul", "\0"), ("nuls", "\0" * 6), ("object", "{}"), ("comma", ","),
            ("brace", "}"), ("formfeed", "\f"), ("comment", "//"), ("second-header", whole),
            ("space-then-letter", "   x"), ("quote", '"'), ("bom", "\ufeff"),
            ("no-break-space", "\u00a0"), ("emoji", "\U0001f600"), ("hangul", "\uac00")]
    for slug, tail in rest:
        c.refuse(9, slug, frame(whole + tail, bytes(8)), "bytes after the object: %r" % tail)


def strings(c):
    for ch in range(0x20):
        c.refuse(6, "control-%02x" % ch, frame(header(entry("a%cb" % ch)), bytes(8)),
                 "a raw control byte %02X in a name" % ch)
    for ch in "axv'0UNeE1. ":
        c.refuse(6, "escape-%02x" % ord(ch), frame(header(entry("a\\%sb" % ch)), bytes(8)),
                 "an escape JSON does not have: \\%s" % ch)
    bad = [("u-0-digits", "\\u"), ("u-3-digits", "\\u004"), ("u-bad-digit", "\\u00g0"),
           ("u-minus", "\\u-001"), ("u-space", "\\u 041"), ("u-plus", "\\u+041"),
           ("u-braces", "\\u{41}"), ("high-alone", "\\ud800"),
           ("low-alone", "\\udc00"), ("low-last-alone", "\\udfff"), ("high-last-alone", "\\udbff"),
           ("high-high", "\\ud800\\ud800"), ("low-high", "\\udc00\\ud800"),
           ("high-then-letter", "\\ud800a"), ("high-then-other-escape", "\\ud800\\n"),
           ("high-then-bmp", "\\ud800\\u0041"),
           ("low-low", "\\udc00\\udc00"), ("high-then-xu", "\\ud800xudc00"),
           ("high-then-backslash-x", "\\ud800\\xdc00"), ("high-then-quoted-u", "\\ud800\\\"udc00"),
           ("high-then-cut", "\\ud800\\u")]
    for slug, text in bad:
        c.refuse(6, slug, frame(header(entry(text)), bytes(8)), "a bad escape in a name")
        c.refuse_field(6, "field-" + slug, one(more=',"x":"%s"' % text),
                       "a bad escape in an ignored field")
    for slug, text in [("escape", "\\x"), ("control", "\1"), ("high-alone", "\\ud800")]:
        c.refuse(6, "key-" + slug, frame(header(META + '{"%s":"b"}' % text)),
                 "a bad string as metadata key")
        c.refuse(6, "value-" + slug, frame(header(META + '{"a":"%s"}' % text)),
                 "a bad string as metadata value")
        c.refuse(6, "dtype-" + slug, one(dtype='"I32%s"' % text), "a bad string as dtype")
        c.refuse(6, "ignored-name-" + slug, one(more=',"%s":1' % text),
                 "a bad string as an ignored field's name")
        c.refuse_field(6, "nested-" + slug, one(more=',"x":[{"%s":1}]' % text),
                       "a bad string deep in an ignored field")
    good = [("quote", '\\"'), ("backslash", "\\\\"), ("slash", "\\/"), ("unicode", "\\u0041"),
            ("hex-case", "\\u00e9\\u00E9"), ("pair", "\\ud83d\\ude00"),
            ("pair-first", "\\ud800\\udc00"), ("pair-last", "\\udbff\\udfff"),
            ("before-surrogates", "\\ud7ff"), ("after-surrogates", "\\ue000"),
            ("ffff", "\\uffff"), ("backslash-before-u", "\\\\ud800"),
            ("space-20", "\\u0020"), ("raw-slash", "a/b.c-d")]
    for slug, text in good:
        c.accept(6, slug, frame(header(entry(text)), bytes(8)), "a legal string as name")
    c.accept(6, "empty-name", frame(header(entry("")), bytes(8)), "the empty name")
    c.accept(6, "name-256", frame(header(entry("n" * 256)), bytes(8)), "a name of 256 bytes")
    c.accept(6, "name-5000", frame(header(entry("n" * 5000)), bytes(8)), "a name of 5,000 bytes")
    c.accept(6, "escaped-fields", frame('{"t":{"\\u0064type":"\\u004932","sh\\u0061pe":[2],'
                                        '"data\\u005foffsets":[0,8]}}', bytes(8)),
             "field names and dtype spelled with escapes")
    c.accept(6, "escaped-metadata", frame('{"\\u005f_metadata__":{"\\u0061":"\\n\\u0000"},%s}' % T,
                                          bytes(8)), "__metadata__ spelled with an escape")


# Spellings that the JSON layer refuses, wherever they stand.
NOT_NUMBERS = [
    ("leading-zero", "02"), ("two-zeros", "00"), ("minus-leading-zero", "-02"), ("minus", "-"),
    ("dot-last", "2."), ("dot-then-exponent", "2.e1"), ("exponent-empty", "2e"),
    ("exponent-plus-only", "2e+"), ("exponent-minus-only", "2E-"), ("minus-infinity", "-Infinity"),
    ("exponent-fraction", "2e.5"), ("1e400", "1e400"), ("minus-1e400", "-1e400"),
    ("1e309", "1e309"), ("10e308", "10e308"), ("digits-310", "1" + "0" * 309),
    ("max-plus-1", "1.7976931348623158e308"), ("exponent-2-to-31", "1e2147483648"),
    ("exponent-2-to-64", "1e18446744073709551616"), ("1.5e999", "1.5e999"),
    ("1e31-e279", "1" + "0" * 30 + "e279"), ("exponent-of-40-digits", "1e" + "7" * 40),
]
# Legal numbers that are no unsigned integers, and legal anywhere else.
NOT_UNSIGNED = [
    ("fraction", "2.0"), ("exponent", "2e0"), ("exponent-plus", "2E+0"), ("negative", "-2"),
    ("minus-zero", "-0"), ("minus-zero-fraction", "-0.0"), ("2-to-64", str(2 ** 64)),
    ("2-to-64-and-more", str(2 ** 64 * 10)), ("digits-309", "1" + "0" * 308),
    ("max", "1.7976931348623157e308"), ("1e-400", "1e-400"), ("0e999", "0e999"),
    ("minus-2-to-63", str(-2 ** 63)), ("minus-2-to-63-minus-1", str(-2 ** 63 - 1)),
    ("tiny-exponent", "1e-99999999999"), ("zero-big-exponent", "0.0e99999999999"),
    ("0.001e311", "0.001e311"), ("1e31-e277", "1" + "0" * 30 + "e277"),
    ("exponent-of-40-digits-minus", "1e-" + "7" * 40),
    ("zero-exponent-of-40-digits", "0e" + "7" * 40),
    ("fraction-of-400-digits", "0." + "3" * 400), ("2-to-64-point-5", str(2 ** 64) + ".5"),
]


def numbers(c):
    for slug, text in [("0", "0"), ("max", str(2 ** 64 - 1))]:
        c.accept(7, slug, one(b"", shape="[%s,0]" % text, offsets="[0,0]"),
                 "an unsigned integer: " + text)
    for slug, text in NOT_NUMBERS:
        c.refuse(7, "shape-" + slug, one(shape="[%s]" % text), "no JSON number, in a shape")
        c.refuse(7, "offsets-" + slug, one(offsets="[0,%s]" % text), "no JSON number, in offsets")
        c.refuse_field(7, "field-" + slug, one(more=',"x":[%s]' % text),
                       "no JSON number, in an ignored field")
    for slug, text in NOT_UNSIGNED:
        c.refuse(16, slug, one(shape="[%s]" % text), "no unsigned integer, in a shape")
        c.refuse(17, "end-" + slug, one(offsets="[0,%s]" % text), "no unsigned integer as end")
        c.refuse(17, "begin-" + slug, one(offsets="[%s,8]" % text), "no unsigned integer as begin")
        c.not_strict(29, "number-" + slug, one(more=',"x":%s' % text),
                     "a legal number in an ignored field", notes=["unknown_field"])


def digits(c):
    """Numbers of each length, at the end of the header and well before it."""
    for pad in (0, 24):
        for n in range(1, 20):
            value = int("1234567890123456789"[:n])
            slug = "digits-%d%s" % (n, "-padded" if pad else "")
            c.accept(16, slug, frame(header(entry(shape="[0,%d]" % value, offsets="[0,0]")) +
                                     " " * pad), "a dimension of %d digits" % n)
            if n < 19:
                text = header(entry(dtype='"I16"', shape="[%d]" % value,
                                    offsets="[0,%d]" % (2 * value)))
                c.refuse(38, slug, frame(text + " " * pad), "an end of about %d digits" % n)


def depth(c):
    # The object and the entry are two levels; an ignored field has 125 more.
    for slug, left, right in [("arrays", "[", "]"), ("objects", '{"a":', "}")]:
        core = "" if left == "[" else "1"
        c.add(8, "depth-127-" + slug, one(more=',"x":' + left * 125 + core + right * 125),
              "127 levels of nesting", (None, None, "strict_field"))
        c.refuse_field(8, "depth-128-" + slug,
                       one(more=',"x":' + left * 126 + core + right * 126),
                       "128 levels of nesting")
    c.refuse_field(8, "depth-1000-unclosed", one(more=',"x":' + "[" * 1000),
                   "too deep, never closed")
    c.refuse(8, "top-level-arrays", frame("[" * 128 + "]" * 128),
             "128 levels of nesting, not an object either",
             either=["json_depth", "header_not_object"])


# ── Shape of the header ──

def entries(c):
    for slug, text in [("null", "null"), ("number", "1"), ("negative", "-1"), ("fraction", "1.5"),
                       ("string", '"a"'), ("true", "true"), ("array", "[]"),
                       ("array-of-object", "[{}]"), ("spaced-array", " [1] ")]:
        c.refuse(10, slug, frame(text), "the header is %s" % text.strip(),
                 strict="strict_first_byte" if text[0] == " " else None)
    c.accept(10, "object", frame(header(T), bytes(8)), "the header is an object")
    c.accept(10, "object-alone", frame("{ }"), "the header is an empty object")
    c.accept(11, "object", frame(header(u8("foo", 0, 0), T), bytes(8)), "entries that are objects")
    c.accept(12, "all-three", one(), "dtype, shape and data_offsets")
    c.accept(13, "each-once", frame('{"t":{"shape":[2],"data_offsets":[0,8],"dtype":"I32"}}',
                                    bytes(8)), "each field once, in another order")
    c.accept(14, "string", one(dtype='"F32"'), "dtype is a string")
    for slug, text in [("null", "null"), ("number", "1"), ("string", '"x"'), ("true", "true"),
                       ("false", "false"), ("fraction", "1.5")]:
        c.refuse(11, slug, frame('{"t":%s}' % text), "an entry that is %s" % text)
        c.refuse(11, slug + "-beside", frame('{"foo":%s,%s}' % (text, T), bytes(8)),
                 "an entry that is %s beside a tensor" % text)
    c.refuse(11, "overwritten", frame('{"t":1,%s}' % T, bytes(8)),
             "the first of two equal names is a number")
    for slug, text in [("0", "[]"), ("1", '["I32"]'), ("2", '["I32",[2]]')]:
        c.refuse(12, "array-of-" + slug, frame('{"t":%s}' % text, bytes(8)),
                 "an entry as an array of %s" % slug, default="entry_not_object")
    c.refuse(11, "array-of-4", frame('{"t":["I32",[2],[0,8],1]}', bytes(8)),
             "an entry as an array of 4", default="entry_not_object")
    c.compat_only(24, "array", frame('{"t":["I32",[2],[0,8]]}', bytes(8)), "an entry as an array")
    c.compat_only(24, "array-beside", frame('{%s,"b":["U8",[0],[8,8]]}' % T, bytes(8)),
                  "an entry as an array beside an object")
    c.compat_only(24, "array-spaced", frame('{"t": [ "I32" , [ 2 ] , [ 0 , 8 ] ] }', bytes(8)),
                  "an entry as an array, with white space")
    c.refuse(14, "array-dtype-number", frame('{"t":[1,[2],[0,8]]}', bytes(8)),
             "an entry as an array, dtype a number", default="entry_not_object")
    c.refuse(16, "array-shape-number", frame('{"t":["I32",2,[0,8]]}', bytes(8)),
             "an entry as an array, shape a number", default="entry_not_object")
    c.refuse(16, "array-shape-number-last", frame('{"t":["I32",2]}', bytes(8)),
             "an entry as an array that ends with a number as shape", default="entry_not_object")
    c.refuse(17, "array-offsets-spread", frame('{"t":["I32",[2],8,0,8]}', bytes(8)),
             "an entry as an array, offsets not in an array", default="entry_not_object")
    c.refuse(17, "array-offsets-number", frame('{"t":["I32",[2],8]}', bytes(8)),
             "an entry as an array, offsets a number", default="entry_not_object")

    parts = ['"dtype":"I32"', '"shape":[2]', '"data_offsets":[0,8]']
    for i, name in enumerate(("dtype", "shape", "offsets")):
        rest = parts[:i] + parts[i + 1:]
        c.refuse(12, "no-" + name, frame('{"t":{%s}}' % ",".join(rest), bytes(8)), "no " + name)
        c.refuse(12, "only-" + name, frame('{"t":{%s}}' % parts[i], bytes(8)), "only " + name)
        c.refuse(13, name, frame('{"t":{%s}}' % ",".join(parts + parts[i:i + 1]), bytes(8)),
                 name + " given twice")
        twice = parts[:i] + [parts[i], parts[i]] + parts[i + 1:]
        c.refuse(13, name + "-adjacent", frame('{"t":{%s}}' % ",".join(twice), bytes(8)),
                 name + " given twice in a row")
    c.refuse(12, "empty", frame('{"t":{}}'), "an entry without any field")
    c.refuse_field(12, "case", frame(header(T).replace("dtype", "DType"), bytes(8)),
                   "field names are case-sensitive")
    c.refuse_field(12, "space-in-name", frame(header(T).replace('"dtype"', '"dtype "'), bytes(8)),
                   "a field's name with a space")
    c.refuse_field(12, "tensors-nested", frame('{"model":%s}' % header(T), bytes(8)),
                   "tensors one level too deep")
    c.refuse(13, "escaped", frame('{"t":{"dtype":"I32","\\u0064type":"I32","shape":[2],'
                                  '"data_offsets":[0,8]}}', bytes(8)),
             "dtype twice, once spelled with an escape")
    for slug, more in [("deep", ',"x":[{"a":[1,{"b":[]}],"c":{}},[[]],{}]'),
                       ("spaced", ',"x": [ 1 , { "a" : [ ] , "b" : { } } , true ] '),
                       ("all-kinds", ',"x":["\\u00e9",-1.5e3,0,true,false,null,{"":""},[]]'),
                       ("null", ',"x":null'), ("string", ',"x":"y"'), ("object", ',"x":{"a":[]}'),
                       ("twice", ',"x":1,"x":2'), ("empty-name", ',"":1'), ("true", ',"x":true'),
                       ("nested-duplicates", ',"x":{"a":1,"a":2}'), ("escape", ',"x":"\\u0000"'),
                       ("nested-like-a-tensor", "," + T), ("dtype-inside", ',"x":{"dtype":1}')]:
        c.not_strict(29, slug, one(more=more), "an unknown field", notes=["unknown_field"])
    c.not_strict(29, "offsets-beside", one(more=',"offsets":[1,9]'),
                 "the field of the first layout beside today's, which counts")
    c.not_strict(29, "offsets-before", frame('{"t":{"offsets":"x","dtype":"I32","shape":[2],'
                                             '"data_offsets":[0,8]}}', bytes(8)),
                 "the field of the first layout, with any value, before today's")
    c.not_strict(29, "first", frame('{"t":{"x":1,"dtype":"I32","shape":[2],"data_offsets":[0,8]}}',
                                    bytes(8)), "an unknown field before the others")
    c.not_strict(29, "prefix-of-dtype", one(more=',"dtyp":1,"dtypes":2'),
                 "unknown fields that resemble dtype")


def dtypes(c):
    for name, bits in DTYPES:
        low, quoted = name.lower().replace("_", "-"), '"%s"' % name
        count = 8 // bits * 1 if bits == 4 else 4 if bits == 6 else 1
        size = count * bits // 8
        spelled = {"dtype": quoted, "shape": "[%d]" % count}
        c.accept(15, "dtype-" + low, one(bytes(size), offsets="[0,%d]" % size, **spelled),
                 "%d of %s are %d bytes" % (count, name, size))
        c.accept(37, "empty-" + low, one(b"", dtype=quoted, shape="[0]", offsets="[0,0]"),
                 "no element of " + name)
        c.refuse(37, "over-" + low, one(bytes(size + 1), offsets="[0,%d]" % (size + 1), **spelled),
                 "one byte more than the shape of %s" % name)
        c.refuse(37, "under-" + low, one(bytes(size - 1), offsets="[0,%d]" % (size - 1), **spelled),
                 "one byte less than the shape of %s" % name)
        if bits >= 8:
            c.accept(37, "scalar-" + low, one(bytes(size), dtype=quoted, shape="[]",
                                              offsets="[0,%d]" % size), "a scalar of " + name)
        top = (2 ** 64 - 1) // bits
        c.refuse(35, "bits-" + low, one(b"", dtype=quoted, shape="[%d]" % (top + 1),
                                        offsets="[0,0]"),
                 "%d of %s pass 2^64 - 1 bits" % (top + 1, name))
    for name in ("i32", "I32 ", " I32", "", "I128", "F128", "C128", "U1", "I4", "U4", "TF32",
                 "E8M0", "F8", "F8_E3M4", "F6", "BOOLEAN", "Bool", "f16", "float16x", "I3",
                 "I320", "I32\\u0000", "F8_E4M3FN", "F8_E5M2FNU", "B", "\\u00ce32"):
        slug = "".join(ch if ch.isalnum() else "%02x" % ord(ch) for ch in name) or "empty"
        slug = "".join("_" + ch.lower() if ch.isupper() else ch for ch in slug)
        c.refuse(15, slug, one(dtype='"%s"' % name), "no dtype: %r" % name)
    c.refuse(15, "long-128", one(dtype='"%s"' % ("F" * 128)), "a dtype of 128 bytes")
    c.refuse(15, "long-9000", one(dtype='"%s"' % ("F" * 9000)), "a dtype of 9,000 bytes")
    c.not_strict(29, "name-9000", one(more=',"%s":1' % ("dtype" * 1800)),
                 "an unknown field whose name has 9,000 bytes")
    for slug, text in [("number", "15"), ("null", "null"), ("list", '["I32"]'), ("true", "true"),
                       ("object-empty", "{}"), ("object-two", '{"I32":null,"F32":null}'),
                       ("object-twice", '{"I32":null,"I32":null}'),
                       ("object-of-object", '{"I32":{}}'), ("object-of-list", '{"I32":[]}'),
                       ("object-of-number", '{"I32":0}'), ("object-of-false", '{"I32":false}'),
                       ("fraction", "1.5")]:
        default = "dtype_not_string" if text.startswith("{") else None
        c.refuse(14, slug, one(dtype=text), "dtype is " + text, default=default,
                 either=["dtype_type", "dtype_not_string"])
    c.refuse(15, "object-unknown", one(dtype='{"I33":null}'), "an unknown dtype in an object",
             default="dtype_not_string")
    c.compat_only(25, "object", one(dtype='{"I32":null}'), "dtype as an object of null")
    c.compat_only(25, "object-spaced", one(dtype='{ "I32" : null }'), "the same, with spaces")
    c.compat_only(25, "object-escaped", one(dtype='{"\\u004932":null}'), "the same, escaped")


def shapes(c):
    for slug, text in [("null", "null"), ("object", "{}"), ("number", "2"), ("string", '"2"'),
                       ("true", "true"), ("nested", "[[2]]"), ("nested-empty", "[[]]"),
                       ("of-null", "[null]"), ("of-true", "[true]"), ("of-string", '["2"]'),
                       ("of-object", "[{}]"), ("second-negative", "[2,-1]"), ("is-fraction", "1.5"),
                       ("unclosed", "[2")]:
        c.refuse(16, slug, one(shape=text), "shape is " + text)
    for slug, text in [("null", "null"), ("object", '{"0":0,"1":8}'), ("number", "8"),
                       ("string", '"0,8"'), ("none", "[]"), ("one", "[8]"), ("three", "[0,8,9]"),
                       ("nested", "[[0,8]]"), ("of-null", "[0,null]"), ("of-string", '[0,"8"]'),
                       ("of-true", "[0,true]"), ("first-null", "[null,8]"), ("of-list", "[[0],8]"),
                       ("of-object", "[0,{}]"), ("true", "true"), ("four", "[0,8,0,8]")]:
        c.refuse(17, slug, one(offsets=text), "data_offsets is " + text)
    c.accept(16, "scalar", one(bytes(4), shape="[]", offsets="[0,4]"), "no dimension: a scalar")
    c.accept(16, "zero", one(b"", shape="[0]", offsets="[0,0]"), "a dimension of 0")
    c.accept(16, "ones", one(bytes(4), shape="[1,1,1,1,1]", offsets="[0,4]"), "dimensions of 1")
    c.accept(16, "max", one(b"", shape="[0,%d]" % (2 ** 64 - 1), offsets="[0,0]"),
             "a dimension of 2^64 - 1 after a 0")
    c.accept(16, "rank-8", one(bytes(4 * 256), shape="[2,2,2,2,2,2,2,2]", offsets="[0,1024]"),
             "eight dimensions")
    c.accept(17, "zero-zero", one(b"", shape="[5,0]", offsets="[0,0]"), "no bytes at 0")
    for rank in (63, 64):
        c.accept(26, "rank-%d" % rank, one(bytes(4), shape="[" + "1," * (rank - 1) + "1]",
                                           offsets="[0,4]"), "%d dimensions" % rank)
    for rank in (65, 66, 1000):
        c.compat_only(26, "rank-%d" % rank, one(bytes(4), shape="[" + "1," * (rank - 1) + "1]",
                                                offsets="[0,4]"), "%d dimensions" % rank)


def metadata(c):
    for slug, text in [("list", '["a"]'), ("list-empty", "[]"), ("string", '"a"'), ("number", "1"),
                       ("true", "true"), ("false", "false"), ("fraction", "0.5")]:
        c.refuse(18, slug, frame(header(META + text)), "__metadata__ is " + text)
    for slug, text in [("number", "1"), ("null", "null"), ("true", "true"), ("object", "{}"),
                       ("object-of-string", '{"b":"c"}'), ("list", "[]"), ("false", "false"),
                       ("list-of-string", '["b"]'), ("fraction", "1.5"), ("negative", "-1")]:
        c.refuse(19, slug, frame(header(META + '{"a":%s}' % text)), "a value is " + text)
        c.refuse(19, "second-" + slug, frame(header(META + '{"z":"","a":%s}' % text)),
                 "a later value is " + text)
    c.refuse(19, "like-a-tensor", frame(header(T.replace('"t"', '"__metadata__"')), bytes(8)),
             "a tensor called __metadata__")
    for slug, a, b in [("same", '{"a":"b"}', '{"a":"b"}'), ("other", '{"a":"b"}', '{"c":"d"}'),
                       ("empty", "{}", "{}"), ("null-first", "null", '{"a":"b"}'),
                       ("null-last", '{"a":"b"}', "null"), ("nulls", "null", "null")]:
        c.refuse(20, slug, frame(header(META + a, T, META + b), bytes(8)),
                 "__metadata__ twice: %s, %s" % (a, b),
                 strict="strict_metadata" if a == "null" else None)
    c.refuse(20, "escaped", frame(header(META + "{}", '"__metadata_\\u005f":{}')),
             "__metadata__ twice, once with an escape")
    for slug, text in [("empty", "{}"), ("one", '{"a":"b"}'), ("empty-key", '{"":""}'),
                       ("three", '{"c":"1","a":"2","b":"3"}'), ("escapes", '{"\\"":"\\n\\u0000"}'),
                       ("json-inside", '{"x":"{\\"y\\":[1]}"}'),
                       ("unicode", '{"\u00e9":"\u4e2d"}')]:
        c.accept(18, slug, frame(header(META + text)), "__metadata__ is " + text)
    c.accept(18, "last", frame(header(T, META + '{"a":"b"}'), bytes(8)), "__metadata__ comes last")
    c.accept(18, "between", frame(header(u8("a", 0, 4), META + '{"a":"b"}', u8("b", 4, 8)),
                                  bytes(8)), "__metadata__ between tensors")
    c.accept(18, "name-case", frame(header(entry("__METADATA__")), bytes(8)),
             "a tensor called __METADATA__")
    c.accept(18, "name-longer", frame(header(entry("__metadata__x")), bytes(8)),
             "a tensor called __metadata__x")
    c.accept(19, "value-8000", frame(header(META + '{"a":"%s"}' % ("v" * 8000))),
             "a value of 8,000 bytes")
    c.not_strict(31, "null", frame(header(META + "null")), "__metadata__ is null",
                 notes=["metadata_null"])
    c.not_strict(31, "null-beside", frame(header(META + "null", T), bytes(8)),
                 "__metadata__ is null beside a tensor")
    for slug, text in [("same", '{"a":"b","a":"b"}'), ("other", '{"a":"b","a":"c"}'),
                       ("three", '{"a":"b","x":"","a":"c","a":"d"}'),
                       ("escaped", '{"a":"b","\\u0061":"c"}'), ("empty-key", '{"":"1","":"2"}')]:
        c.compat_only(23, slug, frame(header(META + text, T), bytes(8)),
                      "a key twice in __metadata__: the last counts")
    c.accept(20, "once", frame(header(META + "{}", T), bytes(8)), "__metadata__ once")
    c.accept(31, "object", frame(header(META + "{}")), "__metadata__ is an object without keys")
    c.accept(23, "case", frame(header(META + '{"a":"b","A":"b","a ":"b"}')), "keys that differ")


def names(c):
    same = [("identical", T, T, bytes(8)),
            ("last-valid", entry(dtype='"F64"', shape="[9]", offsets="[5,8]"), T, bytes(8)),
            ("other-shape", entry(shape="[1,2]"), T, bytes(8)),
            ("escaped", entry("t"), entry("\\u0074"), bytes(8)),
            ("empty-name", entry(""), entry(""), bytes(8)),
            ("half-empty", u8("t", 0, 0), u8("t", 0, 8), bytes(8))]
    for slug, a, b, data in same:
        c.compat_only(22, slug, frame(header(a, b), data), "a name twice: the last counts")
    c.compat_only(22, "three", frame(header(T, T, T), bytes(8)), "a name three times")
    c.compat_only(22, "apart", frame(header(u8("a", 0, 4), u8("b", 4, 8), u8("a", 0, 4)), bytes(8)),
                  "a name twice, another between")
    c.refuse(33, "duplicate-last", frame(header(T, entry(dtype='"F64"', shape="[9]",
                                                         offsets="[5,77]")), bytes(8)),
             "a name twice, the last one not at 0", default="tensor_duplicate")
    c.accept(22, "case", frame(header(u8("a", 0, 4), u8("A", 4, 8)), bytes(8)), "names that differ")
    c.accept(22, "nul-cut", frame(header(u8("a", 0, 4), u8("a.", 4, 8)), bytes(8)),
             "names one of which begins with the other")
    c.not_strict(30, "nul-cut", frame(header(u8("a", 0, 4), u8("a\\u0000", 4, 8)), bytes(8)),
                 "names equal up to a NUL", notes=["name_control"])
    for ch in ("\\u0000", "\\b", "\\f", "\\n", "\\r", "\\t", "\\u001b", "\\u001F", "\\u0001",
               "\\u007f", "\\u0080", "\\u009f"):
        c.not_strict(30, "escape-" + ch[1:], frame(header(entry("a%sb" % ch)), bytes(8)),
                     "a control character in a name", notes=["name_control"])
    c.accept(30, "after-c1", frame(header(entry("a\\u00a0b")), bytes(8)),
             "the first character past the control characters C1")
    c.accept(30, "space", frame(header(entry("a b")), bytes(8)), "a space in a name")
    c.accept(30, "metadata-control", frame(header(META + '{"a":"\\n\\t"}')),
             "control characters in a metadata value")


def edges(c):
    for slug, lead in [("space", " "), ("newline", "\n"), ("tab", "\t"), ("return", "\r"),
                       ("mixed", " \n\t\r ")]:
        c.not_strict(27, slug, frame(lead + header(T), bytes(8)), "white space before the object")
    for slug, tail in [("newline", "\n"), ("tab", "\t"), ("return", "\r"), ("mixed", "  \n "),
                       ("spaces-then-tab", "       \t")]:
        c.not_strict(28, slug, frame(header(T) + tail, bytes(8)),
                     "white space other than spaces after the object")
    c.accept(28, "one-space", frame(header(T) + " ", bytes(8)), "one space after the object")
    c.accept(28, "to-8", frame(header(T) + " " * (-len(header(T)) % 8), bytes(8)),
             "spaces up to a multiple of 8", notes=[])
    c.accept(28, "to-64", frame(header(T) + " " * ((56 - len(header(T))) % 64), bytes(8)),
             "spaces so that the data begins at a multiple of 64")
    c.accept(28, "to-4096", frame(header(T) + " " * ((4088 - len(header(T))) % 4096), bytes(8)),
             "spaces so that the data begins at 4096")
    c.accept(9, "spaces", frame(header(T) + " " * 40, bytes(8)), "spaces after the object")
    c.not_strict(28, "all-four", frame(header(T) + " \t\n\r", bytes(8)),
                 "each kind of white space after the object")
    c.accept(27, "brace-first", frame(header(T), bytes(8)), "the object begins the header")


# ── Layout of the data ──

def offsets(c):
    c.accept(32, "empty", frame(header(u8("t", 0, 0))), "begin and end are equal")
    c.accept(32, "one-byte", frame(header(u8("t", 0, 1)), bytes(1)), "end is begin + 1")
    c.accept(24, "object", frame(header(T), bytes(8)), "the same tensor as an object")
    c.accept(25, "string", one(), "the same dtype as a string")
    c.accept(29, "none", one(), "the three fields and no other")
    c.accept(2, "2-bytes", frame("{}"), "a header of two bytes")
    huge = 2 ** 64 - 1
    for slug, a, b in [("4-0", 4, 0), ("8-0", 8, 0), ("max-0", huge, 0), ("1-0", 1, 0)]:
        c.refuse(32, slug, frame(header(entry(offsets="[%d,%d]" % (a, b))), bytes(8)),
                 "begin %d, end %d" % (a, b), either=["offsets_reversed", "offsets_gap"])
    c.refuse(32, "second", frame(header(u8("a", 0, 8), entry("b", '"U8"', "[4]", "[8,4]")),
                                 bytes(8)), "the second tensor ends before it begins")
    c.refuse(32, "second-empty", frame(header(u8("a", 0, 8), entry("b", '"U8"', "[0]", "[8,7]")),
                                       bytes(8)), "an empty tensor ends one before it begins")
    c.refuse(32, "negative-size", frame(header(u8("a", 0, 8),
                                               entry("b", '"U8"', "[%d]" % huge, "[8,7]")),
                                        bytes(8)), "end - begin wraps to the shape's size",
             either=["offsets_reversed", "size_overflow"])
    gaps = [("start", [u8("t", 1, 9)], 9), ("start-two", [u8("a", 2, 4), u8("b", 4, 8)], 8),
            ("middle", [u8("a", 0, 4), u8("b", 6, 8)], 8),
            ("one-byte", [u8("a", 0, 4), u8("b", 5, 8)], 8),
            ("aligned", [u8("a", 0, 4), u8("b", 8, 16)], 16),
            ("empty-past-end", [u8("a", 0, 8), u8("b", 9, 9)], 8),
            ("empty-alone", [u8("a", 8, 8)], 8), ("empty-alone-one", [u8("a", 1, 1)], 1),
            ("order-reversed", [u8("b", 6, 8), u8("a", 0, 4)], 8),
            ("far", [u8("a", 0, 4), u8("b", huge - 4, huge)], 8),
            ("third", [u8("a", 0, 2), u8("b", 2, 4), u8("c", 6, 8)], 8)]
    for slug, tensors, size in gaps:
        c.refuse(33, slug, frame(header(*tensors), bytes(size)), "a hole in the data")
    overlaps = [("same", [u8("a", 0, 4), u8("b", 0, 4)], 4),
                ("one-byte", [u8("a", 0, 4), u8("b", 3, 8)], 8),
                ("inside", [u8("a", 0, 8), u8("b", 2, 4)], 8),
                ("empty-inside", [u8("a", 0, 8), u8("b", 4, 4)], 8),
                ("same-begin", [u8("a", 0, 4), u8("b", 0, 8)], 8),
                ("third", [u8("a", 0, 4), u8("b", 4, 8), u8("c", 4, 8)], 8),
                ("third-early", [u8("a", 0, 4), u8("b", 4, 8), u8("c", 2, 3)], 8),
                ("order-reversed", [u8("b", 3, 8), u8("a", 0, 4)], 8)]
    for slug, tensors, size in overlaps:
        c.refuse(34, slug, frame(header(*tensors), bytes(size)), "two tensors share bytes")
    fine = [("two", [u8("a", 0, 4), u8("b", 4, 8)], 8),
            ("header-reversed", [u8("a", 4, 8), u8("b", 0, 4)], 8),
            ("shuffled", [u8("c", 5, 8), u8("a", 1, 2), u8("z", 0, 1), u8("b", 2, 5)], 8),
            ("empty-first", [u8("a", 0, 8), u8("b", 0, 0)], 8),
            ("empty-last", [u8("a", 0, 8), u8("b", 8, 8)], 8),
            ("empty-between", [u8("a", 0, 4), u8("e", 4, 4), u8("b", 4, 8)], 8),
            ("empties", [u8("a", 0, 0), u8("b", 0, 0), u8("c", 0, 0)], 0),
            ("empties-around", [u8("a", 0, 0), u8("b", 0, 8), u8("c", 8, 8), u8("d", 8, 8)], 8),
            ("one-byte-each", [u8(str(i), i, i + 1) for i in range(8)], 8)]
    for slug, tensors, size in fine:
        c.accept(33, slug, frame(header(*tensors), bytes(size)), "tensors without a hole")
    c.accept(34, "touching", frame(header(u8("a", 0, 3), u8("b", 3, 8)), bytes(8)),
             "tensors that touch")
    c.accept(33, "unaligned", frame(header(u8("a", 0, 1), entry("b", '"F64"', "[1]", "[1,9]")),
                                    bytes(9)), "an F64 at byte 1", notes=["unaligned"])
    many = [u8("t%d" % i, i, i + 1) for i in range(1100)]
    c.accept(33, "1100-tensors", frame(header(*many), bytes(1100)), "1,100 tensors")
    c.refuse(33, "1100-tensors-hole", frame(header(*many[:1099], u8("t1099", 1100, 1101)),
                                            bytes(1101)), "1,100 tensors, a hole before the last")


def sizes(c):
    big, half = 2 ** 64 - 1, 2 ** 63
    over = [("dims", "I32", [half, 2]), ("dims-then-zero", "I32", [half, 4, 0]),
            ("2-to-32-squared", "U8", [2 ** 32, 2 ** 32]), ("max-twice", "U8", [big, big]),
            ("2-to-32-squared-zero", "U8", [2 ** 32, 2 ** 32, 0]),
            ("wraps-to-8", "U8", [2 ** 61 + 1, 8]), ("u8-2-to-61", "U8", [2 ** 61]),
            ("i32-2-to-62", "I32", [2 ** 62]), ("three-dims", "U8", [2 ** 22, 2 ** 22, 2 ** 22]),
            ("max", "U8", [big]), ("f4-2-to-62", "F4", [2 ** 62]),
            ("f64-2-to-58", "F64", [2 ** 58])]
    for slug, dtype, dims in over:
        c.refuse(35, slug, one(b"", dtype='"%s"' % dtype, shape=json.dumps(dims), offsets="[0,0]"),
                 "a shape whose bits pass 2^64 - 1")
    for slug, dims in [("zero-first", [0, half, 4]), ("zero-then-max", [0, big, big]),
                       ("max-then-zero", [big, 0]), ("2-to-63-one-zero", [half, 1, 0])]:
        c.accept(35, slug, one(b"", shape=json.dumps(dims), offsets="[0,0]"),
                 "the product, from the left, stays in 64 bits")
    c.refuse(38, "u8-2-to-61-less-1", one(b"", dtype='"U8"', shape="[%d]" % (2 ** 61 - 1),
                                          offsets="[0,%d]" % (2 ** 61 - 1)),
             "the largest tensor there can be, without its data")
    top = 2 ** 61 - 1
    c.refuse(35, "sum-near-wrap", frame(header(*[u8("a%d" % i, i * top, (i + 1) * top)
                                             for i in range(8)]), bytes(8)),
             "eight tensors whose end nearly wraps, and with the header does")
    c.refuse(35, "sum-over", frame(header(*[u8("a%d" % i, i * top, (i + 1) * top % 2 ** 64, top)
                                            for i in range(9)]), bytes(8)),
             "nine tensors whose end wraps")

    for dtype, bits, bad in [("F4", 4, [1, 3, 5, 7]), ("F6_E2M3", 6, [1, 2, 3, 5, 6, 7]),
                             ("F6_E3M2", 6, [1, 2, 3, 5, 6, 7])]:
        low = dtype.lower().replace("_", "-")
        for n in bad:
            size = n * bits // 8
            c.refuse(36, "%s-%d" % (low, n), one(bytes(size), dtype='"%s"' % dtype,
                                                 shape="[%d]" % n, offsets="[0,%d]" % size),
                     "%d of %s end inside a byte" % (n, dtype))
        c.refuse(36, low + "-scalar", one(b"", dtype='"%s"' % dtype, shape="[]", offsets="[0,0]"),
                 "a scalar of %s is no whole byte" % dtype)
        c.refuse(36, low + "-3x3", one(bytes(5), dtype='"%s"' % dtype, shape="[3,3]",
                                       offsets="[0,5]"), "nine of %s end inside a byte" % dtype)
        for n in (4, 8, 16):
            size = n * bits // 8
            c.accept(36, "%s-%d" % (low, n), one(bytes(size), dtype='"%s"' % dtype,
                                                 shape="[2,%d]" % (n // 2),
                                                 offsets="[0,%d]" % size),
                     "%d of %s are whole bytes" % (n, dtype))
    wrong = [("larger-shape", "[3]", "[0,8]"), ("smaller-shape", "[1]", "[0,8]"),
             ("zero-shape", "[0]", "[0,8]"), ("zero-bytes", "[2]", "[0,0]"),
             ("scalar-of-8", "[]", "[0,8]"), ("elements-not-bytes", "[8]", "[0,8]"),
             ("end-max", "[2]", "[0,18446744073709551615]"), ("one-less", "[2]", "[0,7]"),
             ("one-more", "[2]", "[0,9]"), ("transposed-2x2", "[2,2]", "[0,8]")]
    for slug, shape, where in wrong:
        c.refuse(37, slug, one(bytes(8), shape=shape, offsets=where),
                 "I32 %s in %s" % (shape, where))
    c.refuse(37, "second", frame(header(u8("a", 0, 4), u8("b", 4, 8, 3)), bytes(8)),
             "the second tensor's shape is smaller than its bytes")
    c.accept(37, "exact", one(), "I32 [2] in [0,8]")
    c.accept(37, "2x2", one(bytes(16), shape="[2,2]", offsets="[0,16]"), "I32 [2,2] in [0,16]")

    for size in (0, 1, 4, 7):
        c.refuse(38, "%d-of-8" % size, one(bytes(size)), "%d bytes of data for 8" % size)
    c.refuse(38, "second", frame(header(u8("a", 0, 4), u8("b", 4, 8)), bytes(4)),
             "the second tensor's data is missing")
    for size in (9, 12, 16, 100):
        c.refuse(39, "%d-of-8" % size, one(bytes(size)), "%d bytes of data for 8" % size)
    c.refuse(39, "no-tensor", frame("{}", b"x"), "a byte of data without a tensor")
    c.refuse(39, "metadata-only", frame(header(META + "{}"), b"x"), "the same, with metadata")
    c.refuse(39, "empty-tensor", one(b"x", shape="[0]", offsets="[0,0]"),
             "a byte of data for an empty tensor")
    c.refuse(39, "newline", one(bytes(8) + b"\n"), "a newline after the data")
    c.accept(38, "exact", one(bytes(range(8))), "data to the last byte")
    c.accept(39, "no-data", frame(header(META + '{"a":"b"}')), "no tensor, no data")


# ── Other layouts and formats ──

LEGACY = [("float16", 2), ("float32", 4), ("float64", 8), ("bfloat16", 2), ("int8", 1),
          ("int16", 2), ("int32", 4), ("int64", 8), ("uint8", 1), ("bool", 1)]


def legacy(c):
    def old(name, dtype, shape, where):
        return '"%s":{"dtype":"%s","shape":%s,"offsets":%s}' % (name, dtype, shape, where)

    def add(slug, text, data, note, code=None):
        codes = ("legacy_layout",) * 3
        c.add(21, slug, frame(text, data), note, codes, folder="legacy",
              legacy={"verdict": "refuse" if code else "accept", "code": code})

    for dtype, size in LEGACY:
        add("dtype-" + dtype, header(old("t", dtype, "[2]", "[0,%d]" % (2 * size))),
            bytes(2 * size), "the first layout: %s" % dtype)
    add("two", header(old("a", "float16", "[2]", "[0,4]"), old("b", "int8", "[4]", "[4,8]")),
        bytes(8), "the first layout: two tensors")
    add("metadata", header(META + '{"a":"b"}', old("a", "float32", "[2]", "[0,8]")),
        bytes(8), "the first layout with metadata")
    add("offsets-first", '{"t":{"offsets":[0,4],"dtype":"float16","shape":[2]}}', bytes(4),
        "the first layout, offsets first")
    add("offsets-only", header(old("t", "F16", "[2]", "[0,4]")), bytes(4),
        "a dtype of today with the first layout's offsets")
    add("dtype-only", header(entry(dtype='"float32"')), bytes(8),
        "a dtype of the first layout with data_offsets")
    add("offsets-twice", '{"t":{"dtype":"F16","shape":[2],"offsets":[0,4],"offsets":[0,4]}}',
        bytes(4), "the first layout, offsets twice", "field_duplicate")
    add("offsets-string", '{"t":{"dtype":"F16","shape":[2],"offsets":"0"}}', bytes(4),
        "the first layout, offsets a string", "offsets_type")
    add("gap", header(old("a", "float32", "[2]", "[4,12]")), bytes(12),
        "the first layout, a hole at the start", "offsets_gap")
    add("short", header(old("a", "float32", "[2]", "[0,8]")), bytes(4),
        "the first layout, data missing", "data_truncated")
    add("size", header(old("a", "float32", "[3]", "[0,8]")), bytes(8),
        "the first layout, shape too large", "size_mismatch")


def foreign(c):
    def add(slug, data, note, open_code, found, **more):
        c.add(None, slug, data, note, (open_code,) * 3, folder="foreign", scan=found, **more)

    large, short = "header_too_large", "header_truncated"
    add("git-lfs", b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:" + b"0123456789abcdef" * 4 + b"\nsize 4265380512\n",
        "a Git LFS pointer", large, "found_git_lfs")
    add("xet", b"# xet version 0\nfilesize = 4265380512\nhash = '" + b"0123456789abcdef" * 4 +
        b"'\n", "a Xet pointer", large, "found_xet")
    add("html", b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n",
        "a web page", large, "found_html")
    add("html-lower", b"<html><body>Not found</body></html>\n", "a web page", large, "found_html")
    name = b"readme.txt"
    add("zip", struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) +
        name, "a ZIP archive", large, "found_zip")
    name = b"archive/data.pkl"
    add("torch", struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 0, 0x808, 0, 0, 0, 0, 0, 0, len(name), 0) +
        name + b"\x80\x02}q\0.", "a torch checkpoint", large, "found_torch")
    add("pickle-2", b"\x80\x02}q\x00X\x01\x00\x00\x00aq\x01K\x01s.", "a pickle", large,
        "found_pickle")
    add("pickle-4", b"\x80\x04\x95\x0b\0\0\0\0\0\0\0}\x94\x8c\1a\x94K\1s.", "a pickle", large,
        "found_pickle")
    add("gguf", b"GGUF\3\0\0\0" + bytes(16), "a GGUF model", large, "found_gguf")
    add("hdf5", b"\x89HDF\r\n\x1a\n" + bytes(40), "an HDF5 file", large, "found_hdf5")
    add("gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\3K\4\0\x43\xbe\xb7\xe8\1\0\0\0", "a gzip file", short,
        "found_gzip")
    add("zstd", b"\x28\xb5\x2f\xfd\x20\1\x09\0\0a", "a zstd file", large, "found_zstd")
    add("npy", b"\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }" +
        b" " * 57 + b"\n", "a numpy array", large, "found_npy")
    add("index", b'{"metadata":{"total_size":8},"weight_map":{"t":"model.safetensors"}}',
        "an index of shards", large, "found_index", command="index_shard_missing")

    for slug, magic in [("pickle-2", b"\x80\2"), ("pickle-3", b"\x80\3"), ("pickle-4", b"\x80\4"),
                        ("pickle-5", b"\x80\5"), ("zlib", b"\x78\x9c"), ("exe", b"MZ"),
                        ("script", b"#!"), ("bmp", b"BM")]:
        n = int.from_bytes(magic, "little")
        text = header(T)
        c.accept(None, "looks-like-" + slug, frame(text + " " * (n - len(text)), bytes(8)),
                 "a header length that reads as another format's first bytes")
        c.refuse(38, "looks-like-" + slug, frame(text + " " * (n - len(text)), bytes(7)),
                 "the same, a byte of data missing", scan="data_truncated")
    end = b"PK\5\6" + bytes(18)
    c.accept(None, "polyglot-zip", one(end, dtype='"U8"', shape="[22]", offsets="[0,22]"),
             "a ZIP end record as data", notes=["polyglot_zip"])
    c.accept(None, "polyglot-pdf", one(b"%PDF-1.4\n" + bytes(7), dtype='"U8"', shape="[16]",
                                       offsets="[0,16]"), "a PDF as data", notes=["polyglot_pdf"])


def special(c):
    c.accept(None, "official-i32", frame('{"test":{"dtype":"I32","shape":[2,2],"data_offsets":'
                                         '[0,16]}}      ', bytes(16)),
             "the official writer's bytes for zeros of I32 [2,2]")
    c.accept(None, "official-metadata", frame('{"__metadata__":{"framework":"pt"},"test":{"dtype":'
                                              '"I32","shape":[2,2],"data_offsets":[0,16]}}       ',
                                              bytes(16)), "the same with metadata")
    c.accept(None, "all-dtypes", all_dtypes(), "a tensor of each dtype, in the official order")
    c.accept(None, "nan", one(b"\0\0\xc0\x7f" * 2, dtype='"F32"'), "values are never looked at")


def all_dtypes():
    out, at = [], 0
    for name, bits in reversed(DTYPES):
        out.append(entry(name.lower(), '"%s"' % name, "[8]", "[%d,%d]" % (at, at + bits)))
        at += bits
    text = header(*out)
    return frame(text + " " * (-len(text) % 8), bytes(at))


def build():
    c = Corpus()
    for part in (framing, utf8, grammar, strings, numbers, digits, depth, entries, dtypes, shapes,
                 metadata, names, edges, offsets, sizes, legacy, foreign, special):
        part(c)
    add_sets(c, frame, header, u8)
    return c


def large():
    """Files too big to keep: (name, bytes, code at every level or None)."""
    cap = 100000000
    text = header(T).encode()
    yield "R2-cap", frame(text + b" " * (cap - len(text)), bytes(8)), None
    yield "R2-cap-plus-1", frame(text + b" " * (cap + 1 - len(text)), bytes(8)), RULES[2]
    zeros = header(entry(more=',"x":[%s]')).encode()
    count = (cap - len(zeros) + 2) // 2
    body = b"0," * (count - 1) + b"0"
    yield "R29-field-of-100-MB", frame(zeros.replace(b"%s", body), bytes(8)), "strict only"
    n = int.from_bytes(b"PK\3\4", "little")
    yield "looks-like-zip", frame(text + b" " * (n - len(text)), bytes(8)), None
    n = int.from_bytes(b"\x1f\x8b\x08\0", "little")
    yield "looks-like-gzip", frame(text + b" " * (n - len(text)), bytes(8)), None


# ── Writing ──

def manifest(c):
    rules = {"R%d" % r: code for r, code in RULES.items()}
    def listed(rows):
        return ",\n".join(json.dumps(row) for row in rows)

    return ('{"schema":1,"levels":%s,\n"rules":%s,\n"files":[\n%s\n],\n"sets":[\n%s\n]}\n'
            % (json.dumps(LEVELS), json.dumps(rules), listed(c.rows), listed(c.sets))).encode()


def everything():
    c = build()
    out = dict(c.files)
    out["manifest.json"] = manifest(c)
    return out


def write(folder):
    made = everything()
    for name, data in made.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
    return made


def on_disk(folder):
    found = {}
    for top, _, names_ in os.walk(folder):
        for name in names_:
            if name.endswith((".safetensors", ".json")):
                path = os.path.join(top, name)
                with open(path, "rb") as f:
                    found[os.path.relpath(path, folder).replace(os.sep, "/")] = f.read()
    return found


def check(folder):
    made, found = everything(), on_disk(folder)
    bad = sorted(n for n in made.keys() | found.keys() if made.get(n) != found.get(n))
    for name in bad:
        print("differs from make.py:", name)
    return 1 if bad else 0


def main(argv):
    if argv[1:] == ["--check"]:
        return check(HERE)
    made = write(argv[1] if len(argv) > 1 else HERE)
    print("%d files, %d bytes" % (len(made) - 1, sum(map(len, made.values()))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
