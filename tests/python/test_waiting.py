"""Pipes: one named by a file is never waited for; one named by the user is, until a signal."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from reading import pack

import libsafetensors
from libsafetensors import _core

CALLS = {
    "open": "libsafetensors.open('p')",
    "open read": "libsafetensors.open('p', mode='read')",
    "load_file": "from libsafetensors.numpy import load_file; load_file('p')",
    "the official name": "import libsafetensors; libsafetensors.install(); import safetensors.numpy as n\n"
                 "    n.load_file('p')",
    "hash": "libsafetensors.hash('p')",
    "check": "libsafetensors.check('p')",
    "info": "libsafetensors.info('p')",
    "read after the header": "file = libsafetensors.open('q'); file['w'].tobytes()",
}
PROGRAM = """
import sys, libsafetensors
print("begins", flush=True)
try:
    %s
    print("returned")
except KeyboardInterrupt:
    print("interrupted")
except BaseException as error:
    print(type(error), error)
"""


def program(call, folder):
    return subprocess.Popen([sys.executable, "-c", PROGRAM % call], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.fixture
def folder(tmp_path):
    os.mkfifo(tmp_path / "p")
    os.mkfifo(tmp_path / "q")
    return tmp_path


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.few(3)
def test_interrupt_ends_a_wait(folder, call):
    hold = [os.open(folder / name, os.O_RDWR) for name in "pq"]
    header = json.dumps({"w": {"dtype": "U8", "shape": [9], "data_offsets": [0, 9]}}).encode()
    os.write(hold[1], len(header).to_bytes(8, "little") + header)
    child = program(call, folder)
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.7)
        assert child.poll() is None, child.stdout.read()
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=100)
    finally:
        child.kill()
        for fd in hold:
            os.close(fd)
    assert said == "interrupted\n"


def test_a_handler_that_does_not_raise_goes_on(folder):
    data = pack({"w": ("U8", [3], b"abc")})
    call = ("import signal; signal.signal(signal.SIGUSR1, lambda *_: print('handled', flush=True))"
            "; print(libsafetensors.open('p')['w'].tobytes())")
    child = program(call, folder)
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGUSR1)
        assert child.stdout.readline() == "handled\n"
        with open(folder / "p", "wb") as out:
            out.write(data)
        assert child.communicate(timeout=100)[0] == "b'abc'\nreturned\n"
    finally:
        child.kill()


def test_one_writer_is_enough(folder):
    """Of a pipe nothing is read twice, so that it is not opened to see whether it maps."""
    data = pack({"w": ("U8", [3], b"abc")})
    writer = subprocess.Popen([sys.executable, "-c",
                               "import sys; open('p', 'wb').write(bytes.fromhex(sys.argv[1]))",
                               data.hex()], cwd=folder)
    child = program("print(libsafetensors.open('p')['w'].tobytes())", folder)
    try:
        assert child.communicate(timeout=100)[0] == "begins\nb'abc'\nreturned\n"
        assert writer.wait(timeout=100) == 0
    finally:
        child.kill()
        writer.kill()


@pytest.mark.parametrize("shard", ["p", "folder", "link"])
def test_shards_are_files(folder, shard):
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("p")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": shard}}))
    for call in (libsafetensors.open, libsafetensors.info, libsafetensors.hash):
        with pytest.raises(OSError, match="expected a file, found a (pipe|folder)"):
            call(index)
    assert not libsafetensors.check(index)["ok"]


def test_beneath(tmp_path):
    data = pack({"w": ("U8", [3], b"abc")})
    (tmp_path / "f").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "m.safetensors").write_bytes(data)
    (tmp_path / "f" / "own.safetensors").write_bytes(data)
    (tmp_path / "f" / "w").symlink_to("../home")
    (tmp_path / "f" / "m.safetensors").symlink_to(tmp_path / "home" / "m.safetensors")
    (tmp_path / "f" / "near.safetensors").symlink_to("own.safetensors")
    folder = tmp_path / "f"
    for name in ("own", "near"):
        with _core.open(folder / (name + ".safetensors"), beneath=folder) as file:
            assert file["w"].tobytes() == b"abc"
    for name in ("w/m", "m", "../home/m"):
        with pytest.raises(_core.SafetensorError) as caught:
            _core.open(str(folder) + "/" + name + ".safetensors", beneath=folder)
        assert caught.value.code == "index_path"
    with pytest.raises(ValueError):
        _core.open(tmp_path / "home" / "m.safetensors", beneath=folder)
