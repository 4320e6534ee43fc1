"""partition="shards": each row once, shards of one's own, and states under other numbers of ranks
and workers."""
import collections
import itertools
import os
import re
import sys
import threading

import numpy as np
import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

from libsafetensors.dataset._lanes import lanes_of, parts_of  # noqa: E402
from libsafetensors.dataset._order import Order  # noqa: E402

ROWS = 103
DOCS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "dataset.md")
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
SIZES = [10] * 10 + [3]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dataset")
    dataset.write(pa.table({"c": range(ROWS)}), path, batch_size=10)
    return path


def batches(path, **options):
    return dataset.TorchBatches(path, 4, **{"seed": 5, "partition": "shards", "ends": "uneven",
                                            **options})


def order(ends="uneven", shuffle="blocks", sizes=SIZES, size=4, seed=5, width=3):
    return Order(sum(sizes), size, shuffle, seed, ends, sizes, width)


def read(line, ranks, begun=0, most=None):
    """Batches of each rank."""
    return [[line.batch(rank, i).tolist()
             for i in range(begun, min(line.steps(rank), begun + (most or 1 << 40)))]
            for rank in range(ranks)]


def flat(found):
    return [row for rank in found for batch in rank for row in batch]


@pytest.mark.parametrize("ends", ["drop", "pad", "uneven"])
@pytest.mark.parametrize("shuffle", [False, "shards", "blocks"])
@pytest.mark.parametrize("ranks, workers", [(1, 1), (1, 3), (2, 2), (3, 1), (4, 5), (30, 2)])
def test_each_row_once(ends, shuffle, ranks, workers):
    made = order(ends, shuffle)
    line, done = lanes_of(made, 3, [], ranks, workers)
    assert done == 0
    found = read(line, ranks)
    assert [len(one) for one in found] == [made.steps(0, rank, ranks) for rank in range(ranks)]
    times = collections.Counter(flat(found))
    if ends == "uneven":
        assert set(times.values()) == {1} and len(times) == ROWS
    elif ends == "drop":
        assert set(times.values()) <= {1} and ROWS - len(times) < 4 * ranks
    else:
        assert len(times) == ROWS and {len(batch) for one in found for batch in one} == {4}
        assert sum(times.values()) - ROWS < 4 * ranks


def test_padding_goes_on():
    """With the first rows, over as many lanes as it fills."""
    line, _ = lanes_of(order("pad", False, sizes=[10]), 0, [], 5, 1)
    assert flat(read(line, 5)) == [i % 10 for i in range(20)]


@pytest.mark.parametrize("shuffle", [False, "shards", "blocks"])
@pytest.mark.parametrize("ranks, workers", [(1, 2), (2, 2), (2, 4), (5, 1)])
def test_shards_have_one_reader(shuffle, ranks, workers):
    """But for those at the border of two lanes; lanes have as many rows as others, by a batch."""
    made = order(shuffle=shuffle, sizes=[40] * 37 + [11])
    line, _ = lanes_of(made, 0, [], ranks, workers)
    readers, rows = set(), collections.Counter()
    for rank in range(ranks):
        for i in range(line.steps(rank)):
            for row in line.batch(rank, i):
                readers.add((int(row) // 40, rank, i % workers))
                rows[rank, i % workers] += 1
    assert len(readers) < 38 + ranks * workers
    assert max(rows.values()) - min(rows.values()) <= 2 * 4


def test_rows_are_mixed_and_epochs_differ():
    made = order(sizes=[50] * 8)
    first = flat(read(lanes_of(made, 0, [], 2, 1)[0], 2))
    assert first != flat(read(lanes_of(made, 1, [], 2, 1)[0], 2))
    assert first != flat(read(lanes_of(order(sizes=[50] * 8, seed=6), 0, [], 2, 1)[0], 2))
    assert first == flat(read(lanes_of(order(sizes=[50] * 8), 0, [], 2, 1)[0], 2))
    window = [len({row // 50 for row in first[at:at + 40]}) for at in range(0, 160, 40)]
    assert min(window) >= 2 and max(window) <= 4, window


@pytest.mark.parametrize("shuffle", [False, "shards", "blocks"])
@pytest.mark.parametrize("ends", ["drop", "pad", "uneven"])
@pytest.mark.few(2)
def test_changed_numbers(shuffle, ends):
    """Whatever ranks and workers read parts of an epoch: together each row once."""
    dice = torch.Generator().manual_seed(3)
    for _ in range(12):
        made, parts, seen = order(ends, shuffle), [], []
        for _ in range(4):
            ranks, workers, steps = (int(torch.randint(1, most, (), generator=dice))
                                     for most in (5, 4, 6))
            line, done = lanes_of(made, 2, parts, ranks, workers)
            steps = min(steps, max(line.steps(rank) for rank in range(ranks)) - done)
            if steps <= 0:
                break
            seen += flat(read(line, ranks, done, steps))
            same = parts and parts[-1][:2] == (ranks, workers)
            parts = parts[:-1] + [(ranks, workers, done + steps)] if same \
                else parts + [(ranks, workers, steps)]
        line, done = lanes_of(made, 2, parts, 1, 1)
        seen += flat(read(line, 1, done))
        times = collections.Counter(seen)
        if ends == "drop":
            assert set(times.values()) <= {1} and ROWS - len(times) < 4, (parts, times)
        else:
            assert len(times) == ROWS, parts
        if ends == "uneven":
            assert set(times.values()) == {1}, (parts, times)


def test_the_figures_of_the_documentation():
    with open(DOCS, encoding="utf-8") as file:
        told = re.findall(r"^\| (\d+) × (\d+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \|$",
                          file.read(), re.MULTILINE)
    assert len(told) == 3
    for one in told:
        ranks, workers, width = map(int, one[:3])
        line, _ = lanes_of(order(sizes=[1024] * 128, size=100, seed=1, width=width), 0, [], ranks,
                           workers)
        steps = [[line.batch(rank, i) for rank in range(ranks) if i < line.steps(rank)]
                 for i in range(line.steps(0))]
        place = np.empty(1024 * 128, np.int64)
        place[np.concatenate(sum(steps, []))] = np.arange(len(place))
        each = np.mean([len(np.unique(batch // 1024)) for step in steps for batch in step])
        step = np.mean([len(np.unique(np.concatenate(step) // 1024)) for step in steps[:-1]])
        near = np.abs(np.diff(place.reshape(128, 1024), axis=1)).mean()
        assert ("%.1f" % each, "%.1f" % step, "%.0f" % near) == one[3:]


# ── Loaders ──

def numbers(found, most=None):
    return [batch["c"].tolist() for batch in itertools.islice(found, most)]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.few(1)
def test_resumed_as_before(path, workers):
    want = numbers(batches(path).loader(num_workers=workers))
    assert sorted(sum(want, [])) == list(range(ROWS))
    for stop in (1, 8, 25):
        loader = batches(path).loader(num_workers=workers)
        seen = numbers(loader, stop)
        state = loader.state_dict()
        for _ in range(2):  # a state of a state
            loader = batches(path).loader(num_workers=workers)
            loader.load_state_dict(state)
            state = loader.state_dict()
        assert seen + numbers(loader) == want, stop


def test_resumed_with_others(path):
    seen = []
    parts = ((3, 0, 2), (2, 2, 3), (1, 1, 2), (4, 3, 9))
    state = None
    for ranks, workers, most in parts:
        states = []
        for rank in range(ranks):
            loader = batches(path, rank=rank, ranks=ranks).loader(num_workers=workers)
            if state is not None:
                loader.load_state_dict(state)
            seen += numbers(loader, most)
            states.append(loader.state_dict())
        assert ranks == 4 or all(one == states[0] for one in states)
        state = states[0]
    assert sorted(sum(seen, [])) == list(range(ROWS))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_stateful_data_loader(path, workers):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return torchdata.StatefulDataLoader(batches(path), batch_size=None, num_workers=workers)
    want = numbers(make())
    for stop in (1, 8, 24):
        loader = make()
        seen = numbers(loader, stop)
        resumed = make()
        resumed.load_state_dict(loader.state_dict())
        assert seen + numbers(resumed) == want, stop


def test_epochs_follow(path):
    loader = batches(path).loader(num_workers=2)
    first, second = numbers(loader), numbers(loader)
    assert first != second and sorted(sum(second, [])) == list(range(ROWS))
    loader.set_epoch(0)
    assert numbers(loader) == first


def test_workers_that_load_the_same(path):
    """One may read the parts while another writes the same again."""
    made, parts, ended = batches(path), [(2, 3, 4), (1, 2, 1)], threading.Event()

    def write():
        while not ended.is_set():
            made._set_place(0, 24, 0, parts)
    made._set_place(0, 24, 0, parts)
    interval, writer = sys.getswitchinterval(), threading.Thread(target=write)
    sys.setswitchinterval(1e-6)
    try:
        writer.start()
        assert all(made._earlier() == parts for _ in range(2000))
    finally:
        ended.set()
        writer.join()
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("parts, words", [
    (None, "parts: expected a list"), ([[1, 1]], "parts: expected ranks"),
    ([[0, 1, 1]], "parts: expected ranks"), ([[1, 1, -1]], "parts: expected ranks"),
    ([[1 << 30, 1, 1]], "parts: expected ranks"), ([[1, True, 1]], "parts: expected ranks"),
    ([[1, 1, 1]] * 33, "parts: expected a list")])
def test_states_that_cannot_be(path, parts, words):
    state = batches(path).state_dict()
    assert state["parts"] == [] and parts_of(state) == []
    state["parts"] = parts
    with pytest.raises(ValueError, match=words):
        batches(path).load_state_dict(state)


def test_one_part_too_many():
    """Is refused before any batch, not when its state is loaded."""
    parts = [(1, 1 + i % 2, 1) for i in range(32)]
    _, done = lanes_of(order(sizes=[10] * 30), 0, parts, 1, 2)
    assert done == 1 and len(parts_of({"parts": [list(part) for part in parts]})) == 32
    with pytest.raises(ValueError, match="at most 32 different numbers"):
        lanes_of(order(sizes=[10] * 30), 0, parts, 1, 3)


def test_states_of_the_other_partition(path):
    for one, other in (("shards", "batches"), ("batches", "shards")):
        state = batches(path, partition=one).state_dict()
        with pytest.raises(ValueError, match="partition: the state is of '%s'" % one):
            batches(path, partition=other, shuffle="blocks").load_state_dict(state)
    with pytest.raises(ValueError, match="partition: expected batches or shards"):
        batches(path, partition="rows")


def test_empty(tmp_path):
    dataset.write(pa.table({"c": pa.array([], pa.int64())}), tmp_path, batch_size=4)
    assert numbers(batches(tmp_path)) == []
