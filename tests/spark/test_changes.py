"""A dataset that changes after Spark has planned a DataFrame of it; errors as Spark shows them."""
import os
import re

import pytest

pyspark = pytest.importorskip("pyspark")

import holding  # noqa: E402
from frames import frame, read, write  # noqa: E402

import libsafetensors.spark as st  # noqa: E402
from libsafetensors import SafetensorError, dataset  # noqa: E402
from libsafetensors.spark import _session  # noqa: E402

KEEPS_PLAN = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)
keeps_plan = pytest.mark.skipif(not KEEPS_PLAN, reason="plans each time it runs")
pytestmark = [pytest.mark.source, pytest.mark.local]
CHANGED = r"the dataset has changed since this DataFrame or view was planned; read it again " \
          r"with spark\.read"


def told(do):
    """What an error says, which is no traceback."""
    with pytest.raises(Exception) as caught:
        do()
    text = str(caught.value)
    assert "Traceback" not in text and 'File "' not in text, text
    return text


def replaced(spark, out):
    write(frame(spark, 40), out, batch_size=10, columns="n")


def compacted(spark, out):
    """The old files go, the rows stay."""
    dataset.compact(out, target_bytes=1 << 30)


# ── The dataset changes ──

def test_an_append_is_seen_after_reopening(spark, out):
    write(frame(spark, 40), out, batch_size=10, columns="n")
    df = read(spark, out, layout="samples")
    df.createOrReplaceTempView("rows_of_before")
    assert df.count() == 40
    write(frame(spark, 40, start=40), out, mode="append", batch_size=10, columns="n")
    spark.sql("REFRESH TABLE rows_of_before")
    spark.catalog.refreshByPath(out)
    # As docs/spark.md says: the files of the first planning, whole, or of the last.
    seen = 40 if KEEPS_PLAN else 80
    assert df.count() == spark.table("rows_of_before").count() == seen
    assert df.select("n").count() == seen
    assert read(spark, out, layout="samples").count() == 80


@keeps_plan
@pytest.mark.parametrize("change", [replaced, compacted])
@pytest.mark.few(1)
def test_files_that_are_gone(spark, out, change):
    for start in (0, 40):
        write(frame(spark, 40, start=start), out, mode="append" if start else "overwrite",
              name_col="name", columns="n")
    df = read(spark, out, layout="tensors")
    df.createOrReplaceTempView("files_of_before")
    assert df.count() == 80
    change(spark, out)
    assert len(df.collect()) == 80  # of the version before, which is kept
    holding.forget(out)
    for do in (df.collect, spark.table("files_of_before").collect):
        text = told(do)
        assert re.search(CHANGED + r" \(part-\S+: replaced \(version 2 to 3\) while reading\)",
                         text), text
    now = read(spark, out, layout="tensors")
    assert len(now.collect()) == (4 if change is replaced else 80)


@keeps_plan
def test_a_folder_that_is_gone(spark, out):
    write(frame(spark, 40), out, batch_size=10, columns="n")
    df = read(spark, out, layout="samples")
    assert df.count() == 40
    os.rename(out, out + "-moved")
    assert re.search("changed since this DataFrame .* see its folder; read it again",
                     told(df.collect))


# ── Errors ──

def test_errors_of_planning_are_one_sentence(spark, out):
    write(frame(spark, 40), out, batch_size=10, columns="n")
    for do, words in [
            (lambda: read(spark, out, layout="rows"),
             "ValueError: layout: expected one of files, samples, tensors, found 'rows'"),
            (lambda: read(spark, out, laiout="files"),
             r"ValueError: unknown option laiout; did you mean layout\?"),
            (lambda: read(spark, out + "-none"),
             "FileNotFoundError: .*expected dataset_manifest.json in the folder, found none"),
            (lambda: read(spark, out, columns="y"), "ValueError: columns: expected some of n"),
            (lambda: spark.read.format("safetensors").schema("y bigint").load(out).collect(),
             "ValueError: schema: expected"),
            (lambda: spark.read.format("safetensors").schema("n string").load(out).collect(),
             "ValueError: n: expected"),
            (lambda: write(frame(spark), out + "2", batch_size="x"),
             'ValueError: option batch_size: expected a number of rows from 1 on, found "x"'),
            (lambda: write(frame(spark), out, mode="append", batch_size=10, columns="x"),
             "ValueError: .*expected .*columns of the dataset")]:
        text = told(do)
        assert re.search(words, text), text
        # Spark's own words about it before, its state behind: no other line.
        assert len([line for line in text.splitlines() if line.strip()]) <= 2, text


def test_errors_of_tasks_are_one_sentence(spark, out):
    bad = frame(spark, 40).selectExpr("name", "if(id = 33, null, n) n")
    words = 'ValueError: .*column "n", row [0-9]+: expected a value, found null'
    for do in (lambda: write(bad, out, name_col="name"),
               lambda: st.write_safetensors(bad, out, name_col="name")):
        assert re.search(words, told(do))
    assert not os.path.exists(out) or not [one for one in os.listdir(out) if "part-" in one]
    st.register(spark)
    assert re.search("ValueError: arr_to_st: expected 3 elements for shape",
                     told(spark.sql("SELECT arr_to_st(array(1f, 2f), array(3), 'F32')").collect))
    # A task after one that has failed shows what others do wrong, as before.
    def broken(batches):
        raise TypeError("of the program")
    with pytest.raises(Exception, match="(?s)Traceback.*of the program"):
        frame(spark, 4).mapInArrow(broken, "id bigint").collect()


def test_only_what_is_expected_hides_its_traceback(monkeypatch):
    monkeypatch.delenv("SPARK_HIDE_TRACEBACK", raising=False)

    def after(error, worker):
        monkeypatch.setattr(_session, "_in_worker", lambda: worker)
        with pytest.raises(type(error)), _session.with_hints():
            raise error
        return os.environ.pop("SPARK_HIDE_TRACEBACK", None)

    assert after(ValueError("x"), False) is None
    for error in (ValueError("x"), FileNotFoundError("x"), SafetensorError("x")):
        assert after(error, True) == "1"
    for error in (TypeError("x"), AttributeError("x"), ZeroDivisionError("x")):
        assert after(error, True) is None
    error = SafetensorError("x")
    error.hint = "do that"
    for _ in range(2):  # told once, by however many
        after(error, False)
    assert str(error) == "x (do that)"
