"""TorchBatches advances from epoch to epoch, whoever iterates, and all ranks and workers agree."""
import itertools
from types import SimpleNamespace

import pytest

from libsafetensors import dataset

pa = pytest.importorskip("pyarrow")
torch = pytest.importorskip("torch")

from libsafetensors.dataset._torch import _Rounds  # noqa: E402

ROWS = 50
EPOCHS = 3
pytestmark = [pytest.mark.filterwarnings("ignore:This DataLoader will create"),
              pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dataset")
    dataset.write(pa.table({"c": range(ROWS)}), path, batch_size=10)
    return path


def batches(path, **options):
    return dataset.TorchBatches(path, 4, **{"seed": 5, **options})


def numbers(loader, most=None):
    return [batch["c"].tolist() for batch in itertools.islice(loader, most)]


@pytest.fixture(scope="module")
def want(path):
    """The epochs, which test_dataset_torch.py checks."""
    found = []
    for epoch in range(EPOCHS + 2):
        source = batches(path)
        source.set_epoch(epoch)
        found.append(numbers(source))
    assert len({str(one) for one in found}) == len(found)
    return found


def plain(source, **options):
    return torch.utils.data.DataLoader(source, batch_size=None, **options)


def own(source, **options):
    return source.loader(**options)


def stateful(source, **options):
    module = pytest.importorskip("torchdata.stateful_dataloader")
    return module.StatefulDataLoader(source, batch_size=None, **options)


KINDS = [plain, own, stateful]
WORKERS = [{}, {"num_workers": 1}, {"num_workers": 3},
           {"num_workers": 2, "persistent_workers": True}]
NAMES = ["none", "one", "three", "persistent"]
# Each kind of loader with three workers, and the one of the package in each way; make test-long has the rest.
LOADERS = pytest.mark.parametrize("kind, options", [
    pytest.param(kind, options, id="%s-%s" % (kind.__name__, name),
                 marks=[] if kind is own or name == "three" else pytest.mark.long)
    for kind in KINDS for name, options in zip(NAMES, WORKERS)])


@LOADERS
@pytest.mark.few(1)
def test_each_iteration_is_the_next_epoch(path, want, kind, options):
    source = batches(path)
    loader = kind(source, **options)
    for epoch in range(EPOCHS):
        torch.manual_seed(3)  # what a program does before each epoch: workers' seeds are equal
        assert numbers(loader) == want[epoch]
    assert epoch == 2 and loader.dataset.epoch in (2, 3)
    source.set_epoch(1)
    assert [numbers(loader), numbers(loader)] == want[1:3]


@LOADERS
@pytest.mark.few(1)
def test_one_that_is_left_early_counts(path, want, kind, options):
    loader = kind(batches(path), **options)
    assert numbers(loader, 1) == want[0][:1]
    assert numbers(loader, 5) == want[1][:5]
    assert numbers(loader) == want[2]
    assert numbers(loader, 2) == want[3][:2]


@pytest.mark.parametrize("method, lasting", [
    pytest.param("spawn", False, marks=pytest.mark.long),
    pytest.param("forkserver", True, marks=pytest.mark.long)])
def test_workers_of_other_start_methods(path, want, method, lasting):
    loader = plain(batches(path), num_workers=2, multiprocessing_context=method,
                   persistent_workers=lasting)
    assert [numbers(loader) for _ in range(2)] == want[:2]


def test_ranks_agree(path, want):
    for ranks in (2, 3):
        loaders = [plain(batches(path, rank=rank, ranks=ranks), num_workers=rank)
                   for rank in range(ranks)]
        for epoch in range(2):
            if epoch == 0:  # all leave early
                found = [numbers(loader, 2) for loader in loaders]
            else:
                found = [numbers(loader) for loader in loaders]
            found = [batch for step in zip(*found) for batch in step]
            assert found == want[epoch][:len(found)] and len(found) >= 2 * ranks


@pytest.mark.parametrize("options", WORKERS, ids=NAMES)
@pytest.mark.parametrize("stop", [3, ROWS // 4])
@pytest.mark.few(1)
def test_epochs_after_a_state(path, want, options, stop):
    """Also of a state at the end of an epoch."""
    for kind in (own, stateful):
        loader = kind(batches(path), **options)
        assert numbers(loader) == want[0]
        found = numbers(loader) if kind is stateful and stop == ROWS // 4 else numbers(loader, stop)
        state = loader.state_dict()
        loader = kind(batches(path, seed=77), **options)
        loader.load_state_dict(state)
        found += numbers(loader)
        if stop == ROWS // 4 and found != want[1]:  # the end of an epoch may be passed over
            assert found == want[1] + want[2]
            found = want[1]
            assert numbers(loader) == want[3]
        else:
            assert found == want[1]
            assert numbers(loader) == want[2]


def test_a_state_that_nobody_knows(path):
    source = batches(path)
    loader = plain(source, num_workers=1)
    assert source.state_dict()["delivered"] == 0
    numbers(loader, 3)
    with pytest.raises(RuntimeError, match="state of loader"):
        source.state_dict()
    source.set_epoch(4)
    assert source.state_dict()["epoch"] == 4


def test_workers_of_an_iteration_that_never_began(monkeypatch):
    """Processes that were ended before they began an iteration, in any order of the others."""
    process = 0
    for order in itertools.permutations(range(3)):
        rounds = _Rounds()
        for number, (seed, began) in enumerate([(70, (0, 1, 2)), (71, (1,)), (71, (0, 1, 2)),
                                                (72, (2, 0)), (73, (0, 1, 2))], 1):
            if number == 3:
                seed = 74
            for one in order:
                process += 1
                monkeypatch.setattr("os.getpid", lambda: process)
                if one in began:
                    assert rounds.begin(SimpleNamespace(id=one, seed=seed + one,
                                                        num_workers=3)) == number
        assert rounds.last() == 5


def test_workers_that_begin_late(monkeypatch):
    """Others that are reused are one iteration ahead."""
    rounds = _Rounds()
    for process, number in ((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 4), (4, 4)):
        monkeypatch.setattr("os.getpid", lambda: process)
        seed = 7 if process < 3 else 8
        one = 1 - process % 2
        assert rounds.begin(SimpleNamespace(id=one, seed=seed + one, num_workers=2)) == number


def test_fewer_rows_than_a_batch(path):
    with pytest.warns(UserWarning, match='50 rows fill no batch of 30 for each of 2 ranks.*"drop"'):
        source = dataset.TorchBatches(path, 30, rank=1, ranks=2)
    assert len(source) == 0 and numbers(source) == []
    for ends in ("pad", "uneven"):
        assert len(dataset.TorchBatches(path, 60, ends=ends)) == 1
