"""torchrun itself: ranks that are killed and go on as more or fewer ranks read each row once."""
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys

import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

RANK = pathlib.Path(__file__).with_name("dataset_rank.py")
TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
SIZES = {"a": 391, "b": 97}
EVERY = 4
EPOCHS = 2
pytestmark = [pytest.mark.long,
              pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="no gloo")]


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    for i, (name, rows) in enumerate(SIZES.items()):
        dataset.write(pa.table({"c": range(1000 * i, 1000 * i + rows)}), folder / name,
                      batch_size=13)
    return folder


def torchrun(plan, ranks):
    """Whether all ranks ended well; otherwise one killed itself, as planned."""
    path = pathlib.Path(plan["folder"], "plan.json")
    path.parent.mkdir()
    path.write_text(json.dumps(plan))
    process = subprocess.Popen(
        [TORCHRUN, "--standalone", "--nproc-per-node", str(ranks), RANK, path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        told, _ = process.communicate(timeout=300)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    assert (process.returncode == 0) == (plan["kill"] is None), told
    assert plan["kill"] is None or "SIGKILL" in told or "exitcode  : -9" in told, told


def given(folder, ranks, steps=None):
    """Epoch and row of all that ranks were given, in so many steps."""
    for rank in range(ranks):
        for line in (folder / ("told-%d" % rank)).read_text().splitlines():
            epoch, step, rows = json.loads(line)
            if steps is None or step <= steps:
                yield from ((epoch, row) for row in rows)


@pytest.mark.parametrize("kind, partition, workers, worlds", [
    ("one", "shards", 0, (2, 4, 2)), ("one", "shards", 2, (4, 2, 3)),
    ("one", "batches", 1, (2, 4, 2)), ("mix", "shards", 0, (4, 2, 4)),
    ("mix", "shards", 1, (2, 4, 2)), ("mix", "batches", 0, (4, 2, 4))])
def test_each_row_once(paths, tmp_path, kind, partition, workers, worlds):
    """A rank kills itself in the first epoch, and one of those that go on in the first or second;
    the last ones end both. What was given after a checkpoint comes again."""
    dice = random.Random("%s %s %d" % (kind, partition, worlds[0]))
    source = {"mix": [(str(paths / "a"), 2), (str(paths / "b"), 1)]} if kind == "mix" else \
        {"path": str(paths / "a")}
    options = {"partition": partition, "seed": 3, "open_shards": 4}
    seen, state = collections.Counter(), None
    for run, ranks in enumerate(worlds):
        folder, kill = tmp_path / str(run), None
        if run < 2:
            kill = [dice.randrange(ranks), dice.randrange(EVERY + 1, 24)]
        torchrun({"folder": str(folder), "options": options, "workers": workers, "epochs": EPOCHS,
                  "every": EVERY, "state": state, "kill": kill, **source}, ranks)
        if kill is None:
            seen.update(given(folder, ranks))
            break
        steps, state = json.loads((folder / "checkpoint").read_text())
        assert steps == (kill[1] - 1) // EVERY * EVERY and state["delivered"] > 0
        for rank in range(1, ranks):
            assert json.loads((folder / ("state-%d" % rank)).read_text()) == [steps, state]
        seen.update(given(folder, ranks, steps))
    made = dataset.TorchBatches(
        dataset.Mix(source["mix"], until="all_exhausted") if kind == "mix" else source["path"], 4,
        ends="uneven", rank=0, ranks=1, **options)
    want = collections.Counter((epoch, row) for epoch in range(EPOCHS)
                               for batch in made for row in batch["c"].tolist())
    assert seen == want
    if kind == "one":
        assert set(want.values()) == {1} and len(want) == EPOCHS * SIZES["a"]
