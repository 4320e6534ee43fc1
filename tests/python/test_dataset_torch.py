"""Datasets for torch: the order of batches, in any number of processes and ranks."""
import copy
import itertools
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

from libsafetensors.dataset._order import shuffled  # noqa: E402
from libsafetensors.dataset._torch import _Rounds  # noqa: E402

ROWS = 103
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dataset")
    table = pa.table({"c": range(ROWS),
                      "x": pa.array([[float(i), -float(i)] for i in range(ROWS)],
                                    pa.list_(pa.float32(), 2))})
    dataset.write(table, path, batch_size=10, tail_strategy="pad", dtype={"x": "BF16"})
    return path


def numbers(batches, most=None):
    return [batch["c"].tolist() for batch in itertools.islice(batches, most)]


def batches(path, **options):
    return dataset.TorchBatches(path, 4, **{"seed": 5, **options})


# ── The order ──

@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 17, 64, 1000, 65537])
def test_it_is_a_permutation(count):
    for key in range(3):
        found = shuffled(range(count), count, key)
        assert np.array_equal(np.sort(found), np.arange(count))
        some = np.arange(0, count, 7)
        assert np.array_equal(shuffled(some, count, key), found[some])


def test_it_is_the_same_for_ever():
    """States in people's checkpoints rely on it."""
    assert shuffled(range(10), 10, 1).tolist() == SAME_FOR_EVER


SAME_FOR_EVER = [2, 0, 7, 4, 6, 5, 8, 9, 1, 3]


def test_it_looks_random():
    """Where neighbours go, and where each place goes over many keys."""
    count = 1000
    found = np.array([shuffled(range(count), count, key) for key in range(300)])
    steps = np.diff(found, axis=1)
    assert len(np.unique(steps)) > 1900 and abs(np.corrcoef(found[0], range(count))[0, 1]) < 0.1
    tenths = np.histogram(found[:, 123], bins=10, range=(0, count))[0]
    assert tenths.min() >= 12 and tenths.max() <= 50


@pytest.mark.parametrize("shuffle", [True, "shards", "blocks", False])
def test_an_epoch_has_each_row_once(path, shuffle):
    epochs = []
    source = batches(path, shuffle=shuffle, ends="uneven")
    for epoch in range(3):
        assert source.epoch == epoch
        epochs.append(sum(numbers(source), []))
        assert sorted(epochs[-1]) == list(range(ROWS))
    assert (epochs[0] != epochs[1] != epochs[2]) == bool(shuffle)
    if shuffle == "shards":
        shards = [number // 10 for number in epochs[0]]
        assert len([1 for a, b in zip(shards, shards[1:]) if a != b]) == 10
    other = batches(path, shuffle=shuffle, seed=6, ends="uneven")
    assert (sum(numbers(other), []) != epochs[0]) == bool(shuffle)


def test_values_are_those_of_the_rows(path):
    for batch in batches(path):
        assert batch["x"].dtype == torch.bfloat16 and batch["x"].shape == (4, 2)
        assert batch["x"][:, 0].tolist() == batch["c"].tolist()
        batch["x"].zero_()  # its own memory
    assert numbers(batches(path))[0] == numbers(batches(path, transform=lambda batch: batch))[0]


# ── Processes ──

@pytest.mark.parametrize("shuffle, ends", [
    pytest.param(shuffle, ends, marks=[] if ends == "drop" or shuffle is True else pytest.mark.long)
    for shuffle in (True, "shards", "blocks", False) for ends in ("drop", "pad", "uneven")])
@pytest.mark.few(1)
def test_any_number_of_workers_delivers_the_same(path, shuffle, ends):
    want = None
    for workers in (0, 1, 3):
        loader = batches(path, shuffle=shuffle, ends=ends).loader(num_workers=workers)
        found = [numbers(loader), numbers(loader)]
        assert len(found[0]) == len(loader) == {"drop": 25, "pad": 26, "uneven": 26}[ends]
        assert want in (None, found)
        want = found


@pytest.mark.parametrize("options", [
    pytest.param({"persistent_workers": True}, id="kept"),
    pytest.param({"multiprocessing_context": "forkserver", "persistent_workers": True},
                 id="forkserver-kept"),
    # Each of its iterations starts Python anew.
    pytest.param({"multiprocessing_context": "spawn"}, id="spawn", marks=pytest.mark.long)])
@pytest.mark.few(1)
def test_workers_of_all_kinds(path, options):
    want = numbers(batches(path))
    plain = torch.utils.data.DataLoader(batches(path), batch_size=None, num_workers=2)
    assert numbers(plain) == want
    loader = batches(path).loader(num_workers=2, **options)
    assert numbers(loader) == want
    assert numbers(loader) != want and loader.epoch == 2
    loader.set_epoch(0)
    assert numbers(loader) == want


@pytest.mark.parametrize("first, then", [
    (0, 2), (3, 0), *(pytest.param(*case, marks=pytest.mark.long)
                      for case in ((0, 0), (1, 0), (1, 2), (3, 2)))])
@pytest.mark.few(1)
def test_resumed_with_other_workers(path, first, then):
    want = batches(path).loader()
    want = [numbers(want), numbers(want)]
    for stop in (0, 1, 7, 25):
        loader = batches(path).loader(num_workers=first)
        seen = []
        for batch in loader if stop else ():
            seen.append(batch["c"].tolist())
            if len(seen) == stop:
                break
        state = loader.state_dict()
        assert state["delivered"] == stop
        resumed = batches(path, seed=99).loader(num_workers=then)
        resumed.load_state_dict(state)
        assert seen + numbers(resumed) == want[0]
        assert numbers(resumed) == want[1]


def test_workers_that_begin_at_once_begin_the_same_iteration():
    """Threads stand for new processes; whichever looks first, all get one number."""
    rounds, workers, found = _Rounds(), 3, []
    gate = threading.Barrier(workers)

    def work(number):
        mine = []
        for iteration in range(300):
            each = copy.copy(rounds)
            gate.wait()
            mine.append(each.begin(SimpleNamespace(id=number, num_workers=workers,
                                                   seed=1000 * iteration + number)))
            gate.wait()
        found.append(mine)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == [list(range(1, 301))] * workers


def test_more_workers_with_the_same_base_seed_begin_another_iteration():
    rounds = _Rounds()

    def begin(numbers, workers):
        return [copy.copy(rounds).begin(SimpleNamespace(id=number, num_workers=workers,
                                                        seed=7 + number)) for number in numbers]

    assert begin([0, 1], 2) == [1, 1]
    assert begin([3, 2, 0, 1], 4) == [2] * 4  # the new ones first
    assert begin([1, 0], 2) == [3, 3]
    assert begin([2, 3, 1, 0], 4) == [4] * 4
    assert begin([0], 1) == [5]
    assert begin([1, 0], 2) == [6, 6]


# ── Ranks ──

def by_ranks(path, ranks, state=None, most=None, **options):
    """Batches of all ranks in the order of the sequence, and a rank's state."""
    loaders = [batches(path, rank=rank, ranks=ranks, **options).loader()
               for rank in range(ranks)]
    found, told = [], None
    for loader in loaders:
        if state:
            loader.load_state_dict(state)
        each = iter(loader)
        found.append(numbers(each, most))
        told = loader.state_dict()
    return [batch for step in itertools.zip_longest(*found) for batch in step
            if batch is not None], told, [len(one) for one in found]


@pytest.mark.parametrize("ends, counts", [("drop", [8, 8, 8]), ("pad", [9, 9, 9]),
                                          ("uneven", [9, 9, 8])])
def test_ranks_share_one_sequence(path, ends, counts):
    whole = numbers(batches(path, ends="uneven"))
    found, _, lengths = by_ranks(path, 3, ends=ends)
    assert lengths == counts
    assert [len(batches(path, ends=ends, rank=i, ranks=3)) for i in range(3)] == counts
    if ends == "drop":
        assert found == whole[:24]
    elif ends == "uneven":
        assert found == whole
    else:
        assert found[:25] == whole[:25] and {len(batch) for batch in found} == {4}
        rest = sum(whole, [])
        assert sum(found, []) == (rest + rest)[:27 * 4]


@pytest.mark.parametrize("then", [1, 2, 4])
def test_resumed_with_other_ranks(path, then):
    whole = numbers(batches(path, ends="uneven"))
    begun, state, _ = by_ranks(path, 3, most=3, ends="uneven")
    assert state["delivered"] == 9
    rest, _, _ = by_ranks(path, then, state, ends="uneven")
    assert begun + rest == whole


def test_ranks_of_torch_distributed(path, tmp_path):
    if not torch.distributed.is_available():
        pytest.skip("torch without distributed")
    torch.distributed.init_process_group("gloo", "file://%s" % (tmp_path / "store"), rank=0,
                                         world_size=1)
    try:
        assert (batches(path).rank, batches(path).ranks) == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


# ── torchdata ──

@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.few(1)
def test_stateful_data_loader(path, workers):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return torchdata.StatefulDataLoader(batches(path), batch_size=None, num_workers=workers)
    want = numbers(make())
    assert want == numbers(batches(path))
    for stop in (1, 8, 24):
        loader = make()
        seen = numbers(loader, stop)
        state = loader.state_dict()
        resumed = make()
        resumed.load_state_dict(state)
        assert seen + numbers(resumed) == want, stop


# ── Map style ──

def test_map_style(path):
    source = dataset.TorchDataset(path)
    assert len(source) == ROWS
    assert source[7]["x"].tolist() == [7, -7] and source[7]["c"].dtype == torch.int64
    loader = torch.utils.data.DataLoader(source, batch_size=5, shuffle=True, num_workers=2)
    assert sorted(sum(numbers(loader), [])) == list(range(ROWS))
    doubled = dataset.TorchDataset(path, transform=lambda row: row["c"] * 2)
    assert [int(value) for value in (doubled[1], doubled[50])] == [2, 100]


def test_one_row_owns_its_memory(path):
    """Like many: it may be written to, and the file does not change."""
    source = dataset.open(path)
    for number in (0, 9, 10, ROWS - 1, -1):
        alone, many = source.take([number], "torch"), source.take([number] * 2, "torch")
        assert alone.keys() == many.keys()
        for name in alone:
            assert alone[name].shape == (1, *many[name].shape[1:])
            assert alone[name].dtype == many[name].dtype
            assert torch.equal(alone[name][0], many[name][0])
            alone[name].zero_()
        assert torch.equal(source.take([number] * 2, "torch")["c"], many["c"])
        assert source.take((np.int64(number),), "torch")["c"].tolist() == many["c"].tolist()[:1]
    for number in (ROWS, -ROWS - 1):
        with pytest.raises(IndexError, match="expected rows from 0 to %d" % (ROWS - 1)):
            source.take([number], "torch")


def test_rows_by_name(tmp_path):
    table = pa.table({"k": list("abcdef"), "v": [[1.0], [2.0], [3.0], [4.0], [5.0, 6.0], [7.0]]})
    dataset.write(table, tmp_path, name_col="k")
    found = list(dataset.TorchBatches(tmp_path, 2, shuffle=False))
    assert [batch["k"] for batch in found] == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert found[0]["v"].tolist() == [[1], [2]]
    assert [one.tolist() for one in found[2]["v"]] == [[5, 6], [7]]


# ── Misuse ──

@pytest.mark.parametrize("options, words", [
    ({"shuffle": "rows"}, "shuffle"), ({"ends": "cut"}, "ends"), ({"rank": 1}, "both or neither"),
    ({"rank": 2, "ranks": 2}, "0 to 1"), ({"open_shards": 0}, "open_shards")])
def test_bad_options(path, options, words):
    with pytest.raises(ValueError, match=words):
        batches(path, **options)


def test_states_of_something_else(path):
    state = batches(path).loader().state_dict()
    for name, value in (("batch_size", 5), ("rows", 9), ("shuffle", False), ("ends", "pad")):
        with pytest.raises(ValueError, match=name):
            batches(path).load_state_dict({**state, name: value})
    with pytest.raises(TypeError, match="forms the batches itself"):
        batches(path).loader(batch_size=2)


def test_empty(tmp_path):
    dataset.write(pa.table({"c": pa.array([], pa.int64())}), tmp_path, batch_size=2)
    for ends in ("drop", "pad", "uneven"):
        source = dataset.TorchBatches(tmp_path, 4, ends=ends)
        assert len(source) == 0 and list(source) == []
