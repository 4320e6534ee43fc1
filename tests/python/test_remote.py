"""URLs: what reads a path reads them, by libcurl and by Python's own modules."""
import contextlib
import gc
import json
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import libsafetensors
import libsafetensors.numpy
from libsafetensors import _remote, lora, remote

import faults
import hub as hubs
import models

SECRET = "xyzzysecret"


@pytest.fixture
def folder(tmp_path, transport, monkeypatch):
    """A model in three shards, here and as hf://ns/m."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    here = tmp_path / "model"
    here.mkdir()
    models.sharded(here, 3)
    return here


@pytest.fixture
def hub(folder, site, monkeypatch):
    one = hubs.Hub(site)
    one.add("ns/m", {path.name: path.read_bytes() for path in folder.iterdir()})
    monkeypatch.setenv("HF_ENDPOINT", site.url("A"))
    return one


def arrays():
    rng = np.random.default_rng(1)
    return {"a": rng.standard_normal((64, 32)).astype("f4"), "b": np.arange(300, dtype="i8"),
            "c": rng.standard_normal((512, 1024)).astype("f4")}


@pytest.fixture
def url(site, transport):
    return site.put("A", "/m.safetensors", libsafetensors.numpy.save(arrays()))


def equal(found, wanted):
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


# ── One file ──

def test_every_function_reads_it(url, site, tmp_path):
    local = tmp_path / "m.safetensors"
    local.write_bytes(libsafetensors.numpy.save(arrays()))
    wanted = libsafetensors.numpy.load_file(local)
    equal(libsafetensors.numpy.load_file(url), wanted)
    with libsafetensors.open(url) as file:
        assert not file.mapped and file.paths == [url]
        equal(file.numpy(), wanted)
        assert np.array_equal(np.asarray(file["c"][3:5]), wanted["c"][3:5])
    with libsafetensors.safe_open(url, "np") as file:
        assert np.array_equal(file.get_slice("a")[2], wanted["a"][2])
    equal(libsafetensors.open_set(url).numpy(), wanted)
    assert libsafetensors.ls(url)["tensors"] == libsafetensors.ls(local)["tensors"]
    here, there = libsafetensors.info(local)["model"], libsafetensors.info(url)["model"]
    assert here["kind"] == there["kind"] and here["parameters"] == there["parameters"]
    assert libsafetensors.check(url, deep=True)["ok"]
    assert libsafetensors.hash(url)["computed"] == libsafetensors.hash(local)["computed"]
    assert libsafetensors.diff(url, local)["same"]
    assert libsafetensors.fits(url, local) == libsafetensors.fits(local, local)
    libsafetensors.convert(url, tmp_path / "half.safetensors", "F16")
    assert libsafetensors.numpy.load_file(tmp_path / "half.safetensors")["a"].dtype == np.float16
    assert libsafetensors.recognise(url) is None
    assert libsafetensors.slice_byte_ranges(url, "a", 0)


def test_torch_shares_no_map(url):
    torch = pytest.importorskip("torch")
    from libsafetensors.torch import load_file
    found = load_file(url)
    assert all(torch.equal(found[name], torch.from_numpy(array))
               for name, array in arrays().items())


def test_only_what_is_needed_is_fetched(url, site):
    with libsafetensors.open(url) as file:
        assert file.keys() and site.sent() < 200 << 10


def test_an_import(site, transport, tmp_path):
    np.savez(tmp_path / "m.npz", **arrays())
    url = site.put("A", "/m.npz", (tmp_path / "m.npz").read_bytes())
    assert libsafetensors.recognise(url) == "npz"
    with libsafetensors.open_import(url) as model:
        found = model.numpy()
    equal({name: found[name] for name in arrays()}, arrays())
    libsafetensors.import_model(url, tmp_path / "out.safetensors")
    assert sorted(libsafetensors.numpy.load_file(tmp_path / "out.safetensors")) == ["a", "b", "c"]


def test_nothing_is_written_to_a_url(url, site, tmp_path):
    st = libsafetensors.numpy
    for use in (lambda: st.save_file(arrays(), url), lambda: libsafetensors.Writer(url),
                lambda: libsafetensors.convert(url, url, "F16"),
                lambda: libsafetensors.edit_metadata(url, {"a": "b"}),
                lambda: libsafetensors.rename_tensors(url, {"a": "b"}),
                lambda: libsafetensors.put(url, {"a": arrays()["a"]}),
                lambda: libsafetensors.recover(url)):
        with pytest.raises(ValueError, match="files of URLs are only read"):
            use()
    assert site.log == []


def test_what_cannot_be_mapped_is_said(url):
    for mode in ("map", "cow"):
        with pytest.raises(ValueError, match="'auto' or 'read' for a URL"):
            libsafetensors.open(url, mode=mode)


def test_a_path_object_is_never_a_url(site, url):
    with pytest.raises(FileNotFoundError):
        libsafetensors.open(pathlib.PurePosixPath("hf://ns/m"))
    assert site.log == []


# ── The Hub ──

def test_a_repository_is_a_folder(hub, folder):
    wanted = libsafetensors.open(folder).numpy()
    for name in ("hf://ns/m", "hf://ns/m@main/model.safetensors.index.json"):
        equal(libsafetensors.open(name).numpy(), wanted)
        equal(libsafetensors.numpy.load_file(name), libsafetensors.numpy.load_file(folder))
        equal(libsafetensors.open_set(name).numpy(), wanted)
        with libsafetensors.safe_open(name, "np") as file:
            equal(file.get_tensors(), wanted)
        assert libsafetensors.check(name)["ok"]
        assert libsafetensors.hash(name, "content")["computed"] \
            == libsafetensors.hash(folder, "content")["computed"]
    here, there = libsafetensors.info(folder), libsafetensors.info("hf://ns/m")
    for key in ("kind", "parameters", "architecture", "llm", "license", "dtypes"):
        assert here["model"].get(key) == there["model"].get(key)
    assert there["model"]["repo"]["value"] == "ns/m"
    one = next(path for path in folder.iterdir() if path.suffix == ".safetensors")
    alone = libsafetensors.info("hf://ns/m/" + one.name)
    assert '"hub"' in json.dumps(alone["hashes"]) and models.sha256(one.read_bytes()) \
        in json.dumps(alone["hashes"])
    assert alone["sidecars"] == libsafetensors.info(one)["sidecars"][:0]
    said = alone["remote"]
    assert said["url"] == "hf://ns/m/" + one.name and said["bytes"] == one.stat().st_size
    assert said["sha256"] == models.sha256(one.read_bytes()) and said["local"] is False
    assert said["commit"] == hub.repositories["models", "ns/m"].refs["main"]
    assert "remote" not in here
    with pytest.raises(FileNotFoundError):
        libsafetensors.open("hf://ns/m/none.safetensors")


def test_info_of_a_repository_of_several_models_runs_no_command(hub, monkeypatch):
    data = libsafetensors.numpy.save(arrays())
    hub.add("ns/two", {"a.safetensors": data, "b.safetensors": data})
    monkeypatch.setattr("libsafetensors._command.run", lambda *_: pytest.fail("it was run"))
    with pytest.raises(OSError):
        libsafetensors.info("hf://ns/two")


def test_adapters_have_their_configuration(hub, tmp_path):
    """PEFT's beside its file, of a repository and of a URL as in a folder; what is told counts."""
    here = tmp_path / "peft"
    here.mkdir()
    rng = np.random.default_rng(7)
    file = here / "adapter_model.safetensors"
    libsafetensors.numpy.save_file({
        "base_model.model.x.lora_B.weight": rng.standard_normal((8, 4)).astype("f4"),
        "base_model.model.x.lora_A.weight": rng.standard_normal((4, 8)).astype("f4")}, file)
    model = here / "model.safetensors"
    libsafetensors.numpy.save_file({"x.weight": rng.standard_normal((8, 8)).astype("f4")}, model)
    (here / "adapter_config.json").write_text('{"lora_alpha": 8}')
    for repository, names in (("ns/p", ("adapter_model.safetensors", "adapter_config.json")),
                              ("ns/bare", ("adapter_model.safetensors",)),
                              ("ns/many", ("adapter_model.safetensors",))):
        hub.add(repository, {name: (here / name).read_bytes() for name in names})
    hub.add("ns/many", {"adapter_model.safetensors": file.read_bytes(),
                        "adapter_config.json": b" " * (5 << 20)})
    for name in ("hf://ns/p", "hf://ns/p/adapter_model.safetensors"):
        assert lora.info(name) == lora.info(here / file.name)
        assert lora.info(name)["modules"][0]["scale"] == 2
        assert lora.info(name, config=b'{"lora_alpha": 12}')["modules"][0]["scale"] == 3
        for done in (lambda given, out: lora.resize(given, out, rank=2, overwrite=True),
                     lambda given, out: lora.stack([given, (given, 0.5)], out, overwrite=True),
                     lambda given, out: lora.merge(model, (given,), out, overwrite=True)):
            done(name, tmp_path / "a.safetensors")
            done(file, tmp_path / "b.safetensors")
            equal(libsafetensors.numpy.load_file(tmp_path / "a.safetensors"),
                  libsafetensors.numpy.load_file(tmp_path / "b.safetensors"))
    assert lora.info("hf://ns/bare")["modules"][0]["scale"] == 1
    with pytest.raises(ValueError, match="4 MiB"):
        lora.info("hf://ns/many")


def test_a_token(hub, folder, monkeypatch):
    hub.repositories["models", "ns/m"].private = True
    with pytest.raises(Exception) as refused:
        libsafetensors.open("hf://ns/m")
    assert refused.value.code in ("remote_denied", "not_found")
    with remote.Remote(token=hubs.TOKEN) as mine:
        remote.use(mine)
        assert libsafetensors.open("hf://ns/m").keys()
        remote.use(None)
    assert hubs.TOKEN not in str(refused.value) + repr(mine)


# ── Remote ──

def test_remote_and_use(url, site):
    seen = []
    with remote.Remote(connections=2, on_exchange=seen.append) as mine:
        assert remote.use(mine) is None
        assert mine.claims(url) is None and mine.sums == {"requests": 0, "bytes": 0, "retries": 0}
        file = libsafetensors.open(url)
        assert mine.claims(url)["bytes"] == site.paths["A", "/m.safetensors"].content.size
        assert mine.claims(url)["local"] is False and mine.claims(url)["sha256"] is None
        assert mine.sums["requests"] == len(seen) == site.count()
        assert seen[0]["method"] == "GET" and seen[0]["code"] == "ok" and seen[0]["url"] == url
        assert remote.use(None) is mine
    assert mine.closed
    equal(file.numpy(), libsafetensors.open(url).numpy())  # an open file keeps its connections
    with pytest.raises(ValueError, match="closed"):
        mine.sums
    remote.use(mine)
    with pytest.raises(ValueError, match="closed"):
        libsafetensors.open(url)
    for wrong in (dict(connections=0), dict(connections=65), dict(retries=-1), dict(timeout=0),
                  dict(public_only=True, proxy="http://127.0.0.1:1")):
        with pytest.raises(ValueError):
            remote.Remote(**wrong)
    for wrong in (dict(on_exchange=3), dict(proxy=3), dict(token=3), dict(timeout="a")):
        with pytest.raises(TypeError):
            remote.Remote(**wrong)
    with pytest.raises(TypeError):
        remote.use(3)


def test_options(url, site, tmp_path):
    with remote.Remote(public_only=True, retries=0) as mine:
        remote.use(mine)
        with pytest.raises(OSError) as error:
            libsafetensors.open(url)
        assert error.value.code == "remote_private" and site.log == []
    with remote.Remote(whole=True) as mine:
        remote.use(mine)
        with libsafetensors.open(url) as file:
            assert file["a"].numpy().tobytes() == arrays()["a"].tobytes()
        assert site.log
        site.log.clear()
    with remote.Remote(offline=True) as mine:
        remote.use(mine)
        with pytest.raises(Exception) as error:
            libsafetensors.open(url)
        assert error.value.code == "remote_offline" and site.log == []
    with remote.Remote(cache=tmp_path / "headers") as mine:
        remote.use(mine)
        libsafetensors.open(url).close()
    assert any((tmp_path / "headers").rglob("*"))


def test_what_on_exchange_raises_is_unraisable(url, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", seen.append)
    with remote.Remote(on_exchange=lambda exchange: 1 / 0) as mine:
        remote.use(mine)
        assert libsafetensors.open(url).keys()
    assert seen and seen[0].exc_type is ZeroDivisionError


# ── Servers that fail ──

def test_faults(url, site):
    wanted = libsafetensors.numpy.load_file(url)
    remote.use(None)
    site.fault("A GET", faults.status(503), faults.cut(1000), None, faults.hang_up, faults.chunked)
    equal(libsafetensors.numpy.load_file(url), wanted)
    site.always("A GET", faults.silent_close)
    equal(libsafetensors.numpy.load_file(url), wanted)
    site.constant.clear()
    site.always("A GET", faults.http_1_0)
    equal(libsafetensors.numpy.load_file(url), wanted)


def test_a_server_that_is_away(transport, site):
    url = site.url("A", "/none")
    with pytest.raises(FileNotFoundError):
        libsafetensors.open(url)
    with remote.Remote(retries=0, connect_timeout=2) as mine:
        remote.use(mine)
        with pytest.raises(OSError) as error:
            libsafetensors.open("http://127.0.0.1:1/m.safetensors")
    assert error.value.code == "remote_network"


def test_a_stalled_server_times_out(url, site):
    site.always("A GET", faults.pause(30))
    with remote.Remote(retries=0, timeout=1) as mine:
        remote.use(mine)
        begun = time.monotonic()
        with pytest.raises(OSError) as error:
            libsafetensors.open(url)
    assert error.value.code == "remote_network" and time.monotonic() - begun < 15


# ── What a server says ──

def test_info_of_a_url_tells_what_its_server_says(url, site):
    """As the command's --json does."""
    said = libsafetensors.info(url)["remote"]
    resource = site.paths["A", "/m.safetensors"]
    assert said == {"url": url, "bytes": resource.content.size, "sha256": None, "commit": None,
                    "etag": resource.etag, "local": False}
    secret = url.replace("http://", "http://user:%s@" % SECRET) + "?key=" + SECRET
    shown = libsafetensors.info(secret)["remote"]["url"]
    assert SECRET not in shown and shown.partition("]@")[2] == url.partition("://")[2]


# ── Secrets ──

def test_no_secret_is_told(url, site):
    secret = url.replace("http://", "http://user:%s@" % SECRET) + "?key=" + SECRET
    site.always("A GET", lambda request, reply: None)
    file = libsafetensors.open(secret)
    texts = [repr(file), str(file.paths), file._repr_html_()]
    with pytest.raises(TypeError, match="query") as error:
        pickle.dumps(file)
    texts.append(str(error.value))
    missing = secret.replace("/m.", "/none.")
    for use in (libsafetensors.open, libsafetensors.info, libsafetensors.check, libsafetensors.hash,
                libsafetensors.numpy.load_file, libsafetensors.recognise):
        with pytest.raises(Exception) as error:
            use(missing)
        texts += [str(error.value), repr(error.value), str(error.value.__dict__)]
    with pytest.raises(ValueError) as error:
        libsafetensors.numpy.save_file({}, secret)
    texts.append(str(error.value))
    assert not [text for text in texts if SECRET in text]


def test_a_pickle_is_opened_again(url, site):
    file = libsafetensors.open(url)
    again = pickle.loads(pickle.dumps(file))
    equal(again.numpy(), file.numpy())


# ── Threads, signals, processes, memory ──

def test_threads(url):
    wanted = libsafetensors.numpy.load_file(url)
    failed = []

    def read():
        try:
            for _ in range(5):
                equal(libsafetensors.numpy.load_file(url), wanted)
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=read) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


FORKED = """
import os, sys, warnings
import libsafetensors.numpy
from libsafetensors import remote
warnings.simplefilter("ignore")
url = sys.argv[1]
before = libsafetensors.open(url)
before.numpy()
mine = remote.Remote()


def refused(call):
    try:
        call()
    except ValueError as error:
        return error.code == "bad_argument" and "after fork" in str(error)


child = os.fork()
if child == 0:
    ours = refused(before.numpy) and refused(before["b"].numpy) and refused(lambda: mine.sums)
    after = libsafetensors.numpy.load_file(url)
    os._exit(0 if ours and len(after) == 3 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
before.numpy()
assert mine.sums["requests"] == 0
"""

# Forks while another thread reads, and so while the pool has work that the child's never ends.
FORKED_MEANWHILE = """
import os, signal, sys, threading, time, warnings
import libsafetensors, numpy
warnings.simplefilter("ignore")
file = libsafetensors.open(sys.argv[1])
threading.Thread(target=file.numpy, daemon=True).start()
time.sleep(0.5)
child = os.fork()
if child == 0:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(5)
    try:
        file.numpy()
    except ValueError as error:
        os._exit(0 if "after fork" in str(error) else 2)
    os._exit(1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_connections_of_its_own(url):
    subprocess.run([sys.executable, "-c", FORKED, url], check=True, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_a_process_that_reads_is_refused_at_once(url, site):
    site.always("A GET", lambda request, reply: setattr(reply, "pause", 60 * (site.count() > 1)))
    subprocess.run([sys.executable, "-c", FORKED_MEANWHILE, url], check=True, timeout=60)


def test_an_interpreter_ends_with_files_open(url):
    program = ("import sys, libsafetensors\nfrom libsafetensors import remote\n"
               "mine = remote.Remote(on_exchange=print)\nremote.use(mine)\n"
               "file = libsafetensors.open(sys.argv[1])\nx = file.numpy(['a'])\n")
    subprocess.run([sys.executable, "-c", program, url], check=True, timeout=60,
                   stdout=subprocess.DEVNULL)


def test_nothing_is_leaked(url):
    def once():
        seen = []
        with remote.Remote(on_exchange=seen.append) as mine:
            remote.use(mine)
            libsafetensors.open(url).close()
            with contextlib.suppress(FileNotFoundError):
                libsafetensors.open(url + "none")
            remote.use(None)
        return sys.getrefcount(seen), sys.getrefcount(mine)
    first = once()
    gc.collect()
    handles = len(os.listdir("/proc/self/fd")) if sys.platform.startswith("linux") else 0
    for _ in range(5):
        assert once() == first
    gc.collect()
    until = time.monotonic() + 5  # the server, in this process, closes its ends later
    while handles and len(os.listdir("/proc/self/fd")) > handles:
        assert time.monotonic() < until
        time.sleep(0.05)


# ── Files of other libraries ──

class Counted:
    """A file system of fsspec whose requests are counted."""

    def __init__(self, system):
        self.system, self.asked = system, []

    def size(self, path):
        return self.system.size(path)

    def cat_file(self, path, start, end):
        self.asked.append(1)
        return self.system.cat_file(path, start, end)

    def cat_ranges(self, paths, starts, ends, on_error):
        self.asked.append(len(paths))
        return self.system.cat_ranges(paths, starts, ends, on_error=on_error)


def test_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    data = libsafetensors.numpy.save(arrays())
    memory = fsspec.filesystem("memory")
    memory.pipe("/remote.safetensors", data)
    (tmp_path / "m.safetensors").write_bytes(data)
    wanted = libsafetensors.open(data).numpy()
    opened = [memory.open("/remote.safetensors"), open(tmp_path / "m.safetensors", "rb"),
              fsspec.open(str(tmp_path / "m.safetensors")).open()]
    for given in (*opened, fsspec.open("memory://remote.safetensors"),
                  fsspec.open(str(tmp_path / "m.safetensors")), (memory, "/remote.safetensors")):
        with libsafetensors.open(given) as file:
            equal(file.numpy(), wanted)
        assert libsafetensors.check(given)["ok"] and libsafetensors.hash(given)["ok"]
        assert libsafetensors.info(given)["ok"]
    for file in opened:
        file.close()
    with pytest.raises(TypeError, match="call its open"):
        libsafetensors.open(fsspec.open("memory://remote.safetensors", compression="gzip"))
    for wrong in ((memory,), (memory, "a", "b"), (3, "a")):
        with pytest.raises(TypeError, match="pair"):
            libsafetensors.open(wrong)
    with pytest.raises(FileNotFoundError):
        libsafetensors.open((memory, "/none.safetensors"))


def test_announced_ranges_are_asked_for_together():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    many = {"t%03d" % i: np.full(100 << 10, i, "f4") for i in range(12)}
    memory.pipe("/many.safetensors", libsafetensors.numpy.save(many))
    counted = Counted(memory)
    with libsafetensors.open((counted, "/many.safetensors")) as file:
        counted.asked.clear()
        found = file.numpy(["t000", "t004", "t008", "t011"])
        assert max(counted.asked) > 1 and len(counted.asked) <= 2
        assert all(found[name].tobytes() == many[name].tobytes() for name in found)
        equal(file.numpy(), many)


def test_fsspec_over_http(site, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp", reason="fsspec reads http by aiohttp")
    url = site.put("A", "/m.safetensors", libsafetensors.numpy.save(arrays()))
    with libsafetensors.open(fsspec.open(url)) as file:
        equal(file.numpy(), libsafetensors.open(libsafetensors.numpy.save(arrays())).numpy())


def test_pyarrow(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import fs
    data = libsafetensors.numpy.save(arrays())
    (tmp_path / "m.safetensors").write_bytes(data)
    path, local = str(tmp_path / "m.safetensors"), fs.LocalFileSystem()
    wanted = libsafetensors.open(data).numpy()
    for given in (arrow.BufferReader(data), arrow.OSFile(path), local.open_input_file(path),
                  (local, path)):
        with libsafetensors.open(given) as file:
            equal(file.numpy(), wanted)
        assert libsafetensors.check(given)["ok"]


def test_obstore():
    obstore = pytest.importorskip("obstore", reason="obstore is not installed")
    data = libsafetensors.numpy.save(arrays())
    store = obstore.store.MemoryStore()
    store.put("m.safetensors", data)
    wanted = libsafetensors.open(data).numpy()
    for given in ((store, "m.safetensors"), obstore.open_reader(store, "m.safetensors")):
        with libsafetensors.open(given) as file:
            equal(file.numpy(), wanted)
            equal(file.numpy(["a", "c"]), {name: wanted[name] for name in ("a", "c")})


def test_a_source_of_another_library_is_collected():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/one.safetensors", libsafetensors.numpy.save(arrays()))

    class Place:
        fs, path, open = memory, "/one.safetensors", None
    place = Place()
    import weakref
    gone = weakref.ref(place)
    file = libsafetensors.open(place)
    place.file = file
    gc.collect()
    assert file.keys()
    del place, file
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("address, public", [
    ("93.184.216.34", True), ("2606:2800::1", True), ("::ffff:93.184.216.34", True),
    ("64:ff9b::5db8:d822", True), ("127.0.0.1", False), ("192.88.99.1", False),
    ("::ffff:127.0.0.1", False), ("64:ff9b::7f00:1", False), ("64:ff9b::a9fe:a9fe", False),
    ("::127.0.0.1", False), ("fec0::1", False), ("fe80::1%lo", False), ("2002:7f00:1::", False),
    ("3fff::1", False)])
def test_names_with_addresses_that_are_not_public(monkeypatch, address, public):
    """As the library judges them: NAT64 leads to what is in it."""
    monkeypatch.setattr(_remote.socket, "getaddrinfo",
                        lambda *_, **__: [(0, 0, 0, "", (address, 80))])
    if public:
        assert len(_remote._addresses("host.test", 80, True)) == 1
        return
    with pytest.raises(_remote._Failed) as error:
        _remote._addresses("host.test", 80, True)
    assert error.value.code == "remote_private"


@pytest.mark.parametrize("piece", [b"HTTP/1.1 100 Continue\r\n\r\n",
                                   b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"])
def test_heads_without_end(transport, piece):
    """Answers of 1xx are not read for ever."""
    def flood(listener):
        with listener.accept()[0] as plug, contextlib.suppress(OSError):
            while True:
                plug.sendall(piece * 1000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=flood, args=(listener,), daemon=True).start()
        mine = remote.Remote(retries=0)
        remote.use(mine)
        with pytest.raises(Exception) as error:
            libsafetensors.open("http://127.0.0.1:%d/m.safetensors" % listener.getsockname()[1])
        assert error.value.code == "remote_status"
