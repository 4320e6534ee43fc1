"""Long work in C looks at signals: Ctrl-C need not wait for its end."""
import io
import json
import struct

import numpy as np
import pytest

from alarms import alarm
from libsafetensors import _core

pytest.importorskip("ml_dtypes")
MIB = 1 << 20


class Stop(Exception):
    pass


def sparse(path, dtype, shape, size):
    text = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, size]}}).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + size)
    return str(path)


def looks(work):
    """How often a handler ran while the work was done, by a clock that never waits long."""
    seen = []
    with alarm(lambda *_: seen.append(1), 0.001, 0.001):
        work()
    return len(seen)


def of_file(path):
    return _core.open(sparse(path, "F32", [64, MIB], 256 * MIB), mode="read")


def small(path, mode="read"):
    return _core.open(sparse(path, "F4", [1 << 14, 1 << 13], 64 * MIB), mode=mode)


def memory(path):
    file = of_file(path)
    begin = file["x"].offset
    return lambda: file.memory(begin, begin + 256 * MIB)


def many(path):
    data = _core.save_bytes([("t%d" % i, "U8", [1], b"a", None) for i in range(60000)])
    file = _core.open(data, mode="map")
    return file.numpy


LONG = {
    "a range of the file": memory,
    "elements under a byte": lambda path: small(path, "auto")["x"].numpy,
    "many arrays": many,
    "a cast": lambda path: lambda: _core.cast(np.zeros(32 * MIB, "f4"), "F32", "F16"),
}


@pytest.mark.parametrize("what", LONG)
def test_it_looks_at_signals_meanwhile(what, tmp_path):
    assert looks(LONG[what](tmp_path / "x")) >= 4


@pytest.mark.parametrize("mode", ["read", "auto"])
def test_a_slice_of_elements_under_a_byte_ends_early(tmp_path, mode):
    tensor = _core.open(sparse(tmp_path / "x", "F4", [1 << 20, 1 << 11], 1024 * MIB),
                        mode=mode)["x"][:, 2:-2]
    got = np.full(tensor.nbytes, 255, np.uint8)

    def handler(number, frame):
        raise Stop
    with alarm(handler, 0.05):
        with pytest.raises(Stop):
            tensor.read_into(got)
    assert got[0] == 0 and got[-1] == 255, "it was read to the end"


@pytest.mark.parametrize("dtype", ["F4", "F6_E2M3", "F6_E3M2"])
@pytest.mark.few(1)
def test_slices_in_pieces_are_the_same(dtype, monkeypatch):
    # As large as makes several pieces, and of shapes that end inside of bytes.
    bits = {"F4": 4}.get(dtype, 6)
    random = np.random.default_rng(2)
    for shape, index in (((40, 1 << 20), np.s_[:, 8:-8]), ((1 << 20, 40), np.s_[3:, :]),
                         ((3, 12, 1 << 20), np.s_[1:, :, 16:]), ((5, 1 << 23), np.s_[::2])):
        count = int(np.prod(shape))
        data = random.integers(0, 256, count * bits // 8, np.uint8)
        file = _core.open(io.BytesIO(_core.save_bytes([("x", dtype, shape, data, None)])))
        part = file["x"][index]
        each = np.unpackbits(data, bitorder="little").reshape(*shape, bits)
        want = np.packbits(each[index].reshape(-1), bitorder="little")
        assert part.tobytes() == want.tobytes()
