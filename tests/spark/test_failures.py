"""Tasks, workers and executors that die: the old dataset stays whole, no file that is not
named is read, gc removes the rest, and what is committed nevertheless is complete."""
import os
import uuid

import numpy as np
import pytest

import frames
import holding
from frames import PARTS, ROWS, SCHEMA, WIDE, read, wide, write
from faults import killing, ran


# One of each mode and side of the task; make test-long has the other three.
KILLED = pytest.mark.parametrize("mode, who", [
    ("overwrite", "writer"), *(pytest.param(*case, marks=pytest.mark.long) for case in
                               (("append", "reader"), ("overwrite", "reader"), ("append", "writer")))])


def check(path, rows=ROWS, start=0):
    assert np.array_equal(holding.stacked(path)["x"], frames.xs(rows, start, WIDE))


def unharmed(spark, path, before):
    """The old dataset is unchanged, and files left behind are not read."""
    assert holding.snapshot(path) == before
    holding.whole(path, clean=False)
    assert read(spark, path, layout="files").count() == 4
    assert read(spark, path, layout="samples").count() == 40


@pytest.mark.parametrize("mode", ["overwrite", pytest.param("append", marks=pytest.mark.long)])
def test_a_failing_row_in_the_last_task(spark, old, mode):
    before = holding.snapshot(old)
    rows = wide(spark).selectExpr(
        "case when id = 399 then transform(x, v -> cast(null as float)) else x end x")
    with pytest.raises(Exception, match="null"):
        write(rows, old, mode, batch_size=2, columns="x", shapes='{"x": [1024]}')
    unharmed(spark, old, before)
    holding.swept(old)
    holding.whole(old)


@pytest.mark.parametrize("mode", [pytest.param("overwrite", marks=pytest.mark.long), "append"])
def test_a_failing_row_names_column_and_both_lengths(spark, old, mode):
    before = holding.snapshot(old)
    rows = wide(spark).selectExpr("case when id = 399 then slice(x, 1, 7) else x end x")
    with pytest.raises(Exception, match="x.*1024.*7|x.*7.*1024"):
        write(rows, old, mode, batch_size=2, columns="x", shapes='{"x": [1024]}')
    unharmed(spark, old, before)
    holding.swept(old)


@pytest.mark.source  # a function computes some rows first, and the fault would happen there
@pytest.mark.local
@KILLED
def test_a_killed_task_ends_the_job(spark, old, flags, mode, who):
    """local[2] tries each task once."""
    before = holding.snapshot(old)
    rows = wide(spark).mapInArrow(killing(who, old, flags, partition=1), SCHEMA)
    with pytest.raises(Exception):
        write(rows, old, mode, batch_size=2, columns="x")
    assert "killed-0" in os.listdir(flags) and "shards-seen-0" in os.listdir(flags)
    unharmed(spark, old, before)
    holding.swept(old)
    holding.whole(old)


@pytest.mark.cluster
@KILLED
def test_a_killed_task_is_tried_again(spark, old, flags, mode, who):
    rows = wide(spark).mapInArrow(killing(who, old, flags, partition=1), SCHEMA)
    write(rows, old, mode, batch_size=2, columns="x")
    assert "shards-seen-0" in os.listdir(flags)
    if frames.SOURCES:  # else the fault may have happened while the first rows were computed
        assert sorted(part for _, part, attempt, _ in ran(flags) if attempt) == [1]
    told = holding.whole(old)  # the job's folder is gone, with what was half written
    if mode == "overwrite":
        check(old)
        assert told["total_samples"] == ROWS
    else:
        assert told["total_samples"] == ROWS + 40 and told["version"] == 2
    assert read(spark, old, layout="samples").count() == told["total_samples"]


@pytest.mark.long
@pytest.mark.source
@pytest.mark.cluster
def test_a_task_that_is_killed_each_time(spark, old, flags):
    before = holding.snapshot(old)
    rows = wide(spark).mapInArrow(killing("writer", old, flags, partition=1, times=4), SCHEMA)
    with pytest.raises(Exception):
        write(rows, old, batch_size=2, columns="x")
    assert {"killed-%d" % turn for turn in range(4)} <= set(os.listdir(flags))
    unharmed(spark, old, before)
    holding.swept(old)
    holding.whole(old)


@pytest.mark.cluster
@pytest.mark.parametrize("mode", [pytest.param("overwrite", marks=pytest.mark.long), "append"])
def test_a_killed_executor(spark, old, flags, mode):
    rows = wide(spark).mapInArrow(killing("executor", old, flags, partition=1), SCHEMA)
    write(rows, old, mode, batch_size=2, columns="x")
    assert "shards-seen-0" in os.listdir(flags)
    told = holding.manifest(old)
    assert told["total_samples"] == ROWS + (40 if mode == "append" else 0)
    # The writer may outlive its executor for a moment, and write below a folder that is gone.
    holding.swept(old)
    holding.whole(old)
    if mode == "overwrite":
        check(old)


@pytest.mark.long
@pytest.mark.cluster
def test_a_retried_stage(spark, old, flags):
    """The executor's shuffle files go with it: the stage before runs again, and so does the
    part of this one that is not done."""
    shuffled = wide(spark).repartition(PARTS, "id")
    rows = shuffled.mapInArrow(killing("executor", old, flags, partition=3), SCHEMA)
    write(rows, old, batch_size=2, columns="x")
    assert "killed-0" in os.listdir(flags)
    holding.swept(old)
    told = holding.whole(old)
    assert told["total_samples"] == ROWS
    got = holding.stacked(old)["x"]
    assert np.array_equal(got[np.argsort(got[:, 0])], frames.xs(ROWS, 0, WIDE))


@pytest.mark.long
@pytest.mark.cluster
def test_a_killed_executor_by_function(spark, old, flags):
    import libsafetensors.spark as lss
    rows = wide(spark).mapInArrow(killing("executor", old, flags, partition=1), SCHEMA)
    lss.write_safetensors(rows, old, mode="overwrite", batch_size=2, columns="x")
    holding.swept(old)
    holding.whole(old)
    check(old)


@pytest.mark.long
def test_what_dead_jobs_leave_is_not_read(spark, old):
    """A job whose driver died, so that it is never aborted."""
    job = os.path.join(old, "_job-%s" % uuid.uuid4())
    os.mkdir(job)
    name = holding.shards(old)[0]
    with open(os.path.join(old, name), "rb") as whole:
        data = whole.read()
    with open(os.path.join(job, name), "wb") as half:
        half.write(data[:-1000])
    before = holding.snapshot(old)
    unharmed(spark, old, before)
    write(wide(spark), old, "append", batch_size=10, columns="x")
    assert os.path.isdir(job), "another job's folder was removed"
    assert holding.swept(old) == [os.path.relpath(os.path.join(job, name), old)]
    assert holding.whole(old)["total_samples"] == ROWS + 40


@pytest.mark.local
@pytest.mark.parametrize("source", [pytest.param(True, marks=pytest.mark.source), False])
@pytest.mark.few(1)
def test_nothing_fails_after_the_commit_point(spark, old, source):
    """An old shard that cannot be removed: were commit to raise, Spark would call abort."""
    import libsafetensors.spark as lss
    name = os.path.join(old, holding.shards(old)[0])
    os.remove(name)
    os.makedirs(os.path.join(name, "not empty"))
    if source:
        write(wide(spark), old, batch_size=10, columns="x", keep_old=0)
    else:
        lss.write_safetensors(wide(spark), old, mode="overwrite", batch_size=10, columns="x",
                              keep_old=0)
    assert os.path.isdir(name)
    os.removedirs(os.path.join(name, "not empty"))
    assert holding.whole(old)["version"] == 2
    check(old)


@pytest.mark.long
def test_a_duplicate_in_another_task(spark, out):
    """Found by the commit, when all tasks have succeeded; nothing is published."""
    df = frames.frame(spark, 100, 4)
    write(df, out, name_col="name", columns="x")
    before = holding.snapshot(out)
    twice = df.selectExpr("case when id = 99 then 'row0' else name end name", "x")
    with pytest.raises(Exception, match="row0__x"):
        write(twice, out, name_col="name", columns="x")
    assert holding.snapshot(out) == before
    with pytest.raises(Exception, match="row[0-9]+__x"):
        write(df, out, "append", name_col="name", columns="x")
    assert holding.snapshot(out) == before
    holding.swept(out)
    holding.whole(out)


def test_two_jobs_at_once(spark, out):
    """Two appends both land. In a thread of its own Spark does not look for sources."""
    from concurrent.futures import ThreadPoolExecutor

    import libsafetensors.spark as lss
    write(frames.frame(spark, 20, 2), out, batch_size=10, columns="x")
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(lss.write_safetensors, frames.frame(spark, 20, 2, 20), out,
                            mode="append", batch_size=10, columns="x")
        write(frames.frame(spark, 20, 2, 40), out, "append", batch_size=10, columns="x")
        other.result()
    told = holding.whole(out)
    assert told["version"] == 3 and told["total_samples"] == 60
    got = holding.stacked(out)["x"]
    assert np.array_equal(got[np.argsort(got[:, 0])], frames.xs(60))
