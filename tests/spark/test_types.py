"""Columns of all types of Spark but maps come back as they were: exceptAll both ways."""
import os
import random

import pytest

import holding
from frames import SOURCES, read, write

pytestmark = pytest.mark.local

# Values as SQL, of which each column has all, and null.
VALUES = {
    "boolean": ["true", "false"], "tinyint": ["-128Y", "127Y"], "smallint": ["-32768S", "1S"],
    "int": ["-2147483648", "7"], "bigint": ["-9223372036854775808", "9L"],
    "float": ["float('nan')", "float(-0.0)", "float('-infinity')", "float(1e-45)"],
    "double": ["double('nan')", "double(-0.0)", "4.9e-324D"],
    "decimal(9,2)": ["1234567.89BD", "-0.01BD"], "decimal(18,18)": ["0.123456789012345678BD"],
    "decimal(38,0)": ["99999999999999999999999999999999999999BD", "-1BD"],
    "string": ["''", "'é水🦊'", "'a\\0b'"], "binary": ["X''", "X'00ff80'"],
    "date": ["date'0001-01-01'", "date'1969-12-31'", "date'9999-12-31'"],
    "timestamp": ["timestamp'1969-12-31 23:59:59.999999'", "timestamp'2024-03-31 02:30:00 UTC'"],
    "timestamp_ntz": ["timestamp_ntz'1500-01-01 00:00:00.000001'"],
    "interval day to second": ["interval '-1 02:03:04.000005' day to second"]}


def typed(rng, depth=0):
    """A type as SQL has it, and values of it."""
    kind = rng.random()
    if depth > 2 or kind < 0.5:
        name = rng.choice(list(VALUES))
        return name, ["cast(%s as %s)" % (one, name) for one in VALUES[name]] + [
            "cast(null as %s)" % name]
    if kind < 0.75:
        name, values = typed(rng, depth + 1)
        kind = "array<%s>" % name
        rows = [rng.choices(values, k=rng.randrange(4)) for _ in range(3)]
        return kind, ["cast(array(%s) as %s)" % (", ".join(row), kind) for row in rows] + [
            "cast(null as %s)" % kind]
    parts = [(field, *typed(rng, depth + 1)) for field in rng.sample("abcdef", 2)]
    kind = "struct<%s>" % ", ".join("%s: %s" % (field, name) for field, name, _ in parts)
    rows = [[rng.choice(values) for _, _, values in parts] for _ in range(3)]
    return kind, ["cast(named_struct(%s) as %s)" % (", ".join(
        "'%s', %s" % (part[0], value) for part, value in zip(parts, row)), kind)
        for row in rows] + ["cast(null as %s)" % kind]


def frame_of(spark, columns, rng, rows=25):
    lines = [", ".join(rng.choice(values) for _, values in columns) for _ in range(rows)]
    names = ", ".join("c%d" % i for i in range(len(columns)))
    return spark.sql("select * from values %s t(%s)" % (
        ", ".join("(%s)" % line for line in lines), names))


def check(spark, out, df, **options):
    """Written by a session of another time zone."""
    spark.conf.set("spark.sql.session.timeZone", "America/St_Johns")
    try:
        write(df, out, **{"batch_size": 4, **options})
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    back = read(spark, out, layout="samples", **{"as": "array"})
    assert [(field.name, field.dataType.simpleString()) for field in back.schema] == [
        (field.name, field.dataType.simpleString()) for field in df.schema]
    assert back.exceptAll(df).count() == df.exceptAll(back).count() == 0
    assert back.count() == df.count()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.few(1)
def test_any_schema_comes_back(spark, out, seed):
    rng = random.Random(seed)
    df = frame_of(spark, [typed(rng) for _ in range(5)], rng).repartition(3)
    check(spark, out, df.localCheckpoint())


def test_every_type_comes_back(spark, out):
    rng = random.Random(1)
    columns = [(name, ["cast(%s as %s)" % (one, name) for one in values] +
                ["cast(null as %s)" % name]) for name, values in VALUES.items()]
    columns += [("array", ["array(%s)" % ", ".join(values)]) for _, values in columns]
    check(spark, out, frame_of(spark, columns, rng, 12).localCheckpoint(), batch_size=5)


def test_tensors_beside_types(spark, out):
    """Without as=array, numbers are tensors; what is more comes back as it was."""
    df = spark.sql("select array(1f, 2f) x, date'2024-01-01' d, named_struct('a', 'b') s")
    write(df, out, batch_size=1)
    back = read(spark, out, layout="samples")
    assert [field.dataType.simpleString() for field in back.schema] == [
        "struct<data:binary,shape:array<int>,dtype:string>", "date", "struct<a:string>"]
    fewer = read(spark, out, layout="samples", columns="s")
    assert fewer.collect()[0]["s"]["a"] == "b"
    told = holding.whole(out)["columns"]
    assert told["d"]["type"] == "date32[day]" and told["s"]["encoding"] == "nested"


@pytest.mark.skipif(not SOURCES, reason="a data source")
def test_a_schema_that_is_given(spark, out):
    df = spark.sql("select timestamp'2024-01-01 00:00:00 UTC' t, array('a', null) l, 1.50BD n")
    write(df, out, batch_size=1)
    reader = spark.read.format("safetensors").option("layout", "samples")
    back = reader.schema("l array<string>, t timestamp, n decimal(3,2)").load(out)
    assert back.exceptAll(df.select("l", "t", "n")).count() == 0
    for schema in ("t int", "l array<int>", "n decimal(2,2)"):
        with pytest.raises(Exception, match="(?s)%s: expected" % schema[0]):
            reader.schema(schema).load(out).collect()


@pytest.mark.parametrize("sql, word", [
    ("map('a', 1) x", "map"), ("array(map('a', 1)) x", "x.item: "), ("null x", "null"),
    ("named_struct('a', map(1, 2)) x", "x.a: "), ("named_struct('valid', 1) x", "x.valid")])
@pytest.mark.few(1)
def test_what_has_no_place_is_named(spark, out, sql, word):
    with pytest.raises(Exception, match="(?s)column .*" + word):
        write(spark.sql("select " + sql), out, batch_size=1)
    assert not os.path.exists(os.path.join(out, holding.MANIFEST))
