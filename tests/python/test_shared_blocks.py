"""Small tensors that are read together lie in blocks together, each as if it had its own."""
import gc

import pytest

from reading import pack

np = pytest.importorskip("numpy")

import libsafetensors.numpy as st  # noqa: E402

SIZES = (4, 16 << 10, 20_001, 100_000, 1 << 20, 1_835_007, 1_835_008, 2 << 20, 5 << 20, 0)


def tensors():
    """Of every kind: tiny ones, those that share, and large ones, in turns."""
    rng = np.random.default_rng(7)
    return {"%02d" % i: rng.integers(0, 256, SIZES[i % len(SIZES)], dtype=np.uint8)
            for i in range(4 * len(SIZES))}


@pytest.fixture(scope="module")
def given():
    return tensors()


@pytest.fixture(scope="module")
def data(given):
    return pack({name: ("U8", [value.size], value.tobytes()) for name, value in given.items()})


def end(array):
    return array.ctypes.data + array.nbytes


def test_tensors_do_not_touch_each_other(given, data):
    loaded = st.load(data)
    for name, value in loaded.items():
        assert np.array_equal(value, given[name])
        assert value.size == 0 or value.ctypes.data % 64 == 0
    inner = sorted((v for v in loaded.values() if v.size), key=lambda v: v.ctypes.data)
    assert all(end(a) <= b.ctypes.data for a, b in zip(inner, inner[1:]))
    for name in loaded:
        loaded[name][...] = int(name)
    assert all((value == int(name)).all() for name, value in loaded.items())


def test_each_outlives_the_others(given, data):
    for kept in list(given)[::7]:
        value = st.load(data)[kept]
        gc.collect()
        again = st.load(data)
        assert np.array_equal(value, given[kept])
        del again


def test_neighbours_share_a_block_of_at_most_4_MiB():
    size = 300_000
    given = {"%02d" % i: np.full(size, i, np.uint8) for i in range(40)}
    data = pack({name: ("U8", [size], value.tobytes()) for name, value in given.items()})
    loaded = st.load(data)
    starts = [loaded[name].ctypes.data for name in given]
    step = -(-size // 64) * 64
    joined = [b - a == step for a, b in zip(starts, starts[1:])]
    assert sum(joined) >= 30
    fit = (4 << 20) // step
    assert all(not all(joined[i:i + fit]) for i in range(len(joined) - fit + 1))


def test_few_faults_for_many_tensors():
    """A fault for each 4 KiB would be 12,000. Without huge pages there is nothing to be seen."""
    resource = pytest.importorskip("resource")
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            if "[never]" in file.read():
                pytest.skip("no huge pages")
    except OSError:
        pytest.skip("no huge pages")
    data = pack({"%03d" % i: ("U8", [250_000], bytes(250_000)) for i in range(200)})
    counts = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        loaded = st.load(data)
        counts.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
        del loaded
    assert min(counts) < 6000
