"""Headers for the comparison with the official package: valid ones, then one to three
mutations. A batch follows from (seed, number of the batch) alone."""
import random
import re
import struct

DTYPES = [("BOOL", 8), ("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6), ("U8", 8), ("I8", 8),
          ("F8_E5M2", 8), ("F8_E4M3", 8), ("F8_E8M0", 8), ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8),
          ("I16", 16), ("U16", 16), ("F16", 16), ("BF16", 16), ("I32", 32), ("U32", 32),
          ("F32", 32), ("C64", 64), ("F64", 64), ("I64", 64), ("U64", 64)]
BITS = dict(DTYPES)
NAMES = ["t", "a", "b", "w.0.weight", "w.10.bias", "lora_down", "\u00e9t\u00e9", "\u4e2d\u6587",
         "\U0001f600", "", "x" * 40, "a b", "__metadata", "_", "0", "model/x", "~"]
SPACES = [" ", "\t", "\n", "\r", "  ", " \n ", "      "]
BIG = [2 ** 31, 2 ** 32, 2 ** 61 - 1, 2 ** 61, 2 ** 63, 2 ** 64 - 1, 2 ** 62, 2 ** 58, 3, 7, 9]
NUMBERS = ["-1", "-0", "1.0", "1e0", "0.5", "18446744073709551616", "1E2", "1e-400", "0e999",
           "1.7976931348623157e308", "-9223372036854775809", "184467440737095516150"]
BAD_NUMBERS = ["01", "-", "1.", "1e", "1e+", "1e400", "-1e999", "00", "1.7976931348623158e308",
               "1e2147483648", "10e308", "-Infinity", "2.e1", "1" + "0" * 309]
NOT_JSON = ["tru", "nul", "NaN", "Infinity", "'a'", "+1", ".5", "True", "[1,]", "{\"a\"}",
            "{\"a\":1,}", "0x1", "/**/1", "[1 2]", "{1:2}", ""]
VALUES = ["null", "true", "false", "1", "\"x\"", "[]", "{}", "[1,2]", "{\"a\":{\"b\":[]}}", "0.5",
          "\"\\u00e9\\n\"", "[[[]]]"]
BAD_STRINGS = ["\\x", "\\u12", "\\ud800", "\\udc00x", "\\ud800\\u0041", "\1", "\n", "\\u00zz",
               "\\ud800\\ud800", "\\'"]
ESCAPES = ["\\u0041", "\\n", "\\\"", "\\\\", "\\/", "\\ud83d\\ude00", "\\u0000", "\\t", "\\u00e9",
           "\\u007f"]
BAD_DTYPES = ["i32", "I128", "F8", "", "f16", "BOOLEAN", "C128", "I32 ", "F8_E4M3FN", "U4"]
BAD_UTF8 = [b"\xff", b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]


def quoted(name):
    """A JSON string, as the official writer spells it."""
    out = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"%s"' % out


class Header:
    """What is mutated: members with their raw JSON, and the file around them."""

    def __init__(self, rng):
        self.rng = rng
        self.members = []  # [key, fields or raw text]; fields: [[key, raw], ...]
        self.lead = self.tail = ""
        self.gap = None    # white space between tokens
        self.data = 0
        self.length = None # N as written, when it is not the true one
        self.raw = None    # bytes instead of the members
        self.cut = None    # bytes of the file kept
        self.steps = []    # on the text, after all others

    def tensors(self):
        return [m for m in self.members if isinstance(m[1], list)]

    def a_tensor(self):
        found = self.tensors()
        if found:
            return self.rng.choice(found)
        self.members.append(member("t", "I32", [2], self.data, self.data + 8))
        self.data += 8
        return self.members[-1]

    def field(self, name):
        """The raw field of some tensor, as a list [key, raw] to be changed."""
        fields = self.a_tensor()[1]
        found = [f for f in fields if f[0] == '"%s"' % name]
        if not found:
            fields.append(['"%s"' % name, "0"])
            return fields[-1]
        return found[0]

    def metadata(self):
        found = [m for m in self.members if m[0] == '"__metadata__"']
        if found:
            return found[0]
        self.members.insert(self.rng.randrange(len(self.members) + 1),
                            ['"__metadata__"', '{"a":"b"}'])
        return self.metadata()

    def text(self):
        g = self.gap or ""
        join, colon = g + "," + g, g + ":" + g

        def value(v):
            if not isinstance(v, list):
                return v
            return "{" + g + join.join(k + colon + r for k, r in v) + g + "}"

        body = join.join(k + colon + value(v) for k, v in self.members)
        return self.lead + "{" + g + body + g + "}" + self.tail

    def file(self):
        text = self.raw if self.raw is not None else self.text().encode("utf-8", "surrogatepass")
        for step in self.steps:
            text = step(text)
        length = len(text) if self.length is None else self.length(len(text))
        out = struct.pack("<Q", length % 2 ** 64) + text + bytes(max(self.data, 0))
        return out if self.cut is None else out[:self.cut(len(out), len(text))]


def member(name, dtype, shape, begin, end):
    return [quoted(name), [['"dtype"', '"%s"' % dtype],
                           ['"shape"', "[%s]" % ",".join(map(str, shape))],
                           ['"data_offsets"', "[%d,%d]" % (begin, end)]]]


def product(shape):
    out = 1
    for d in shape:
        out *= d
    return out


def fitting_shape(rng, bits):
    shape = [rng.choice((0, 1, 1, 2, 2, 3, 4, 5)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))]
    if product(shape) * bits % 8:
        shape.append(4)
    return shape


def valid(rng):
    h = Header(rng)
    names = rng.sample(NAMES, rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 6)))
    if rng.random() < 0.001:  # more than fit one block of records
        names = ["layer.%d" % i for i in range(rng.choice((1023, 1024, 1025, 2500)))]
    for name in names:
        dtype, bits = rng.choice(DTYPES)
        shape = fitting_shape(rng, bits)
        size = product(shape) * bits // 8
        h.members.append(member(name, dtype, shape, h.data, h.data + size))
        h.data += size
    if rng.random() < 0.3:
        rng.shuffle(h.members)
    if rng.random() < 0.3:
        h.metadata()
    if rng.random() < 0.5:
        h.tail = " " * (-len(h.text().encode()) % 8)
    return h


# ── Mutations that leave the file acceptable at level compat (most of the time) ──

def gap(h):
    h.gap = h.rng.choice(SPACES)


def lead(h):
    h.lead = h.rng.choice(SPACES)


def tail(h):
    h.tail += h.rng.choice(SPACES)


def shuffle_fields(h):
    h.rng.shuffle(h.a_tensor()[1])


def shuffle_members(h):
    h.rng.shuffle(h.members)


def unknown_field(h):
    fields = h.a_tensor()[1]
    fields.insert(h.rng.randrange(len(fields) + 1),
                  [h.rng.choice(('"x"', '"dtypes"', '""', '"offsets"', '"\\u0064"')),
                   h.rng.choice(VALUES + NUMBERS)])


def some_json(rng, depth=0):
    """Legal JSON of some depth."""
    kind = rng.randrange(8 if depth < 4 else 4)
    if kind < 4:
        return rng.choice(VALUES[:6] + NUMBERS + ['"%s"' % rng.choice(ESCAPES), "12", "0"])
    space = rng.choice(("", "", " ", "\n"))
    if kind < 6:
        parts = [some_json(rng, depth + 1) for _ in range(rng.randrange(4))]
        return "[" + space + (space + "," + space).join(parts) + space + "]"
    parts = ['"%s"%s:%s%s' % (rng.choice(("a", "b", "", "\\n")), space, space,
                              some_json(rng, depth + 1)) for _ in range(rng.randrange(4))]
    return "{" + space + (space + "," + space).join(parts) + space + "}"


def nested(h):
    h.a_tensor()[1].append(['"x"', some_json(h.rng)])


def nested_broken(h):
    """One byte of legal JSON in an ignored field changed, dropped or added."""
    text = some_json(h.rng)
    at = h.rng.randrange(len(text))
    other = h.rng.choice(list(',:;{}[]"\\01-+.eE ntf\t\1') + [""])
    h.a_tensor()[1].append(['"x"', text[:at] + other + text[at + h.rng.randrange(2):]])


def escape_name(h):
    t = h.a_tensor()
    t[0] = t[0][:-1] + h.rng.choice(ESCAPES) + '"'


def escape_spelling(h):
    t = h.a_tensor()
    spot = h.rng.choice([t] + t[1])
    if len(spot[0]) > 2 and 32 < ord(spot[0][1]) < 127 and spot[0][1] != "\\":
        spot[0] = '"\\u%04x%s' % (ord(spot[0][1]), spot[0][2:])


def escape_dtype(h):
    f = h.field("dtype")
    if f[1].startswith('"') and len(f[1]) > 2 and f[1][1] != "\\":
        f[1] = '"\\u%04X%s' % (ord(f[1][1]), f[1][2:])


def metadata_ok(h):
    h.metadata()[1] = h.rng.choice(('{}', '{"a":"b","c":""}', '{"":""}', '{"k":"\\u0000"}',
                                    '{ "a" : "b" }', '{"a":"%s"}' % ("v" * 300)))


def metadata_null(h):
    h.metadata()[1] = "null"


def metadata_key_twice(h):
    h.metadata()[1] = h.rng.choice(('{"a":"b","a":"c"}', '{"a":"","\\u0061":""}',
                                    '{"x":"1","y":"2","x":"3"}'))


def twin(h):
    t = h.a_tensor()
    copy = [t[0], [list(f) for f in t[1]] if isinstance(t[1], list) else t[1]]
    h.members.insert(h.rng.randrange(len(h.members) + 1), copy)


def twin_before(h):
    """A first copy with other fields, which the last one replaces."""
    t = h.a_tensor()
    h.members.insert(h.members.index(t), [t[0], member("x", "U8", [3], 5, 8)[1]])


def entry_array(h):
    t = h.a_tensor()
    raw = dict((k, v) for k, v in t[1])
    if {'"dtype"', '"shape"', '"data_offsets"'} <= set(raw):
        t[1] = "[%s,%s,%s]" % (raw['"dtype"'], raw['"shape"'], raw['"data_offsets"'])


def dtype_object(h):
    f = h.field("dtype")
    if f[1].startswith('"'):
        f[1] = "{%s:null}" % f[1]


def more_dims(h):
    f = h.field("shape")
    if f[1].startswith("["):
        ones = ",".join(["1"] * h.rng.choice((1, 30, 61, 64, 65, 100)))
        f[1] = "[" + ones + ("," if f[1] != "[]" else "") + f[1][1:]


def empty_tensor(h):
    where = h.rng.choice([0, h.data])
    dims = h.rng.choice(([0], [0], [0, 2 ** 63, 4], [5, 0]))
    if h.rng.random() < 0.02:
        dims = [2 ** 61, 0]
    name = "e%d" % h.rng.randrange(1000)
    h.members.insert(h.rng.randrange(len(h.members) + 1),
                     member(name, h.rng.choice(("U8", "BOOL", "I8")), dims, where, where))


def nest(h):
    depth = h.rng.choice((1, 5, 60, 125))
    left, right = h.rng.choice((("[", "]"), ('{"a":', "}")))
    h.a_tensor()[1].append(['"x"', left * depth + ("1" if left != "[" else "") + right * depth])


def digits(h):
    """An empty tensor with numbers of any length."""
    h.data = max(h.data, 0)
    dims = [0] + [h.rng.randrange(10 ** h.rng.randrange(1, 20))
                  for _ in range(h.rng.choice((1, 2)))]
    h.members.append(member("d%d" % h.rng.randrange(100), "U8", dims, h.data, h.data))


def spaced_array(h):
    f = h.field(h.rng.choice(("shape", "data_offsets")))
    f[1] = h.rng.choice(SPACES).join(re.split(r"(?<=[\[,])|(?=[\],])", f[1]))


def metadata_many(h):
    count = h.rng.choice((2, 20, 200))
    h.metadata()[1] = "{%s}" % ",".join('"%s%d":"%s"' % (
        h.rng.choice(("k", "\\u006b", "\u00e9", "k ")), h.rng.randrange(4 * count),
        h.rng.choice(ESCAPES + ["", "v"])) for _ in range(count))


def any_name(h):
    t = h.a_tensor()
    ranges = ((0x20, 0x22), (0x23, 0x5c), (0x5d, 0xd800), (0xe000, 0x110000))
    t[0] = '"%s"' % "".join(chr(h.rng.randrange(*h.rng.choice(ranges)))
                            for _ in range(h.rng.randrange(1, 12)))


HARMLESS = [nested, digits, spaced_array, metadata_many, any_name, gap,
            lead, tail, shuffle_fields, shuffle_members, unknown_field, escape_name,
            escape_spelling, escape_dtype, metadata_ok, metadata_null, metadata_key_twice, twin,
            twin_before, entry_array, dtype_object, more_dims, empty_tensor, nest]


# ── Mutations that break a rule (most of the time) ──

def file_cut(h):
    h.cut = lambda whole, text: h.rng.randrange(8)


def length_huge(h):
    value = h.rng.choice((100000001, 2 ** 32, 2 ** 63, 2 ** 64 - 8, 2 ** 64 - 1, 2 ** 40))
    h.length = lambda true: value


def length_over(h):
    more = h.rng.choice((1, 8, 100, 10 ** 6)) + max(h.data, 0)
    h.length = lambda true: true + more


def length_off(h):
    more = h.rng.choice((-2, -1, 1, 2, 8))
    h.length = lambda true: max(true + more, 0)


def bad_utf8(h):
    raw = h.rng.choice(BAD_UTF8)

    def step(text):
        at = h.rng.randrange(len(text) + 1)
        return text[:at] + raw + text[at:]
    h.steps.append(step)


def bad_utf8_name(h):
    raw = h.rng.choice(BAD_UTF8)
    h.steps.append(lambda text: text.replace(b'"', b'"' + raw, 1))


def not_json(h):
    spot = h.rng.choice(h.a_tensor()[1])
    spot[1] = h.rng.choice(NOT_JSON)


def punctuation(h):
    def step(text):
        spots = [i for i, b in enumerate(text) if b in b'{}[]:,"']
        if not spots:
            return text
        at = h.rng.choice(spots)
        with_ = h.rng.choice((b"", b",", b":", b"}", b"{", b"]", b"[", b'"'))
        return text[:at] + with_ + text[at + 1:]
    h.steps.append(step)


def text_cut(h):
    h.steps.append(lambda text: text[:h.rng.randrange(len(text) + 1)])


def any_byte(h):
    def step(text):
        if not text:
            return text
        at = h.rng.randrange(len(text))
        return text[:at] + bytes([h.rng.randrange(256)]) + text[at + 1:]
    h.steps.append(step)


def bad_string(h):
    t = h.a_tensor()
    bad = h.rng.choice(BAD_STRINGS)
    if h.rng.random() < 0.5:
        t[0] = t[0][:-1] + bad + '"'
    else:
        t[1].append(['"x"', '"%s"' % bad])


def bad_number(h):
    number = h.rng.choice(BAD_NUMBERS)
    spot = h.rng.choice(("shape", "data_offsets", "x"))
    if spot == "x":
        h.a_tensor()[1].append(['"x"', number])
    else:
        h.field(spot)[1] = "[%s,8]" % number


def deep(h):
    depth = h.rng.choice((126, 127, 200))
    h.a_tensor()[1].append(['"x"', "[" * depth + "]" * depth])


def trailing(h):
    h.tail += h.rng.choice(("x", "\0", "{}", ",", "}", "\0\0\0\0", "//", '"'))


def not_object(h):
    h.raw = h.rng.choice((b"[]", b"null", b"1", b'"a"', b"true", b"[{}]", b" 1.5 ", b"-0"))


def entry_type(h):
    h.a_tensor()[1] = h.rng.choice(("null", "1", '"x"', "true", "false", "1.5"))


def entry_array_off(h):
    h.a_tensor()[1] = h.rng.choice(('["I32",[2],[0,8],1]', '["I32",[2]]', "[]", "[1]",
                                    '["I32",2,[0,8]]', "[null,null,null]"))


def field_missing(h):
    fields = h.a_tensor()[1]
    fields.pop(h.rng.randrange(len(fields)))


def field_twice(h):
    fields = h.a_tensor()[1]
    fields.insert(h.rng.randrange(len(fields) + 1), list(h.rng.choice(fields)))


def dtype_type(h):
    h.field("dtype")[1] = h.rng.choice(("1", "null", '["I32"]', "{}", '{"I32":1}', "true",
                                        '{"I32":null,"I32":null}', '{"I32":{}}', "1.5"))


def dtype_unknown(h):
    name = '"%s"' % h.rng.choice(BAD_DTYPES)
    h.field("dtype")[1] = name if h.rng.random() < 0.8 else "{%s:null}" % name


def dtype_other(h):
    h.field("dtype")[1] = '"%s"' % h.rng.choice(DTYPES)[0]


def shape_type(h):
    h.field("shape")[1] = h.rng.choice(["null", "{}", "2", '"2"', "[[2]]", "[null]", '["2"]',
                                        "true", "[{}]"] + ["[%s]" % n for n in NUMBERS])


def offsets_type(h):
    h.field("data_offsets")[1] = h.rng.choice(
        ["null", "{}", "8", "[]", "[0]", "[0,8,9]", '["0",8]', "[[0],8]", "[0,null]", "true"] +
        ["[0,%s]" % n for n in NUMBERS] + ["[%s,8]" % n for n in NUMBERS])


def metadata_type(h):
    h.metadata()[1] = h.rng.choice(("[]", '"a"', "1", "true", "false", '["a"]', "0.5"))


def metadata_value(h):
    h.metadata()[1] = '{"a":%s}' % h.rng.choice(("1", "null", "{}", "[]", "true", '{"b":"c"}'))


def metadata_twice(h):
    spare = ['"__metadata__"', h.rng.choice(("{}", "null", '{"a":"b"}'))]
    h.metadata()
    h.members.insert(h.rng.randrange(len(h.members) + 1), spare)


def legacy(h):
    f = h.field("data_offsets")
    f[0] = '"offsets"'
    if h.rng.random() < 0.5:
        h.field("dtype")[1] = h.rng.choice(('"float16"', '"float32"', '"int8"', '"bool"'))


def set_offsets(h, change):
    f = h.field("data_offsets")
    try:
        begin, end = (int(p) for p in f[1].strip("[]").split(","))
    except ValueError:
        begin, end = 0, 8
    f[1] = "[%d,%d]" % tuple(max(v, 0) for v in change(begin, end))


def reversed_(h):
    set_offsets(h, lambda b, e: (e + 1, b) if h.rng.random() < .3 else (b, b - 1))


def end_below(h):
    """The last tensor begins where it should, and ends before."""
    found = [m for m in h.tensors() if m[1]]
    if found and h.data > 0:
        for f in found[-1][1]:
            if f[0] == '"data_offsets"':
                f[1] = "[%d,%d]" % (h.data, h.rng.randrange(h.data))
        for m in found[:1] if len(found) == 1 else []:
            h.members.insert(0, member("whole", "U8", [h.data], 0, h.data))


def gap_in_data(h):
    more = h.rng.choice((1, 2, 8))
    set_offsets(h, lambda b, e: (b + more, e + more))


def overlap(h):
    less = h.rng.choice((1, 2, 4))
    set_offsets(h, lambda b, e: (b - less, e - less))


def same_place(h):
    t, u = h.a_tensor(), h.a_tensor()
    where = [f[1] for f in t[1] if f[0] == '"data_offsets"']
    for f in u[1]:
        if f[0] == '"data_offsets"' and where:
            f[1] = where[0]


def end_off(h):
    more = h.rng.choice((-2, -1, 1, 2, 8))
    set_offsets(h, lambda b, e: (b, e + more))


def overflow(h):
    dims = [h.rng.choice(BIG) for _ in range(h.rng.choice((1, 2, 2, 3)))]
    if h.rng.random() < 0.3:
        dims.insert(h.rng.randrange(len(dims) + 1), 0)
    h.field("shape")[1] = "[%s]" % ",".join(map(str, dims))


def partial(h):
    h.field("dtype")[1] = '"%s"' % h.rng.choice(("F4", "F6_E2M3", "F6_E3M2"))
    h.field("shape")[1] = "[%d]" % h.rng.choice((1, 2, 3, 5, 6, 7, 9, 15))


def dim_off(h):
    f = h.field("shape")
    f[1] = "[%d]" % h.rng.choice((0, 1, 2, 3, 4, 8, 100)) if f[1] == "[]" else "[3," + f[1][1:]


def data_short(h):
    h.data -= h.rng.choice((1, 1, 2, 8))


def data_long(h):
    h.data += h.rng.choice((1, 1, 2, 8, 100))


BREAKING = [file_cut, length_huge, length_over, length_off, bad_utf8, bad_utf8_name, not_json,
            punctuation, text_cut, any_byte, bad_string, bad_number, deep, trailing, not_object,
            entry_type, entry_array_off, field_missing, field_twice, dtype_type, dtype_unknown,
            dtype_other, shape_type, offsets_type, metadata_type, metadata_value, metadata_twice,
            legacy, reversed_, gap_in_data, overlap, same_place, end_off, overflow, partial,
            dim_off, data_short, data_long, reversed_, end_below,
            nested_broken, nested_broken]


def one(rng):
    h = valid(rng)
    harmless = rng.random() < 0.32
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        pool = HARMLESS if harmless or rng.random() < 0.25 else BREAKING
        change = rng.choice(pool)
        change(h)
        if not h.tensors() and change in (entry_type, entry_array, entry_array_off):
            break
    return h.file()


def batch(seed, number, count):
    rng = random.Random("%s:%s" % (seed, number))
    return [one(rng) for _ in range(count)]
