"""The state of a loader belongs to certain rows: it continues with the rest, or says why not."""
import itertools
import random

import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

ROWS = 508
BIG = 1 << 30
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def names(count=ROWS, seed=3):
    """In no order, so that neighbouring shards mix when they are put together."""
    found = ["user%d" % i for i in range(count)]
    random.Random(seed).shuffle(found)
    return found


def table(keys, value=0):
    return pa.table({"k": keys, "x": pa.array([[float(value + i), 1.0] for i in range(len(keys))],
                                              pa.list_(pa.float32(), 2))})


def write_kv(path, keys=None, parts=8, **options):
    """A dataset of several shards: one a commit."""
    keys = names() if keys is None else keys
    step = -(-len(keys) // parts)
    for i in range(0, len(keys), step):
        dataset.write(table(keys[i:i + step], i), path, name_col="k",
                      mode="append" if i else "overwrite", **options)
    return path


def write_batch(path, rows=ROWS, value=0):
    data = pa.table({"k": range(value, value + rows)})
    dataset.write(data, path, mode="overwrite", batch_size=50, tail_strategy="pad")
    return path


def batches(path, **options):
    return dataset.TorchBatches(path, 8, **{"seed": 5, "ends": "uneven", **options})


def seen(loader, most=None):
    return [[key if isinstance(key, str) else int(key) for key in batch["k"]]
            for batch in itertools.islice(loader, most)]


def begun(path, most=31, **options):
    """The batches of the first half of an epoch, the state then, and the whole epochs."""
    loader = batches(path, **options).loader()
    first = []
    for batch in loader:
        first.append([key if isinstance(key, str) else int(key) for key in batch["k"]])
        if len(first) == most:
            break
    state = loader.state_dict()
    whole = batches(path, **options).loader()
    return first, state, [seen(whole), seen(whole)]


def resumed(path, state, **options):
    loader = batches(path, **{"seed": 99, **options}).loader()
    loader.load_state_dict(state)
    return loader


SHUFFLES = pytest.mark.parametrize("shuffle", [True, "shards", "blocks", False])


# ── Compaction ──

@SHUFFLES
@pytest.mark.parametrize("targets", [[BIG], [30000, BIG], [0]])
@pytest.mark.few(3)
def test_the_rest_of_an_epoch_after_compact(tmp_path, shuffle, targets):
    write_kv(tmp_path)
    first, state, (whole, after) = begun(tmp_path, shuffle=shuffle)
    before = [row["k"] for row in dataset.open(tmp_path)]
    for target in targets:
        dataset.compact(tmp_path, target_bytes=target)
    shards = len(dataset.open(tmp_path).shards)
    assert shards == (8 if targets == [0] else 1)
    loader = resumed(tmp_path, state, shuffle=shuffle)
    assert first + seen(loader) == whole
    assert seen(loader) == after
    assert [row["k"] for row in dataset.open(tmp_path)] == before
    # And from the state of a loader that was resumed.
    again = resumed(tmp_path, state, shuffle=shuffle)
    more = seen(again, 5)
    loader = resumed(tmp_path, {**again.state_dict(), "delivered": state["delivered"] + 5},
                     shuffle=shuffle)
    assert first + more + seen(loader) == whole


@SHUFFLES
def test_compact_of_rows_that_were_replaced(tmp_path, shuffle):
    """Losers are dropped, one shard with all of its rows."""
    keys = names(200)
    write_kv(tmp_path, keys, parts=4)
    dataset.write(table(keys[150:] + keys[:7], 5000), tmp_path, name_col="k", mode="append",
                  duplicatesStrategy="lastWin")
    first, state, (whole, after) = begun(tmp_path, 11, shuffle=shuffle)
    assert len(dataset.open(tmp_path)) == 200
    values = {row["k"]: row["x"].tolist() for row in dataset.open(tmp_path)}
    for target in (0, BIG):
        dataset.compact(tmp_path, target_bytes=target)
        loader = resumed(tmp_path, state, shuffle=shuffle)
        assert first + seen(loader) == whole and seen(loader) == after
        assert {row["k"]: row["x"].tolist() for row in dataset.open(tmp_path)} == values


@pytest.mark.parametrize("workers", [0, 2])
def test_compact_and_workers(tmp_path, workers):
    write_kv(tmp_path)
    first, state, (whole, _) = begun(tmp_path, shuffle="shards")
    dataset.compact(tmp_path, target_bytes=BIG)
    loader = batches(tmp_path, shuffle="shards").loader(num_workers=workers)
    loader.load_state_dict(state)
    assert first + seen(loader) == whole


@SHUFFLES
@pytest.mark.parametrize("tail", ["pad", "write"])
@pytest.mark.few(3)
def test_batch_mode(tmp_path, shuffle, tail):
    """Tails in the middle, whose padding is dropped and has no row numbers."""
    for i in range(4):
        dataset.write(pa.table({"k": range(i * 127, i * 127 + 127)}), tmp_path, batch_size=50,
                      mode="append", tail_strategy=tail)
    before = dataset.open(tmp_path)
    assert len(before) == ROWS and [row["k"] for row in before] == list(range(ROWS))
    assert [one["valid_samples"] for one in before.shards] == [50, 50, 27] * 4
    first, state, (whole, after) = begun(tmp_path, shuffle=shuffle)
    told = dataset.compact(tmp_path, target_bytes=BIG)
    assert (told["shards_before"], told["shards_after"]) == (12, 11)
    now = dataset.open(tmp_path)
    assert [row["k"] for row in now] == list(range(ROWS))
    assert [one["valid_samples"] for one in now.shards] == [50] * 7 + [31, 50, 50, 27]
    loader = resumed(tmp_path, state, shuffle=shuffle)
    assert first + seen(loader) == whole and seen(loader) == after
    assert dataset.verify(tmp_path, deep=True)["ok"]


def test_an_append_after_compact_is_another_dataset(tmp_path):
    write_kv(tmp_path)
    _, state, _ = begun(tmp_path)
    dataset.compact(tmp_path, target_bytes=BIG)
    dataset.write(table(["new"]), tmp_path, name_col="k", mode="append")
    assert len(dataset.open(tmp_path)) == ROWS + 1
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    with pytest.raises(ValueError, match="appended to or overwritten"):
        resumed(tmp_path, state)
    # Whose own rows outlast the next compaction.
    first, state, (whole, _) = begun(tmp_path)
    dataset.compact(tmp_path, target_bytes=BIG)
    assert first + seen(resumed(tmp_path, state)) == whole


def test_a_shard_whose_order_is_damaged(tmp_path):
    write_kv(tmp_path)
    dataset.compact(tmp_path, target_bytes=BIG)
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    path, = tmp_path.glob("part-*")
    data = path.read_bytes()
    at = data.index(b'row_order":"') + len(b'row_order":"')
    path.write_bytes(data[:at] + b"g" + data[at + 1:])
    with pytest.raises(Exception, match="row_order.*%d rows" % ROWS) as caught:
        dataset.open(tmp_path)[0]
    assert caught.value.code == "dataset_shard"


# ── What does not fit ──

@pytest.mark.parametrize("write", [write_kv, write_batch])
def test_overwritten_by_as_many_rows(tmp_path, write):
    write(tmp_path)
    _, state, _ = begun(tmp_path)
    write(tmp_path)
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    with pytest.raises(ValueError, match=r"^dataset: the state is of 508 rows of version \d+ .*"
                       r"appended to or overwritten .*set_epoch"):
        resumed(tmp_path, state)


@pytest.mark.parametrize("write", [write_kv, write_batch])
def test_appended_to(tmp_path, write):
    """The epoch ends with the version where it began, if that is kept; the next may be of another."""
    write(tmp_path)
    first, state, (whole, _) = begun(tmp_path)
    if write is write_kv:
        dataset.write(table(["more"]), tmp_path, name_col="k", mode="append")
    else:
        dataset.write(pa.table({"k": [1]}), tmp_path, batch_size=50, mode="append")
    loader = resumed(tmp_path, state)
    assert first + seen(loader) == whole and len(loader.dataset.dataset) == ROWS
    version = dataset.open(tmp_path).version
    assert loader.refresh() == version and loader.epoch == 1
    assert sum(map(len, seen(loader))) == len(loader.dataset.dataset) == ROWS + 1
    assert loader.epoch == 2 and loader.refresh(version - 1) == version - 1
    assert len(loader.dataset.dataset) == ROWS
    dataset.gc(tmp_path, delete=True, grace=0, keep=1)
    with pytest.raises(FileNotFoundError, match="not kept"):
        loader.refresh(version - 1)
    with pytest.raises(ValueError, match=r"508 rows of version .* expected 509 rows"):
        resumed(tmp_path, state)


def test_another_dataset(tmp_path):
    for name in "ab":
        write_batch(tmp_path / name)
    _, state, _ = begun(tmp_path / "a")
    with pytest.raises(ValueError, match="another dataset"):
        resumed(tmp_path / "b", state)
    # The same one elsewhere is the same.
    (tmp_path / "a").rename(tmp_path / "c")
    first, _, (whole, _) = begun(tmp_path / "c")
    assert first + seen(resumed(tmp_path / "c", state)) == whole


@pytest.mark.parametrize("options, words", [
    ({"shuffle": False}, "shuffle: the state is of True, expected False"),
    ({"ends": "drop"}, "ends: the state is of 'uneven', expected 'drop'")])
def test_another_order(tmp_path, options, words):
    write_batch(tmp_path)
    _, state, _ = begun(tmp_path)
    with pytest.raises(ValueError, match=words):
        resumed(tmp_path, state, **options)
    with pytest.raises(ValueError, match="batch_size: the state is of 8, expected 9"):
        dataset.TorchBatches(tmp_path, 9, ends="uneven").load_state_dict(state)


def test_other_keys(tmp_path):
    write_kv(tmp_path)
    keys = [name + "__x" for name in names()]
    _, state, _ = begun(tmp_path, keys=keys[:100], most=3)
    with pytest.raises(ValueError, match="^keys: the state is of 100 rows.* expected 100 rows"):
        resumed(tmp_path, state, keys=keys[100:200])
    with pytest.raises(ValueError, match="^keys: the state is of 100 rows.* expected 508 rows"):
        resumed(tmp_path, state)
    first, _, (whole, _) = begun(tmp_path, keys=keys[:100], most=3)
    assert first + seen(resumed(tmp_path, state, keys=keys[99::-1])) == whole


def test_an_incomplete_state(tmp_path):
    write_batch(tmp_path)
    _, state, _ = begun(tmp_path)
    for name in ("dataset", "rows", "seed", "shuffle", "ends", "batch_size"):
        less = {key: value for key, value in state.items() if key != name}
        with pytest.raises(ValueError, match=name):
            resumed(tmp_path, less)
    _, state, _ = begun(tmp_path, shuffle="shards")
    for told in ([], [[1, 5]]):
        with pytest.raises(ValueError, match="shards: the state is of"):
            resumed(tmp_path, {**state, "shards": told}, shuffle="shards")


def test_files_without_a_manifest(tmp_path):
    write_batch(tmp_path)
    (tmp_path / "dataset_manifest.json").unlink()
    first, state, (whole, _) = begun(tmp_path, use_manifest=False)
    assert first + seen(resumed(tmp_path, state, use_manifest=False)) == whole
    path = sorted(tmp_path.glob("*.safetensors"))[2]
    data = path.read_bytes()
    path.rename(path.with_name("part-renamed.safetensors"))
    with pytest.raises(ValueError, match="another dataset"):
        resumed(tmp_path, state, use_manifest=False)
    path.with_name("part-renamed.safetensors").unlink()
    path.write_bytes(data)
    resumed(tmp_path, state, use_manifest=False)


# ── What does ──

def test_the_seed_is_that_of_the_state(tmp_path):
    write_batch(tmp_path)
    first, state, (whole, after) = begun(tmp_path)
    loader = resumed(tmp_path, state, seed=1234)
    assert first + seen(loader) == whole and seen(loader) == after
    assert loader.state_dict()["seed"] == 5


def test_the_seed_reaches_workers_that_live_on(tmp_path):
    write_batch(tmp_path)
    first, state, (whole, after) = begun(tmp_path)
    loader = batches(tmp_path, seed=7).loader(num_workers=2, persistent_workers=True)
    assert seen(loader) != whole
    loader.load_state_dict(state)
    assert first + seen(loader) == whole and seen(loader) == after


def test_another_world_size(tmp_path):
    write_kv(tmp_path)
    _, _, (whole, _) = begun(tmp_path)
    loaders = [batches(tmp_path, rank=rank, ranks=3).loader() for rank in range(3)]
    parts = []
    for loader in loaders:
        parts.append([])
        for batch in loader:
            parts[-1].append(batch["k"])
            if len(parts[-1]) == 7:
                break
    state = loaders[0].state_dict()
    assert state == loaders[2].state_dict()
    dataset.compact(tmp_path, target_bytes=BIG)
    first = [batch for step in zip(*parts) for batch in step]
    rest = [seen(resumed(tmp_path, state, rank=rank, ranks=2)) for rank in range(2)]
    rest = [batch for step in itertools.zip_longest(*rest) for batch in step if batch]
    assert first + rest == whole


# ── torchdata ──

@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("kind, workers", [
    ("rows", 2), *(pytest.param(*case, marks=pytest.mark.long) for case in
                   (("batches", 0), ("batches", 2), ("rows", 0)))])
def test_stateful_data_loader(tmp_path, kind, workers):
    torchdata = pytest.importorskip("torchdata.stateful_dataloader")

    def make(path):
        source = batches(path) if kind == "batches" else dataset.TorchDataset(path)
        size = {"batch_size": None} if kind == "batches" else \
            {"batch_size": 8, "shuffle": True, "generator": torch.Generator().manual_seed(1)}
        return torchdata.StatefulDataLoader(source, num_workers=workers, **size)
    write_kv(tmp_path / "a")
    whole = seen(make(tmp_path / "a"))
    loader = make(tmp_path / "a")
    first = seen(loader, 20)
    state = loader.state_dict()
    dataset.compact(tmp_path / "a", target_bytes=BIG)
    loader = make(tmp_path / "a")
    loader.load_state_dict(state)
    assert first + seen(loader) == whole
    write_kv(tmp_path / "a")
    if kind == "batches":
        loader = make(tmp_path / "a")
        loader.load_state_dict(state)
        assert first + seen(loader) == whole  # of the version where it began
    dataset.gc(tmp_path / "a", delete=True, grace=0, keep=1)
    loader = make(tmp_path / "a")
    loader.load_state_dict(state)
    with pytest.raises(Exception, match="appended to or overwritten"):
        seen(loader)
