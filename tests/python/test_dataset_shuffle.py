"""The order of rows when shards are shuffled, alone or mixed with one another."""
import os
import re

import numpy as np
import pytest

from libsafetensors import dataset
from libsafetensors.dataset._order import Order

DOCS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "dataset.md")
UNEVEN = [7, 0, 31, 1, 12, 12, 5, 0, 64, 3, 9, 20]


def an_order(sizes, batch=8, shuffle="blocks", seed=3, ends="uneven", **options):
    return Order(sum(sizes), batch, shuffle, seed, ends, sizes, **options)


def epoch_of(order, epoch=0, ranks=1):
    """Row numbers of the batches of all ranks, in the order in which they are delivered."""
    steps = [order.steps(0, rank, ranks) for rank in range(ranks)]
    return [np.asarray(order.batch(epoch, step * ranks + rank)) for step in range(max(steps))
            for rank in range(ranks) if step < steps[rank]]


@pytest.mark.parametrize("sizes", [UNEVEN, [10] * 20, [1] * 30, [100], [0, 0, 5]])
@pytest.mark.parametrize("open_shards", [1, 2, 5, 12, 1000])
@pytest.mark.parametrize("batch", [1, 8, 50])
def test_each_row_once(sizes, open_shards, batch):
    order = an_order(sizes, batch, open_shards=open_shards)
    first, second = (np.concatenate(epoch_of(order, epoch)) for epoch in (0, 1))
    for found in (first, second):
        assert np.array_equal(np.sort(found), np.arange(sum(sizes)))
    assert sum(sizes) < 30 or not np.array_equal(first, second)


@pytest.mark.parametrize("sizes", [UNEVEN, [16] * 40])
@pytest.mark.parametrize("open_shards", [1, 3, 8])
def test_open_shards_are_bounded(sizes, open_shards):
    """From its first row to its last one, a shard is open."""
    order = an_order(sizes, 1, open_shards=open_shards)
    found = np.concatenate(epoch_of(order))
    owner = np.searchsorted(np.cumsum([0, *sizes]), found, side="right") - 1
    begin = [np.flatnonzero(owner == i)[0] for i in np.unique(owner)]
    end = [np.flatnonzero(owner == i)[-1] for i in np.unique(owner)]
    most = max(sum(a <= at <= b for a, b in zip(begin, end)) for at in range(len(found)))
    assert most == open_shards if min(sizes) > 1 else most <= open_shards


@pytest.mark.parametrize("shuffle", ["shards", "blocks"])
def test_a_batch_depends_on_its_number_only(shuffle):
    """Whatever was computed before it, and without what is cached."""
    whole = epoch_of(an_order(UNEVEN, shuffle=shuffle, open_shards=4))
    for number in np.random.default_rng(1).permutation(len(whole)).tolist():
        fresh = an_order(UNEVEN, shuffle=shuffle, open_shards=4)
        assert np.array_equal(fresh.batch(0, number), whole[number])
        fresh.batch(1, 0)
        assert np.array_equal(fresh.batch(0, number), whole[number])


def test_large_blocks_are_not_cached(monkeypatch):
    from libsafetensors.dataset import _order
    whole = epoch_of(an_order(UNEVEN, open_shards=4))
    monkeypatch.setattr(_order, "_CACHED_ROWS", 3)
    assert np.array_equal(np.concatenate(epoch_of(an_order(UNEVEN, open_shards=4))),
                          np.concatenate(whole))


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_ranks_share_the_rows(ranks):
    whole = epoch_of(an_order(UNEVEN, open_shards=4))
    found = epoch_of(an_order(UNEVEN, open_shards=4), ranks=ranks)
    assert [one.tolist() for one in found] == [one.tolist() for one in whole]


@pytest.mark.parametrize("shuffle", ["shards", "blocks"])
def test_a_batch_that_continues_at_the_beginning(shuffle):
    """The last batch may end in the shard, or block, in which it begins, one round later."""
    sizes = [9, 11, 10]
    order = an_order(sizes, 29, shuffle, ends="pad", open_shards=2)
    epoch = np.concatenate([order.batch(0, 0), order.batch(0, 1)])
    assert sorted(epoch[:30].tolist()) == list(range(30))
    assert np.array_equal(epoch[30:], epoch[:28])


def test_it_is_the_same_for_ever():
    """States in people's checkpoints rely on it."""
    found = np.concatenate(epoch_of(an_order([4, 3, 5, 2], open_shards=2)))
    assert found.tolist() == SAME_FOR_EVER


SAME_FOR_EVER = [11, 10, 9, 8, 1, 3, 7, 12, 2, 0, 13, 6, 5, 4]


def test_a_state_of_another_width(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("torch")
    dataset.write(pa.table({"c": range(100)}), tmp_path, batch_size=5)

    def batches(**options):
        return dataset.TorchBatches(tmp_path, 4, shuffle="blocks", **options)
    state = batches(open_shards=3).state_dict()
    with pytest.raises(ValueError, match="open_shards: the state is of 3, expected 16"):
        batches().load_state_dict(state)
    source = batches(open_shards=3, seed=1)
    source.load_state_dict(state)
    want = [batch["c"].tolist() for batch in batches(open_shards=3)]
    assert [batch["c"].tolist() for batch in source] == want


# ── How well it mixes ──

def mixing(shuffle, shards=128, rows=1024, batch=100, **options):
    """Mean number of shards in a batch, and mean distance of rows that follow each other."""
    order = an_order([rows] * shards, batch, shuffle, 1, **options)
    found = epoch_of(order)
    each = np.mean([len(np.unique(one // rows)) for one in found])
    place = np.empty(shards * rows, np.int64)
    place[np.concatenate(found)] = np.arange(shards * rows)
    near = np.abs(np.diff(place.reshape(shards, rows), axis=1)).mean()
    return "%.1f" % each, "%.0f" % near


def test_the_figures_of_the_documentation():
    with open(DOCS, encoding="utf-8") as file:
        text = file.read()
    told = re.findall(r'^\| `(False|True|"\w+")`(?:, `open_shards=(\d+)`)? \|.*\| ([\d.]+) '
                      r'\| (\d+) \|$', text, re.MULTILINE)
    assert len(told) == 6
    for shuffle, width, each, near in told:
        value = {"False": False, "True": True}.get(shuffle, shuffle.strip('"'))
        options = {"open_shards": int(width)} if width else {}
        assert mixing(value, **options) == (each, near), shuffle


def test_blocks_mix_as_evenly_as_they_can():
    """Each batch in the middle has rows of every open shard, in about equal numbers."""
    rows, batch, width = 4096, 1024, 8
    found = epoch_of(an_order([rows] * 32, batch, open_shards=width))
    middle = found[len(found) // 4:3 * len(found) // 4]
    for one in middle:
        counts = np.bincount(one // rows)
        counts = counts[counts > 0]
        assert width <= len(counts) <= width + 1
        assert counts.sum() == batch and counts.max() < 2 * batch // width
