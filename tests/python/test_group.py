"""load_group: processes that read a part each (group_rank.py)."""
import os
import pathlib
import random
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("no gloo", allow_module_level=True)

import libsafetensors  # noqa: E402
from fake_device import FakeDevice  # noqa: E402
from libsafetensors import _device, _group  # noqa: E402
from libsafetensors.torch import load_file, load_group, save_file  # noqa: E402
from reading import pack  # noqa: E402

RANK = pathlib.Path(__file__).with_name("group_rank.py")


def run(folder, ranks, case, *arguments):
    store = folder / "store"
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, RANK]
    processes = [subprocess.Popen([*command, str(rank), str(ranks), store, case, *arguments],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=environment) for rank in range(ranks)]
    told = []
    try:
        for process in processes:
            told.append(process.communicate(timeout=300)[0])
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(told)


@pytest.fixture
def paths(tmp_path):
    torch.manual_seed(1)
    save_file({"a": torch.randn(300, 1000), "b": torch.randn(1 << 19), "c": torch.tensor(3),
               "d": torch.empty(0, 7), "e": torch.randn(1, 1 << 19)}, tmp_path / "one")
    save_file({"f%d" % i: torch.arange(i * 50, dtype=torch.int16) for i in range(40)},
              tmp_path / "two")
    return [tmp_path / "one", tmp_path / "two"]


@pytest.mark.long
def test_two_ranks(tmp_path, paths):
    run(tmp_path, 2, "whole", *paths)


def test_three_ranks_and_failures(tmp_path, paths):
    """One group after another failure: processes are started once, which takes longest."""
    run(tmp_path, 3, "everything", *paths)


def test_a_group_of_one_over_a_device(tmp_path, paths, monkeypatch):
    """Pieces are read ahead through slots of the device."""
    devices = []

    def device_of(place):
        devices.append(FakeDevice(len(devices)))
        return devices[-1]
    monkeypatch.setattr(_device, "device_of", device_of)
    monkeypatch.setattr(_group, "WINDOW_BYTES", 1 << 20)
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0,
                            world_size=1)
    try:
        found = load_group(paths)
        plain = {**load_file(paths[0]), **load_file(paths[1])}
        assert list(found) == list(plain)
        assert all(torch.equal(found[name], plain[name]) for name in plain)
        assert sum(device.calls.get("finish", 0) for device in devices) >= 4
        # One that fails leaves no slot in use and no copy undone.
        devices.clear()
        monkeypatch.setattr(_device.Load, "finish", lambda load: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            load_group(paths)
        for device in devices:
            assert not device.pending and device.slots.count == len(device.slots._free)
    finally:
        dist.destroy_process_group()


# ── Cutting ──

@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("window", [100000, 1 << 20, 1 << 30])
def test_every_byte_is_in_one_piece(tmp_path, monkeypatch, ranks, window):
    monkeypatch.setattr(_group, "WINDOW_BYTES", window)
    chance = random.Random(ranks)
    data = {}
    for i in range(60):
        shape = [chance.choice([0, 1, 2, 7, 300]) for _ in range(chance.randrange(4))]
        dtype, bits = chance.choice([("U8", 8), ("F32", 32), ("F4", 4), ("C64", 64)])
        count = 1
        for dim in shape:
            count *= dim
        if count * bits % 8 or count * bits > 1 << 21:
            continue
        data["t%d" % i] = (dtype, shape, bytes(count * bits // 8))
    (tmp_path / "m").write_bytes(pack(data))
    tensors = list(libsafetensors.open(tmp_path / "m", mode="read").values())
    seen = {number: [] for number in range(len(tensors))}
    shares, count = [0] * ranks, 0
    for pieces, size in _group.windows(tensors, ranks):
        assert len(pieces) == ranks
        for rank, chunks in enumerate(pieces):
            end, count = 0, count + 1
            for chunk, number, begin, at in chunks:
                assert at % 512 == 0 and at >= end
                end = at + chunk.nbytes
                assert end <= size
                seen[number].append((begin, begin + chunk.nbytes))
                shares[rank] += chunk.nbytes
                expected = tensors[number].byte_ranges()[0][0] + begin
                assert chunk.byte_ranges() == [(expected, expected + chunk.nbytes)]
    for number, rows in seen.items():
        rows.sort()
        ends = [0, *(end for _, end in rows)]
        assert [begin for begin, _ in rows] == ends[:-1] and ends[-1] == tensors[number].nbytes
    # A tensor is cut only where a piece ends.
    assert sum(map(len, seen.values())) <= len(tensors) + count
    if window == 100000 and sum(shares) > 20 * window:
        assert max(shares) <= 1.5 * sum(shares) / ranks
