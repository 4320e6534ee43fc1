"""Memory that is kept from one load to the next."""
import gc
import os
import subprocess
import sys
import threading

import pytest

np = pytest.importorskip("numpy")
resource = pytest.importorskip("resource", reason="keeps no memory on Windows")

from libsafetensors import release_memory  # noqa: E402
from libsafetensors.numpy import load, load_file, save, save_file  # noqa: E402

MIB = 1 << 20
MOST = 128 * MIB

SMALL = [300_000] * 39          # three blocks of 13
LARGE = [3 * MIB, 5 * MIB + 7]  # a block each
FIRST_LARGE = "t%d" % len(SMALL)


@pytest.fixture(autouse=True)
def nothing_kept():
    gc.collect()
    release_memory()
    yield
    release_memory()


NOISE = np.random.default_rng(21).integers(0, 256, 64 * MIB, np.uint8)


def noise(size, seed, number):
    """No two have long stretches in common."""
    start = (seed * 7919 + number * 104729) % (len(NOISE) - size)
    return NOISE[start:start + size]


def model(sizes, seed):
    """Arrays of so many bytes."""
    return {"t%d" % i: noise(size, seed, i) for i, size in enumerate(sizes)}


def right(loaded, seed):
    return all(np.array_equal(array, noise(array.size, seed, int(name[1:])))
               for name, array in loaded.items())


def addresses(arrays):
    return {array.ctypes.data for array in arrays.values()}


@pytest.mark.parametrize("sizes", [SMALL, LARGE, SMALL + LARGE])
def test_the_next_load_has_the_memory_of_the_last(sizes):
    first = load(save(model(sizes, 1)))
    where = addresses(first)
    assert right(first, 1) and release_memory() == 0
    del first
    second = load(save(model(sizes, 2)))
    assert right(second, 2) and addresses(second) == where
    del second
    assert sum(sizes) <= release_memory() <= sum(sizes) + 2 * MIB
    assert release_memory() == 0


def test_files_and_single_tensors(tmp_path):
    import libsafetensors
    path = tmp_path / "m.safetensors"
    save_file(model(LARGE, 3), path)
    first = load_file(path)
    where = addresses(first)
    del first
    with libsafetensors.open(path, mode="read") as file:
        single = {name: file[name].numpy() for name in file}
    assert right(single, 3) and addresses(single) == where


def test_what_is_in_use_is_not_given_again():
    held = load(save(model(SMALL + LARGE, 1)))[FIRST_LARGE]  # the rest is kept
    others = load(save(model(SMALL + LARGE, 100)))
    assert right(others, 100) and right({FIRST_LARGE: held}, 1)
    assert held.ctypes.data not in addresses(others)


def test_a_view_keeps_its_block():
    view = load(save(model(LARGE, 5)))["t0"][7:1007]
    others = load(save(model(LARGE, 50)))
    assert right(others, 50) and np.array_equal(view, noise(LARGE[0], 5, 0)[7:1007])


def test_at_most_so_much_is_kept_and_no_giant():
    data = save(model([5 * MIB] * 20, 1))
    both = [load(data), load(data)]
    del both
    assert MOST - 5 * MIB < release_memory() <= MOST
    giant = load(save(model([40 * MIB], 1)))
    assert right(giant, 1)
    del giant
    assert release_memory() == 0


def test_many_blocks():
    """More than there are places for."""
    loaded = load(save(model([7 << 18] * 70, 1)))
    assert right(loaded, 1)
    del loaded
    assert 60 * (7 << 18) <= release_memory() <= MOST


def test_a_block_is_not_used_for_much_less():
    before = load(save(model([8 * MIB], 1)))
    where = addresses(before)
    del before
    little = load(save(model([4 * MIB], 2)))
    assert right(little, 2) and addresses(little) != where
    close = load(save(model([7 * MIB], 3)))
    assert right(close, 3) and addresses(close) == where
    del close
    assert release_memory() == 7 * MIB  # its end was given back


def test_each_size_finds_its_own():
    where = None
    for seed in range(3):
        loaded = load(save(model([8 * MIB, 7 * MIB, 8 * MIB, 7 * MIB], seed)))
        assert right(loaded, seed) and where in (None, addresses(loaded))
        where = addresses(loaded)
        del loaded


def test_a_load_that_is_stopped_loses_nothing():
    data = save(model(LARGE, 1))

    class Stop(Exception):
        pass

    class Source:
        """Has the header, and no more."""
        def __init__(self):
            self.at = 0

        def seekable(self):
            return True

        def seek(self, to, whence=0):
            self.at = to + (self.at if whence == 1 else len(data) if whence == 2 else 0)
            return self.at

        def tell(self):
            return self.at

        def read(self, size=-1):
            if self.at + size > 4 * MIB:
                raise Stop
            self.at += size
            return data[self.at - size:self.at]
    import libsafetensors
    with pytest.raises(Stop):
        libsafetensors.open(Source()).numpy()
    assert sum(LARGE) <= release_memory() <= sum(LARGE) + MIB


def test_threads_share_what_is_kept():
    failed, rounds = [], 20

    def work(seed):
        try:
            for turn in range(rounds):
                number = seed * 50 + turn
                loaded = load(save(model(SMALL[:8] + [2 * MIB, 3 * MIB], number)))
                assert right(loaded, number)
                del loaded
                assert turn % 7 != seed or release_memory() <= MOST
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and release_memory() <= MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="has no fork")
def test_a_child_of_fork_has_memory_of_its_own():
    held = load(save(model(LARGE, 1)))
    before = load(save(model(LARGE, 2)))
    where = addresses(before)
    del before
    child = os.fork()
    if not child:
        good = False
        try:
            mine = load(save(model(LARGE, 3)))
            good = right(mine, 3) and addresses(mine) == where and right(held, 1)
        finally:
            os._exit(0 if good else 1)
    mine = load(save(model(LARGE, 4)))
    assert os.waitpid(child, 0)[1] == 0
    assert right(mine, 4) and right(held, 1)


def test_without_address_space_what_is_kept_is_used():
    """Of a limit that leaves room for little more than one of two sizes."""
    program = """
import resource
import numpy as np
from libsafetensors import release_memory
from libsafetensors.numpy import load, save
MIB = 1 << 20
large = save({"a": np.ones(20 * MIB, np.uint8), "b": np.ones(20 * MIB, np.uint8),
              "c": np.ones(20 * MIB, np.uint8)})
other = save({"a": np.ones(30 * MIB, np.uint8), "b": np.ones(30 * MIB, np.uint8)})
load(large)
with open("/proc/self/statm") as facts:
    size = int(facts.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 20 * MIB, size + 20 * MIB))
assert int(load(other)["b"].sum()) == 30 * MIB
print("kept", release_memory() // MIB)
"""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("the size of a process is not told here")
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0 and done.stdout == "kept 60\n"


def test_memory_goes_back_to_the_system():
    """Freed blocks that are not kept do not stay in the process as holes of its heap."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("the size of a process is not told here")

    def resident():
        with open("/proc/self/statm") as facts:
            return int(facts.read().split()[1]) * resource.getpagesize()
    load(save(model([3 * MIB] * 3, 0)))
    data = save(model([3 * MIB] * 100, 1))
    before = resident()
    loaded = load(data)
    assert resident() >= before + 250 * MIB
    del loaded
    assert resident() <= before + MOST + 16 * MIB
    release_memory()
    assert resident() <= before + 16 * MIB
