"""Random Arrow tables of all types that a dataset takes, and whether two are the same to the bit."""
import datetime
import decimal
import random
import string

import pyarrow as pa
import pyarrow.compute as pc

UNITS = ("s", "ms", "us", "ns")
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), 1e-300, 2.0 ** -149)


def value_types():
    plain = [pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(),
             pa.int64(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
    text = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
            pa.binary_view()]
    times = [pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"),
             pa.time64("ns"), *map(pa.timestamp, UNITS), *map(pa.duration, UNITS),
             pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin"),
             pa.timestamp("ms", "+05:30")]
    decimals = [pa.decimal128(10, 2), pa.decimal128(38, 18), pa.decimal128(5, -2),
                pa.decimal256(76, 10)]
    if hasattr(pa, "decimal32"):  # from Arrow 19 on
        decimals += [pa.decimal32(9, 3), pa.decimal64(18, 0)]
    return plain + text + times + decimals + [pa.binary(1), pa.binary(16)]


VALUES = value_types()
# Arrow itself has no casts for views, and takes 0.0 and -0.0 for the same when it joins chunks.
IN_DICTIONARIES = [one for one in VALUES if "view" not in str(one)
                   and not pa.types.is_floating(one)]


def a_type(rng, depth=0):
    kind = rng.random()
    if depth > 3 or kind < 0.55:
        return rng.choice(VALUES)
    if kind < 0.6:
        return pa.dictionary(rng.choice([pa.int8(), pa.uint16(), pa.int64()]),
                             rng.choice(IN_DICTIONARIES))
    inner = a_type(rng, depth + 1)
    if kind < 0.85:
        return rng.choice([pa.list_, pa.large_list, pa.list_view, pa.large_list_view,
                           lambda one: pa.list_(one, rng.randrange(4))])(inner)
    names = rng.sample([*string.ascii_lowercase[:6], "a b", 'quo"te\\', "ü", "x,y>", "\t", ""],
                       rng.randrange(1, 4))
    return pa.struct([(name, a_type(rng, depth + 1)) for name in names])


def a_schema(rng):
    names = ["c%d" % i for i in range(rng.randrange(1, 6))]
    return pa.schema([(name, a_type(rng)) for name in names])


def raw_values(rng, kind, count):
    """Random bits of a type that is a number of whole bytes."""
    width = kind.bit_width // 8
    data = bytearray(rng.randbytes(width * count))
    if pa.types.is_floating(kind) and rng.random() < 0.7:
        import numpy as np
        made = np.array([rng.choice(SPECIAL) for _ in range(count)])
        with np.errstate(all="ignore"):
            data = made.astype("f%d" % width).tobytes()
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(bytes(data))])


def a_value(rng, kind):
    if pa.types.is_decimal(kind):
        digits = rng.randrange(10 ** rng.randrange(1, kind.precision + 1))
        return decimal.Decimal((rng.randrange(2), tuple(map(int, str(digits))), -kind.scale))
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_date(kind):
        return datetime.date(1970, 1, 1) + datetime.timedelta(rng.randrange(-10000, 10000))
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return "".join(rng.choice("aé水🦊\0 ") for _ in range(rng.randrange(5)))
    return rng.randbytes(rng.randrange(20))


def an_array(rng, kind, count, nulls=0.3):
    """With so many nulls, at each level, or none."""
    nulls = nulls if rng.random() < 0.7 else 0
    mask = pa.array([rng.random() < nulls for _ in range(count)], pa.bool_())
    if pa.types.is_dictionary(kind):
        values = an_array(rng, kind.value_type, 4, 0)
        keys = pa.array([rng.randrange(4) for _ in range(count)], kind.index_type)
        return masked(pa.DictionaryArray.from_arrays(keys, values), mask)
    if pa.types.is_struct(kind):
        fields = [an_array(rng, field.type, count) for field in kind]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
    if hasattr(kind, "value_field"):
        return a_list(rng, kind, count, mask)
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or \
        pa.types.is_time32(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or \
        pa.types.is_time64(kind) or pa.types.is_fixed_size_binary(kind)
    if numbers and not pa.types.is_decimal(kind):
        return masked(raw_values(rng, kind, count), mask)
    some = [None if none.as_py() else a_value(rng, kind) for none in mask]
    return pa.array(some, kind)


def masked(array, mask):
    return pc.if_else(mask, pa.scalar(None, array.type), array) if not pa.types.is_dictionary(
        array.type) else pa.DictionaryArray.from_arrays(
            pc.if_else(mask, pa.scalar(None, array.indices.type), array.indices),
            array.dictionary)


def a_list(rng, kind, count, mask):
    if pa.types.is_fixed_size_list(kind):
        inner = an_array(rng, kind.value_type, count * kind.list_size)
        bits = pc.invert(mask).buffers()[1] if count else None
        return pa.Array.from_buffers(kind, count, [bits], children=[inner])
    most = rng.choice([0, 3, 5])
    same = rng.random() < 0.3
    lengths = [0 if none.as_py() else most if same else rng.randrange(most + 1) for none in mask]
    inner = an_array(rng, kind.value_type, sum(lengths))
    ends = [0]
    for length in lengths:
        ends.append(ends[-1] + length)
    large = pa.types.is_large_list(kind) or str(kind).startswith("large_list_view")
    wide = pa.int64() if large else pa.int32()
    bits = pc.invert(mask).buffers()[1] if count else None
    buffers = [bits, pa.array(ends if "view" not in str(kind).split("<")[0] else ends[:-1],
                              wide).buffers()[1]]
    if "view" in str(kind).split("<")[0]:
        buffers.append(pa.array(lengths, wide).buffers()[1])
    return pa.Array.from_buffers(kind, count, buffers, children=[inner])


def a_table(seed):
    """In chunks, which are parts of longer arrays."""
    rng = random.Random(seed)
    schema = a_schema(rng)
    batches = []
    for _ in range(rng.randrange(4)):
        count = rng.choice([0, 1, 7, 30])
        arrays = [an_array(rng, field.type, count + 5) for field in schema]
        begin = rng.randrange(5)
        batches.append(pa.RecordBatch.from_arrays([one.slice(begin, count) for one in arrays],
                                                  schema=schema))
    return pa.Table.from_batches(batches, schema)


def stored_type(kind):
    """Dictionaries come back as their values."""
    if pa.types.is_dictionary(kind):
        return stored_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, stored_type(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(stored_type(kind.value_type), kind.list_size)
    if hasattr(kind, "value_field"):
        make = {"list<": pa.list_, "large_list<": pa.large_list, "list_view<": pa.list_view,
                "large_list_view<": pa.large_list_view}[str(kind).split("<")[0] + "<"]
        return make(stored_type(kind.value_type))
    return kind


def lengths(lists):
    return [len(lists[i]) if lists[i].is_valid else None for i in range(len(lists))]


def same(a, b, where=""):
    """AssertionError unless both arrays have the same rows; of a the type may be a dictionary."""
    if isinstance(a, pa.ChunkedArray):
        a = pa.concat_arrays(a.chunks) if a.chunks else pa.nulls(0, a.type)
    if isinstance(b, pa.ChunkedArray):
        b = pa.concat_arrays(b.chunks) if b.chunks else pa.nulls(0, b.type)
    if pa.types.is_dictionary(a.type):
        a = pc.take(a.dictionary, a.indices)
    assert len(a) == len(b), where
    valid = a.is_valid()
    assert valid.equals(b.is_valid()), (where, a, b)
    if pa.types.is_struct(a.type):
        for field, one, other in zip(a.type, a.flatten(), b.flatten()):
            same(one, other, where + "." + field.name)
    elif hasattr(a.type, "value_field"):
        assert lengths(a) == lengths(b), where
        same(a.flatten(), b.flatten(), where + ".item")
    elif pa.types.is_floating(a.type):
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[a.type.bit_width]
        assert a.drop_null().view(bits).equals(b.drop_null().view(bits)), (where, a, b)
    else:
        assert a.equals(b), (where, a, b)


def same_table(a, b):
    assert b.schema.names == a.schema.names
    for field in a.schema:
        assert b.schema.field(field.name).type == stored_type(field.type), field
        same(a[field.name], b[field.name], field.name)
