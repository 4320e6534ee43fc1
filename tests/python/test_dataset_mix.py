"""Datasets mixed by weights: shares, each row once a pass, any ranks and workers, and states."""
import collections
import itertools
import json
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

from libsafetensors.dataset._lanes import lanes_of  # noqa: E402
from libsafetensors.dataset._mix import MixOrder, _draws  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
SIZES = {"a": 60, "b": 23, "c": 131}
BASES = {"a": 0, "b": 1000, "c": 2000}
WEIGHTS = {"a": 0.5, "b": 0.2, "c": 0.3}


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mix")
    for name, rows in SIZES.items():
        table = pa.table({"c": range(BASES[name], BASES[name] + rows), "name": [name] * rows})
        dataset.write(table, folder / name, batch_size=10)
    return folder


def mix(paths, weights=WEIGHTS, **options):
    return dataset.Mix([(paths / name, weight) for name, weight in weights.items()], **options)


def batches(paths, size=4, until="first_exhausted", weights=WEIGHTS, **options):
    return dataset.TorchBatches(mix(paths, weights, until=until), size,
                                **{"seed": 5, "ends": "uneven", **options})


def numbers(found, most=None):
    return [batch["c"].tolist() for batch in itertools.islice(found, most)]


class Rows(list):
    """A dataset that has only numbers of rows, in shards of so many."""

    def __init__(self, count, shard=10):
        super().__init__(range(count))
        self.path = "a dataset of %d" % count
        self._layout = SimpleNamespace(bounds=lambda: [
            (begin, min(begin + shard, count)) for begin in range(0, count, shard)])


class Draws(Rows):
    def __init__(self, counts, draws, shard):
        super().__init__(sum(draws))
        self.draws, self.datasets = list(draws), [Rows(count, shard) for count in counts]


def order(counts, draws, size=4, shuffle=True, seed=5, ends="uneven", width=3, shard=10):
    return MixOrder(Draws(counts, draws, shard), size, shuffle, seed, ends, width)


def owners(counts, rows):
    return np.searchsorted(np.cumsum([0, *counts]), rows, side="right") - 1


several = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 400)), min_size=1, max_size=6)


# ── Shares ──

@given(several)
def test_each_block_has_the_shares(made):
    """Counts never fall, and are never further from the share than half a row for each dataset."""
    counts, draws = zip(*made)
    found = order(counts, draws)
    total, last = sum(draws), [0] * len(draws)
    for position in [*range(0, total, 1 + total // 50), total]:
        now = found._counts(position)
        assert sum(now) == position and all(a <= b for a, b in zip(last, now))
        assert all(abs(n - Fraction(position * d, total)) <= len(draws) / 2
                   for n, d in zip(now, draws))
        last = now
    assert last == list(draws)


@given(several, st.integers(0, 3), st.sampled_from([False, True, "shards", "blocks"]))
def test_each_row_once_a_pass(made, epoch, shuffle):
    """In the order of the pass; the next epoch goes on where one ends."""
    counts, draws = zip(*made)
    found = order(counts, draws, shuffle=shuffle)
    rows = found.rows(epoch, np.arange(sum(draws)))
    begin = np.cumsum([0, *counts])
    for which, (count, draw) in enumerate(made):
        own = rows[owners(counts, rows) == which] - begin[which]
        assert len(own) == draw
        alone, first = found.order_of(which), epoch * draw
        want = np.concatenate([alone.rows(number, np.arange(count))
                               for number in range(first // count, (first + draw) // count + 1)])
        at = first % count
        assert np.array_equal(own, want[at:at + draw])


def test_any_position_alone():
    """What a resumed loader asks for is what the whole epoch has there."""
    counts, draws = [700, 90, 5000], [900, 500, 2700]
    for shuffle in (True, "shards", "blocks", False):
        whole = order(counts, draws, shuffle=shuffle).rows(2, np.arange(4100))
        for begin in range(0, 4100, 97):
            some = np.arange(begin, min(begin + 130, 4100))
            assert np.array_equal(order(counts, draws, shuffle=shuffle).rows(2, some), whole[some])


def test_places_are_random():
    """Not the same dataset always for the same rank, nor in the same place of a batch."""
    rows = owners([4096, 4096], order([4096, 4096], [4096, 4096]).rows(0, np.arange(8192)))
    assert abs(rows[::2].mean() - 0.5) < 0.05 and abs(np.corrcoef(rows[1:], rows[:-1])[0, 1]) < 0.05
    assert [rows[at:at + 1024].sum() for at in range(0, 8192, 1024)] == [512] * 8
    other = owners([4096, 4096], order([4096, 4096], [4096, 4096]).rows(1, np.arange(8192)))
    assert (rows != other).any()


def test_it_is_the_same_for_ever():
    """States in people's checkpoints rely on it."""
    found = order([5, 3], [6, 4], shuffle=True, seed=1)
    assert found.rows(0, np.arange(10)).tolist() == SAME_FOR_EVER


SAME_FOR_EVER = [2, 5, 0, 6, 7, 3, 4, 1, 4, 6]


# ── How long an epoch is ──

@pytest.mark.parametrize("until, draws", [
    ("first_exhausted", [58, 23, 34]), ("all_exhausted", [218, 87, 131]), (1000, [500, 200, 300]),
    (7, [4, 1, 2]), (12345678901, [6172839451, 2469135780, 3703703670])])
def test_until(paths, until, draws):
    found = mix(paths, until=until)
    assert found.draws == draws and len(found) == sum(draws)


def test_weights_are_ratios(paths):
    for weights in ({"a": 5, "b": 2, "c": 3},
                    {"a": Fraction(1, 2), "b": 0.2, "c": np.float32(0.3)}):
        assert mix(paths, weights).draws == [58, 23, 34]
    assert mix(paths, {"a": 1}).draws == [60]


@given(several, st.integers(1, 100000))
def test_draws_of_weights(made, until):
    """The one that decides is read once, exactly; the others by the weights, to half a row."""
    counts, weights = zip(*made)
    shares = [Fraction(weight) for weight in weights]
    sets = [Rows(count) for count in counts]
    for rule, better in (("first_exhausted", min), ("all_exhausted", max)):
        try:
            draws = _draws(sets, shares, rule)
        except ValueError as error:
            assert "less than one row" in str(error)
            continue
        rows = better(Fraction(count) / share for count, share in zip(counts, shares))
        assert all(abs(draw - rows * share) <= 0.5 for draw, share in zip(draws, shares))
        one = [draw == count for draw, count in zip(draws, counts)]
        assert any(one) and all((draw <= count) if better is min else (draw >= count)
                                for draw, count in zip(draws, counts))
    try:
        draws = _draws(sets, shares, until)
    except ValueError:
        return
    assert sum(draws) == until
    assert all(abs(draw - until * share / sum(shares)) < 1 for draw, share in zip(draws, shares))


def test_epochs_go_on(paths):
    """After any number of them, rows of a dataset came equally often, to one."""
    for partition, until in itertools.product(("batches", "shards"),
                                              ("first_exhausted", "all_exhausted", 77)):
        source, seen = batches(paths, until=until, partition=partition), collections.Counter()
        for epoch in range(7):
            seen.update(row for batch in numbers(source) for row in batch)
            for name, draws in zip(SIZES, source.dataset.draws):
                rows = range(BASES[name], BASES[name] + SIZES[name])
                assert sum(seen[row] for row in rows) == draws * (epoch + 1)
                times = {seen[row] for row in rows}
                assert max(times) - min(times) <= 1, (partition, until, epoch, name)


# ── Ranks and workers ──

@pytest.mark.parametrize("shuffle, ends", [
    pytest.param(shuffle, ends, marks=[] if ends == "drop" or shuffle is True else pytest.mark.long)
    for shuffle in (True, "shards", "blocks", False) for ends in ("drop", "pad", "uneven")])
@pytest.mark.few(1)
def test_any_number_of_workers_delivers_the_same(paths, shuffle, ends):
    want = None
    for workers in (0, 1, 3):
        loader = batches(paths, shuffle=shuffle, ends=ends).loader(num_workers=workers)
        found = [numbers(loader), numbers(loader)]
        assert len(found[0]) == len(loader) == {"drop": 28, "pad": 29, "uneven": 29}[ends]
        assert want in (None, found)
        want = found


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_ranks_share_one_sequence(paths, ranks):
    want = numbers(batches(paths))
    each = [numbers(batches(paths, rank=rank, ranks=ranks)) for rank in range(ranks)]
    for i, batch in enumerate(want):
        assert each[i % ranks][i // ranks] == batch
    assert sum(map(len, each)) == len(want)


def read(line, ranks, begun=0, most=1 << 40):
    return [row for rank in range(ranks)
            for i in range(begun, min(line.steps(rank), begun + most))
            for row in line.batch(rank, i).tolist()]


@given(several, st.integers(0, 2), st.sampled_from([False, "shards", "blocks"]),
       st.sampled_from(["drop", "pad", "uneven"]), st.integers(1, 5), st.integers(1, 4))
def test_lanes_of_a_mix(made, epoch, shuffle, ends, ranks, workers):
    """Together all ranks and workers have the rows of the line, each as often."""
    counts, draws = zip(*((count, min(draw, 300)) for count, draw in made))
    found = order(counts, draws, shuffle=shuffle, ends=ends)
    want = collections.Counter(found.line(epoch).rows(np.arange(sum(draws))).tolist())
    line, _ = lanes_of(found, epoch, [], ranks, workers)
    have = collections.Counter(read(line, ranks))
    left = want - have
    assert len(line._begins) == ranks * workers
    assert sum(left.values()) < (4 * ranks if ends == "drop" else 1)
    assert sum((have - want).values()) < (4 * ranks if ends == "pad" else 1)


@given(several, st.sampled_from([False, "shards", "blocks"]), st.sampled_from(["pad", "uneven"]),
       st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 9)), max_size=4))
def test_lanes_of_changed_numbers(made, shuffle, ends, readers):
    """Whatever ranks and workers read parts of an epoch: together the rows of the epoch."""
    counts, draws = zip(*((count, min(draw, 100)) for count, draw in made))
    found, parts, seen = order(counts, draws, shuffle=shuffle, ends=ends), [], []
    for ranks, workers, steps in [*readers, (1, 1, 1 << 40)]:
        line, done = lanes_of(found, 1, parts, ranks, workers)
        steps = min(steps, max(map(line.steps, range(ranks))) - done)
        if steps <= 0:
            break
        seen += read(line, ranks, done, steps)
        same = parts and parts[-1][:2] == (ranks, workers)
        parts = [*parts[:-1], (ranks, workers, done + steps)] if same \
            else [*parts, (ranks, workers, steps)]
    else:
        want = collections.Counter(found.line(1).rows(np.arange(sum(draws))).tolist())
        assert not want - collections.Counter(seen)
        assert ends == "pad" or not collections.Counter(seen) - want


@pytest.mark.parametrize("shuffle", ["shards", "blocks"])
@pytest.mark.few(1)
def test_shards_have_one_reader(shuffle):
    """But for those at the border of two lanes, one a dataset; each lane has the shares."""
    counts, draws, ranks, workers = [2000, 1000], [2000, 1000], 2, 2
    line, _ = lanes_of(order(counts, draws, shuffle=shuffle, shard=40), 0, [], ranks, workers)
    readers = set()
    for rank in range(ranks):
        lane = np.concatenate([line.batch(rank, i) for i in range(line.steps(rank))])
        assert abs((lane < 2000).mean() - 2 / 3) < 0.02
        for i in range(line.steps(rank)):
            readers.update((row // 40, rank, i % workers) for row in line.batch(rank, i).tolist())
    assert len(readers) <= 75 + 2 * (ranks * workers - 1)


def test_many_passes_of_a_lane():
    """Of a small dataset, mixed by passes."""
    found = order([3, 5000], [3000, 3000], shuffle="blocks")
    line, _ = lanes_of(found, 1, [], 2, 1)
    seen = collections.Counter(read(line, 2))
    assert [seen[row] for row in range(3)] == [1000] * 3
    assert all(seen[row] <= 2 for row in range(3, 5003))


# ── States ──

@pytest.mark.parametrize("workers, partition", [
    (0, "batches"), (2, "shards"), (0, "shards"), (2, "batches")])
@pytest.mark.few(1)
def test_resumed_at_every_batch(paths, partition, workers):
    whole = batches(paths, 10, partition=partition).loader(num_workers=workers)
    want = [numbers(whole), numbers(whole)]
    for stop in range(len(want[0]) + 1):
        loader = batches(paths, 10, partition=partition).loader(num_workers=workers)
        seen = []
        for batch in loader if stop else ():
            seen.append(batch["c"].tolist())
            if len(seen) == stop:
                break
        state = json.loads(json.dumps(loader.state_dict()))
        resumed = batches(paths, 10, partition=partition, seed=99).loader(num_workers=workers)
        resumed.load_state_dict(state)
        assert seen + numbers(resumed) == want[0], stop
        if stop in (1, 7):
            assert numbers(resumed) == want[1]


@pytest.mark.parametrize("partition", ["batches", "shards"])
@pytest.mark.few(1)
def test_resumed_with_others(paths, partition):
    """Ranks and workers change three times in an epoch, which has its rows still."""
    seen, state = [], None
    for ranks, workers, most in ((3, 0, 2), (2, 2, 3), (1, 1, 2), (4, 3, 99)):
        states = []
        for rank in range(ranks):
            loader = batches(paths, partition=partition, rank=rank, ranks=ranks).loader(
                num_workers=workers)
            if state is not None:
                loader.load_state_dict(state)
            seen += sum(numbers(loader, most), [])
            states.append(loader.state_dict())
        assert ranks == 4 or all(one == states[0] for one in states)
        state = states[0]
    want = sum(numbers(batches(paths, partition=partition)), [])
    assert sorted(seen) == sorted(want)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
def test_stateful_data_loader(paths, workers):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return torchdata.StatefulDataLoader(batches(paths), batch_size=None, num_workers=workers)
    want = numbers(make())
    for stop in (1, 8, 28):
        loader = make()
        seen = numbers(loader, stop)
        resumed = make()
        resumed.load_state_dict(loader.state_dict())
        assert seen + numbers(resumed) == want, stop


@pytest.mark.parametrize("shuffle", [True, "shards", "blocks"])
def test_compacted_and_appended(tmp_path, shuffle):
    """A compaction of one of them keeps states; an append, too, while the version is kept."""
    for name, base in (("a", 0), ("b", 100)):
        for i in range(3):
            dataset.write(pa.table({"c": range(base + 9 * i, base + 9 * i + 9)}), tmp_path / name,
                          batch_size=20, mode="append" if i else "error")
    weights = {"a": 1, "b": 1}
    want = numbers(batches(tmp_path, weights=weights, shuffle=shuffle))
    loader = batches(tmp_path, weights=weights, shuffle=shuffle).loader()
    seen = numbers(loader, 5)
    state = loader.state_dict()
    dataset.compact(tmp_path / "b", target_bytes=1 << 30)
    assert len(dataset.open(tmp_path / "b").shards) == 2
    resumed = batches(tmp_path, weights=weights, shuffle=shuffle).loader()
    resumed.load_state_dict(state)
    assert seen + numbers(resumed) == want
    # The epoch ends with the version where it began; the next may be of another.
    dataset.write(pa.table({"c": range(200, 209)}), tmp_path / "b", batch_size=20, mode="append")
    resumed = batches(tmp_path, weights=weights, shuffle=shuffle).loader()
    assert resumed.dataset.dataset.draws == [27, 27]
    resumed.load_state_dict(state)
    assert seen + numbers(resumed) == want
    source = resumed.dataset
    assert source.refresh() is None and source.epoch == 1
    assert [len(one) for one in source.dataset.datasets] == [27, 36]
    with pytest.raises(ValueError, match="version: expected none, since each dataset"):
        source.refresh(1)
    dataset.gc(tmp_path / "b", delete=True, grace=0, keep=1)
    with pytest.raises(ValueError, match="dataset: .*b has: it was appended to"):
        batches(tmp_path, weights=weights, shuffle=shuffle).load_state_dict(state)


@pytest.mark.parametrize("change, words", [
    ({"weights": {"a": 0.5, "b": 0.2}}, "dataset: the state is of a mix of 3, expected a mix of 2"),
    ({"weights": {"a": 0.5, "c": 0.3, "b": 0.2}}, "dataset: the state is of 23 rows"),
    ({"weights": {"a": 0.5, "b": 0.2, "c": 0.2}},
     r"draws: the state is of \[58, 23, 34\], expected \[58, 23, 23\]"),
    ({"weights": {"a": 0.4, "b": 0.2, "c": 0.4}}, "draws: the state is of"),
    ({"until": 116}, "draws: the state is of"), ({"size": 5}, "batch_size: the state is of 4"),
    ({"shuffle": "shards"}, "shuffle: the state is of True"),
    ({"partition": "shards"}, "partition: the state is of 'batches'")])
def test_states_of_others(paths, change, words):
    state = batches(paths).state_dict()
    with pytest.raises(ValueError, match=words):
        batches(paths, **change).load_state_dict(state)


def test_states_with_and_without_mix(paths):
    one = dataset.TorchBatches(paths / "a", 4, ends="uneven")
    with pytest.raises(ValueError, match="dataset: the state is of a mix, expected .*a alone"):
        one.load_state_dict(batches(paths).state_dict())
    with pytest.raises(ValueError, match="dataset: the state is of no mix, expected a mix of 3"):
        batches(paths).load_state_dict(one.state_dict())
    state = batches(paths, shuffle="shards").state_dict()
    with pytest.raises(ValueError, match="shards: the state is of 2 datasets, expected 3"):
        batches(paths, shuffle="shards").load_state_dict({**state, "shards": state["shards"][:2]})


# ── Rows ──

def test_values(tmp_path):
    """Text, lists, nulls in one of them only, elements without an index in torch; their memory."""
    for base, name in ((0, "a"), (50, "b")):
        rows = range(base, base + 30)
        table = pa.table({
            "c": rows, "text": ["ü%d" % i for i in rows],
            "list": [[float(i)] * (i % 4) for i in rows],
            "some": pa.array([i if i % 3 or not base else None for i in rows], pa.int32()),
            "half": pa.array([[i, -i] for i in rows], pa.list_(pa.float32(), 2)),
            "deep": [[["x"] * (i % 3)] if i % 5 else None for i in rows]})
        dataset.write(table, tmp_path / name, batch_size=8, dtype={"half": "F8_E4M3"})
    made = dataset.Mix([(tmp_path / "a", 1), (tmp_path / "b", 2)], until="all_exhausted")
    assert made.schema["some"]["nullable"] and made.columns == list(made.schema)
    for framework in ("numpy", "torch"):
        for take in ([3, 41, 2, 58], [1, 2, 3], [33, 32], [], range(60)):
            batch = made.take(take, framework)
            rows = [i if i < 30 else i + 20 for i in take]
            assert batch["c"].tolist() == rows
            assert list(batch["text"]) == ["ü%d" % i for i in rows]
            assert [one.tolist() for one in batch["list"]] == [[float(i)] * (i % 4) for i in rows]
            assert isinstance(batch["some"], dataset.Column)
            assert [None if one is None else int(one) for one in batch["some"]] \
                == [None if i >= 50 and i % 3 == 0 else i for i in rows]
            want = torch.tensor([[i, -i] for i in rows]).reshape(-1, 2).to(torch.float8_e4m3fn)
            half = batch["half"].float() if framework == "torch" else \
                torch.from_numpy(batch["half"].astype(np.float32))
            assert torch.equal(half, want.float())
            assert list(batch["deep"]) == [[["x"] * (i % 3)] if i % 5 else None for i in rows]
    for wrong in (60, -1):
        with pytest.raises(IndexError, match="expected rows from 0 to 59"):
            made.take([wrong])
    for collate in ("list", "padded", "nested"):
        loader = dataset.TorchBatches(made, 7, collate=collate).loader(
            num_workers=2, multiprocessing_context="fork")
        keys = {tuple((name, type(one)) for name, one in batch.items()) for batch in loader}
        assert len(keys) == 1


def test_names(tmp_path):
    """KV mode: rows with their names, also of different shapes."""
    for base, name, width in ((0, "a", 2), (50, "b", 3)):
        dataset.write(pa.table({"k": ["%s%02d" % (name, i) for i in range(20)],
                                "x": [[float(base + i)] * width for i in range(20)]}),
                      tmp_path / name, name_col="k")
    made = mix(tmp_path, {"a": 1, "b": 1})
    seen = {}
    for batch in dataset.TorchBatches(made, 6, ends="uneven"):
        seen.update(zip(batch["k"], (value.tolist() for value in batch["x"])))
    assert seen == {"%s%02d" % (name, i): [float(base + i)] * width for i in range(20)
                    for base, name, width in ((0, "a", 2), (50, "b", 3))}
    same = dataset.Mix([(tmp_path / "a", 1), (dataset.open(tmp_path / "a", rows=(3, 9)), 1)])
    assert all(batch["x"].shape == (4, 2) for batch in dataset.TorchBatches(same, 4))


def test_some_of_each(paths):
    """Open datasets keep their rows and columns; options are for the others."""
    made = dataset.Mix([(dataset.open(paths / "a", split="0:50%", columns="c"), 1),
                        (paths / "b", 1)], columns=["c"])
    assert made.draws == [23, 23] and made.columns == ["c"]
    source = dataset.TorchBatches(made, 5, ends="uneven")
    rows = sum(numbers(source), [])
    assert all(row < 30 or row >= 1000 for row in rows) and len(set(rows)) == 46
    assert "23 rows of" in repr(made) and str(paths / "b") in made.path
    made.close()
    copied = pickle.loads(pickle.dumps(made))
    assert copied.draws == made.draws and numbers(dataset.TorchBatches(copied, 5), 2)


def test_columns_that_differ(tmp_path):
    def write(name, **columns):
        dataset.write(pa.table(columns), tmp_path / name, batch_size=4)
    write("one", x=[[1.0, 2.0]], y=[1])
    write("more", x=[[1.0, 2.0]], y=[1], z=[1])
    write("wide", x=[[1.0, 2.0, 3.0]], y=[1])
    write("half", x=pa.array([[1.0, 2.0]], pa.list_(pa.float32())), y=[1])
    write("time", x=[[1.0, 2.0]], y=pa.array([1], pa.timestamp("us")))
    write("text", x=[[1.0, 2.0]], y=["1"])
    dataset.write(pa.table({"y": ["k"], "x": [[1.0, 2.0]]}), tmp_path / "kv", name_col="y")
    for other, words in (
            ("more", r"column 'z': .*more has it, .*one does not"),
            ("wide", r"column 'x': shape: \[2\] in .*one, \[3\] in .*wide"),
            ("half", r"column 'x': dtype: F64 in .*one, F32 in .*half"),
            ("time", r"column 'y': type: None in .*one, timestamp\[us\] in .*time"),
            ("text", r"column 'y': dtype: I64 in .*one, U8 in .*text"),
            ("kv", r"mode: .*one is in batch mode, .*kv in kv mode")):
        with pytest.raises(ValueError, match=words):
            mix(tmp_path, {"one": 1, other: 1})
    with pytest.raises(ValueError, match=r"column 'z': .*more has it, .*one does not"):
        mix(tmp_path, {"more": 1, "one": 1})
    assert mix(tmp_path, {"one": 1, "more": 1}, columns="x,y").columns == ["x", "y"]


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "much", None])
def test_weights_that_cannot_be(paths, weight):
    with pytest.raises(ValueError, match="weight: expected a number above 0"):
        mix(paths, {"a": weight})


def test_what_cannot_be(paths, tmp_path):
    dataset.write(pa.table({"c": pa.array([], pa.int64()), "name": pa.array([], pa.string())}),
                  tmp_path / "none", batch_size=4)
    with pytest.raises(ValueError, match="none: expected rows, found none"):
        dataset.Mix([(paths / "a", 1), (tmp_path / "none", 1)])
    with pytest.raises(ValueError, match="b: its weight gives it less than one row an epoch"):
        mix(paths, {"a": 1, "b": 1e-9})
    for until in (0, -1, True, 1.5, "first", None):
        with pytest.raises(ValueError, match="until: expected"):
            mix(paths, until=until)
    with pytest.raises(ValueError, match="expected at least one dataset"):
        dataset.Mix([])
    with pytest.raises(TypeError, match="columns: expected it of Mix"):
        dataset.TorchBatches(mix(paths), 4, columns="c")
