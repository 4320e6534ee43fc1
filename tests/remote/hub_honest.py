#!/usr/bin/env python3
"""Is hub.py a Hub? The real huggingface_hub reads from it what it reads from the real one; and
our command reads what huggingface_hub leaves in its cache.

Run by the environment of tests/requirements-python.txt (build/venv); skipped without the package.
"""
import os
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import models  # noqa: E402
from hub import TOKEN, Hub  # noqa: E402
from server import Memory, Repeated, Site  # noqa: E402
from world import command  # noqa: E402

CASES = []


def case(function):
    CASES.append(function)
    return function


def same(found, wanted):
    if found != wanted:
        raise AssertionError("expected %r, found %r" % (wanted, found))


def raises(kind, function, *args, **named):
    try:
        function(*args, **named)
    except kind as error:
        return error
    raise AssertionError("expected %s" % kind.__name__)


class World:
    def __init__(self, site, folder):
        import huggingface_hub
        self.site, self.folder = site, folder
        self.hub = Hub(site)
        self.local = models.sharded(os.path.join(folder, "local"), 4)
        self.repository = self.hub.add("ns/m", self.local)
        self.cache = os.path.join(folder, "cache")
        self.api = huggingface_hub.HfApi(endpoint=self.hub.endpoint, token=TOKEN)
        self.anonymous = huggingface_hub.HfApi(endpoint=self.hub.endpoint, token=False)

    def bytes_of(self, name):
        with open(os.path.join(self.local, name), "rb") as file:
            return file.read()


@case
def download(w):
    """One large file by the redirect to the other origin, which never sees the token."""
    path = w.api.hf_hub_download("ns/m", "model-00001-of-00004.safetensors", cache_dir=w.cache)
    with open(path, "rb") as file:
        same(file.read(), w.bytes_of("model-00001-of-00004.safetensors"))
    same(os.path.basename(os.path.realpath(path)), models.sha256(
        w.bytes_of("model-00001-of-00004.safetensors")))
    assert w.site.count("B GET")
    same([r for r in w.site.asked("B") if r.header("Authorization")], [])
    assert all(r.header("Authorization") == "Bearer " + TOKEN for r in w.site.asked("A"))


@case
def small_file(w):
    for w.hub.resolve_cache in (False, True):
        path = w.api.hf_hub_download("ns/m", "config.json", cache_dir=w.cache + str(
            w.hub.resolve_cache))
        with open(path, "rb") as file:
            same(file.read(), w.bytes_of("config.json"))


@case
def snapshot(w):
    path = w.api.snapshot_download("ns/m", cache_dir=w.cache)
    with open(os.path.join(path, "README.md"), "rb") as file:
        same(file.read(), w.bytes_of("README.md"))
    same(sorted(os.listdir(path)), sorted(os.listdir(w.local)))
    same(os.path.basename(path), w.repository.refs["main"])


@case
def tree(w):
    w.hub.page = 2  # pages are followed
    found = {f.path: f for f in w.api.list_repo_tree("ns/m", recursive=True)}
    same(sorted(found), sorted(os.listdir(w.local)))
    shard = found["model-00002-of-00004.safetensors"]
    same(shard.lfs.sha256, models.sha256(w.bytes_of(shard.path)))
    same(shard.size, len(w.bytes_of(shard.path)))
    assert found["config.json"].lfs is None


@case
def folders(w):
    w.hub.add("ns/deep", {"unet/model.safetensors": models.small(), "a/b/c.txt": b"x"})
    same([e.path for e in w.api.list_repo_tree("ns/deep")], ["a", "unet"])
    same([e.path for e in w.api.list_repo_tree("ns/deep", "unet")], ["unet/model.safetensors"])
    same([e.path for e in w.api.list_repo_tree("ns/deep", recursive=True)],
         ["a", "a/b", "a/b/c.txt", "unet", "unet/model.safetensors"])


@case
def safetensors_metadata(w):
    found = w.api.get_safetensors_metadata("ns/m")
    same(found.sharded, True)
    same(len(found.files_metadata), 4)
    assert "model.layers.0.mlp.up_proj.weight" in found.weight_map
    quick = w.api.get_sharded_safetensors_metadata("ns/m")
    same(quick.weight_map, found.weight_map)


@case
def model_info(w):
    found = w.api.model_info("ns/m")
    same(found.sha, w.repository.refs["main"])
    same(sorted(s.rfilename for s in found.siblings), sorted(os.listdir(w.local)))


@case
def file_system(w):
    from huggingface_hub import HfFileSystem
    files = HfFileSystem(endpoint=w.hub.endpoint, token=TOKEN)
    name = "ns/m/model-00003-of-00004.safetensors"
    with files.open(name, "rb", block_size=4096) as file:
        file.seek(1000)
        same(file.read(5000), w.bytes_of(os.path.basename(name))[1000:6000])
    same(len(files.ls("ns/m", detail=False)), len(os.listdir(w.local)))


@case
def revisions(w):
    old = w.repository.refs["main"]
    new = w.repository.push({"config.json": b"{}"})
    w.repository.push({"config.json": b"[]"}, ref="refs/pr/1")
    read = lambda rev: open(w.api.hf_hub_download(  # noqa: E731
        "ns/m", "config.json", revision=rev, cache_dir=w.cache), "rb").read()
    same(read(old), w.bytes_of("config.json"))
    same((read(new), read("main"), read("refs/pr/1")), (b"{}", b"{}", b"[]"))
    same(open(os.path.join(w.cache, "models--ns--m", "refs", "refs", "pr", "1")).read(),
         w.repository.refs["refs/pr/1"])


@case
def renamed(w):
    w.hub.rename("old/name", "ns/m")
    path = w.api.hf_hub_download("old/name", "model-00001-of-00004.safetensors",
                                 cache_dir=w.cache)
    with open(path, "rb") as file:
        same(file.read(), w.bytes_of("model-00001-of-00004.safetensors"))


@case
def errors(w):
    from huggingface_hub import errors as known
    get = lambda api, name, file="config.json", rev=None: api.hf_hub_download(  # noqa: E731
        name, file, revision=rev, cache_dir=w.cache)
    raises(known.RepositoryNotFoundError, get, w.api, "ns/none")
    raises(known.RepositoryNotFoundError, get, w.anonymous, "ns/none")
    raises(known.RevisionNotFoundError, get, w.api, "ns/m", rev="none")
    raises(known.RemoteEntryNotFoundError, get, w.api, "ns/m", "none.json")
    private = w.hub.add("ns/private", {"config.json": b"{}"})
    private.private = True
    raises(known.RepositoryNotFoundError, get, w.anonymous, "ns/private")
    get(w.api, "ns/private")
    gated = w.hub.add("ns/gated", {"config.json": b"{}"})
    gated.gated = "auto"
    raises(known.GatedRepoError, get, w.anonymous, "ns/gated")
    gated.gated = "ask"
    raises(known.GatedRepoError, get, w.api, "ns/gated")
    off = w.hub.add("ns/off", {"config.json": b"{}"})
    off.disabled = True
    raises(known.DisabledRepoError, w.api.model_info, "ns/off")


@case
def bad_token(w):
    import huggingface_hub
    api = huggingface_hub.HfApi(endpoint=w.hub.endpoint, token="hf_wrong")
    error = raises(huggingface_hub.errors.HfHubHTTPError, api.model_info, "ns/m")
    same(error.response.status_code, 401)
    assert "Invalid credentials" in str(error)


@case
def too_many(w):
    """What 429 says is understood: how long to wait, and of which window."""
    import huggingface_hub
    from faults import too_many as fault
    w.site.fault("A GET /api/models/ns/m", fault(55))
    error = raises(huggingface_hub.errors.HfHubHTTPError, w.api.model_info, "ns/m")
    assert "Retry after 55 seconds" in str(error), str(error)
    assert "3000 requests" in str(error), str(error)


@case
def huge(w):
    """A file of 10 GB that is nowhere stored, read in its middle."""
    from huggingface_hub import HfFileSystem
    from hub import File
    content = Repeated(b"head", b"0123456789", 10 ** 10)
    w.hub.add("ns/huge", {"model.safetensors": File(content, True, "ab" * 32)})
    files = HfFileSystem(endpoint=w.hub.endpoint, token=TOKEN)
    with files.open("ns/huge/model.safetensors", "rb", block_size=100) as file:
        file.seek(5 * 10 ** 9 + 4)
        same(file.read(10), b"0123456789")


@case
def signature(w):
    """Without the signature of the redirect there is nothing."""
    import urllib.error
    import urllib.request
    w.hub.add("ns/one", {"model.safetensors": Memory(models.small())})
    w.api.hf_hub_download("ns/one", "model.safetensors", cache_dir=w.cache)
    path = w.site.asked("B GET")[0].path
    same(raises(urllib.error.HTTPError, urllib.request.urlopen, w.site.url("B", path)).code, 403)


@case
def our_command_reads_its_cache(w):
    """What the real package left, shared blobs included, without a request."""
    from huggingface_hub.utils import _shared_blobs
    name = "model-00002-of-00004.safetensors"
    path = w.api.hf_hub_download("ns/m", name, cache_dir=w.cache)
    blob = os.path.realpath(path)
    data = w.bytes_of(name)

    def read():
        before = len(w.site.log)
        made = subprocess.run(
            command() + ["cat", "--offline", "--as", "raw", "hf://ns/m/" + name,
                         "model.layers.0.self_attn.k_proj.weight"], check=True,
            env=dict(os.environ, HF_HUB_CACHE=w.cache, HF_ENDPOINT=w.hub.endpoint),
            stdout=subprocess.PIPE)
        same(len(w.site.log), before)
        assert len(made.stdout) == 128 * 128 * 2 and made.stdout in data
    read()
    assert not os.path.islink(blob)
    assert _shared_blobs.publish_blob_to_shared_store(
        blob_path=blob, xet_hash="ab" + "cd" * 31, cache_dir=w.cache, expected_size=len(data))
    assert os.path.islink(blob)
    read()


def main():
    os.environ.update(HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1", NO_PROXY="127.0.0.1",
                      HF_HUB_DISABLE_PROGRESS_BARS="1")
    with tempfile.TemporaryDirectory() as home:
        os.environ["HF_HOME"] = home
        try:
            import huggingface_hub
        except ImportError:
            print("huggingface_hub is missing\n0 passed, 0 failed, %d skipped" % len(CASES))
            return 0
        print("huggingface_hub %s" % huggingface_hub.__version__)
        return run_all()


def run_all():
    failed = 0
    wanted = set(sys.argv[1:])
    chosen = [c for c in CASES if not wanted or c.__name__ in wanted]
    for run in chosen:
        with tempfile.TemporaryDirectory() as folder, Site() as site:
            try:
                run(World(site, folder))
            except Exception:  # of any kind: the case has failed
                failed += 1
                print("%s:\n%s" % (run.__name__, traceback.format_exc()))
                for request in site.log:
                    print("   ", request.status, request.line())
    print("%d passed, %d failed" % (len(chosen) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
