"""Second attempts of tasks that run alongside the first: Spark lets one of the two commit. The
other is killed while it writes, or has written all and is denied. Either way the old dataset is
whole until the commit, and what the loser wrote is never read."""
import glob
import json
import os
import time
import urllib.parse

import numpy as np
import pytest

import frames
import holding
from frames import ROWS, SCHEMA, WIDE, read, wide, write
from faults import ran, side_by_side, stalled

import libsafetensors.spark as lss

pytestmark = [pytest.mark.speculating, pytest.mark.long]


def noted(flags, name):
    with open(os.path.join(flags, name)) as file:
        return json.load(file)


def attempts(flags, partition):
    return len({task for _, part, _, task in ran(flags) if part == partition})


def gone(pid, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not os.path.exists("/proc/%d" % pid):
            return True
        time.sleep(0.1)
    return False


def complete(spark, path, mode):
    """All rows once; nothing but what the manifest names, at the latest after gc."""
    holding.swept(path)
    told = holding.whole(path)
    before = 40 if mode == "append" else 0
    assert told["total_samples"] == ROWS + before and told["version"] == 2
    got = holding.stacked(path)["x"]
    expected = frames.xs(ROWS, 0, WIDE)
    if before:
        expected = np.concatenate([expected, frames.xs(40, 10_000, WIDE)])
    assert np.array_equal(got[np.argsort(got[:, 0])], expected)
    assert read(spark, path, layout="samples").count() == len(expected)


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_loser_that_is_killed_while_it_writes(spark, old, flags, mode):
    number = 2 if mode == "overwrite" else 4  # there are 0 and 1 already
    rows = wide(spark).mapInArrow(stalled(old, flags, partition=2, number=number), SCHEMA)
    # The last eight files of a task wait for the disk: there must be more to see some.
    write(rows, old, mode, batch_size=2, columns="x")
    seen = noted(flags, "seen")
    losers = [name for name in seen["shards"] if name.startswith("part-%05d-" % number)]
    assert losers and seen["old"] and attempts(flags, 2) == 2
    assert gone(seen["pid"]), "the loser still runs"
    assert not set(losers) & set(holding.shards(old))
    complete(spark, old, mode)


def denied(spark):
    """How many attempts of this session were denied."""
    folder = urllib.parse.urlparse(spark.conf.get("spark.eventLog.dir")).path
    count = 0
    for name in glob.glob(os.path.join(folder, "*")):
        with open(name, encoding="utf-8") as file:
            count += sum('"SparkListenerTaskEnd"' in line and "denied" in line.lower()
                         for line in file)
    return count


@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_a_loser_that_has_written_all_and_is_denied(spark, old, tmp_path, mode):
    """Whether the loser asks before Spark knows that the winner is done is a matter of
    milliseconds: several partitions, and some tries."""
    for turn in range(8):
        flags = tmp_path / ("flags-%d" % turn)
        flags.mkdir()
        before = denied(spark)
        path = old if turn == 0 else old + " %d" % turn
        if turn:
            write(wide(spark, 40, 2, 10_000), path, batch_size=10, columns="x")
        rows = wide(spark).mapInArrow(side_by_side(path, str(flags), partitions=(2, 3)), SCHEMA)
        write(rows, path, mode, batch_size=10, columns="x")
        assert attempts(str(flags), 2) >= 2 and attempts(str(flags), 3) >= 2
        assert noted(str(flags), "seen-2") and noted(str(flags), "seen-3")
        complete(spark, path, mode)
        if denied(spark) > before:
            break
    else:
        raise AssertionError("no attempt was denied in 8 jobs")


def test_two_attempts_by_function(spark, old, tmp_path, flags):
    """There is no one to deny anything: Spark hands back the receipts of one of the two."""
    rows = wide(spark).mapInArrow(side_by_side(old, flags, partitions=(2, 3)), SCHEMA)
    lss.write_safetensors(rows, old, mode="overwrite", batch_size=10, columns="x")
    assert noted(flags, "seen-2") and attempts(flags, 2) >= 2
    complete(spark, old, "overwrite")
