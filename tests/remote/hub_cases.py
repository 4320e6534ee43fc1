"""hf://: what the fake Hub gives, and what the caches of huggingface_hub hold."""
import json
import os
import re
import time

import models
from hub import TOKEN, File
from matrix import KEEP, SLICE
from faults import moved, status, too_many
from server import Disk
from world import HEAD, Wrong, at_most, case, holds, quick, same


def one_file(w, name="ns/m", path="model.safetensors", data=None):
    data = data or models.small(64, 16 << 10)
    hub = w.hub or w.make_hub()
    repository = hub.add(name, {path: data, "config.json": b"{}", "README.md": b"# One\n"})
    w.local = models.write(os.path.join(w.folder, "local"), path, data)
    w.url = "hf://%s/%s" % (name, path)
    return repository


def many(w, shards):
    hub = w.make_hub()
    w.local = models.sharded(os.path.join(w.folder, "local", "m"), shards)
    repository = hub.add("ns/m", w.local)
    w.url = "hf://ns/m"
    return repository


# ── Files ──

@quick
def hub_file(w):
    """Resolved once; the other origin is never told the token; the redirect's claims."""
    repository = one_file(w)
    found = w.info_works()
    at_most(w.site.count("A GET /ns/m/resolve/main/model.safetensors"), 1, "resolved")
    at_most(w.site.count("B"), 1, "requests for bytes")
    at_most(w.site.sent("B"), HEAD, "bytes")
    holds(models.sha256(open(w.local, "rb").read()) in json.dumps(found), "the SHA-256 is told")
    holds(repository.refs["main"] in json.dumps(found), "the commit is told")
    w.cat_works(SLICE)
    w.select_works(KEEP)
    same({r.header("Authorization") for r in w.site.asked("A")}, {"Bearer " + TOKEN})


@case
def hub_two_requests(w):
    """`ls` of one file: the redirect and the head."""
    one_file(w)
    w.run("ls", w.url)
    same([r.origin for r in w.site.log], ["A", "B"], "requests")


@case
def hub_folder_is_one_model(w):
    """meta get takes a repository as it takes a folder, and so its folders, which have names."""
    w.make_hub().add("ns/m", {"model.safetensors": models.model({"a": ("F32", [2])}, {"k": "v"}),
                              "night/model.safetensors": models.model({"a": ("F32", [2])},
                                                                      {"k": "w"})})
    same(w.run("meta", "get", "hf://ns/m", "k").text(), "v\n")
    same(w.run("meta", "get", "hf://ns/m/night", "k").text(), "w\n")
    same(w.run("info", "-f", "name", "hf://ns/m/night").text(), "night\n")


@case
def hub_web_page(w):
    """The address of a file's page, as copied from a browser."""
    one_file(w)
    for page in ("blob", "resolve"):
        w.url = "%s/ns/m/%s/main/model.safetensors" % (w.hub.endpoint, page)
        w.info_works()
    for request in w.site.asked("A GET"):
        same(request.path.split("/")[3:4] if "/api/" not in request.path else ["resolve"],
             ["resolve"], request.line())


@case
def hub_names(w):
    """Other repositories, revisions and folders."""
    hub = w.make_hub()
    data = models.small(9, 64)
    w.local = models.write(w.folder, "l.safetensors", data)
    hub.add("ns/d", {"a b/ä.safetensors": data}, kind="datasets")
    repository = hub.add("ns/m", {"model.safetensors": models.small(8, 64, seed=3)})
    repository.push({"model.safetensors": data}, ref="refs/pr/7")
    repository.push({"model.safetensors": data}, ref="feature/x")
    commit = repository.push({"sub/model.safetensors": data}, ref="v1.0")
    for url in ("hf://datasets/ns/d/a b/ä.safetensors", "hf://ns/m@refs/pr/7/model.safetensors",
                "hf://models/ns/m@v1.0/sub/model.safetensors",
                "hf://ns/m@feature%2Fx/model.safetensors",
                "hf://ns/m@" + commit + "/sub/model.safetensors"):
        w.url = url
        try:
            w.info_works()
        except Wrong as error:
            raise Wrong("%s: %s" % (url, error)) from error
    holds(any("/resolve/refs%2Fpr%2F7/" in r.target for r in w.site.log), "slashes are escaped")


@case
def hub_renamed(w):
    one_file(w, "new/name")
    w.hub.rename("old/name", "new/name")
    w.url = "hf://old/name/model.safetensors"
    w.info_works()
    w.cat_works(SLICE)
    same([r.line() for r in w.site.asked("A") if not r.header("Authorization")], [],
         "requests without the token")


@case
def hub_small_files(w):
    """Files of git: given at once, or by one more redirect on the Hub."""
    hub = w.make_hub()
    data = models.small()
    for hub.resolve_cache in (False, True):
        name = "ns/%s" % hub.resolve_cache
        hub.add(name, {"tiny.safetensors": File(models_memory(data), False)})
        w.local = models.write(w.folder, "tiny.safetensors", data)
        w.url = "hf://%s/tiny.safetensors" % name
        w.info_works()
        w.select_works("layer.2*")


def models_memory(data):
    from server import Memory
    return Memory(data)


@case
def hub_signature_expires(w):
    """Signed URLs that hold for three uses: resolved again, and never for ever."""
    hub = w.make_hub()
    hub.uses = 3
    head, size = models.header({"t%02d" % i: ("U8", [2 << 20]) for i in range(24)})
    from server import Repeated, read
    content = Repeated(head, bytes(range(251)), len(head) + size)
    hub.add("ns/m", {"model.safetensors": content})
    w.url = "hf://ns/m/model.safetensors"
    local = models.write(w.folder, "l.safetensors", read(content))
    w.select_works("t*[02468]", "--connections", 1, local=local)
    w.select_works("t*[02468]", local=local)


@case
def hub_other_edges(w):
    """What is resolved again may be at another host, whose ETags are its own."""
    hub = w.make_hub()
    hub.uses, hub.edges = 3, "BC"
    from server import Repeated, read
    head, size = models.header({"t%02d" % i: ("U8", [2 << 20]) for i in range(24)})
    content = Repeated(head, bytes(range(251)), len(head) + size)
    hub.add("ns/m", {"model.safetensors": content})
    w.url = "hf://ns/m/model.safetensors"
    local = models.write(w.folder, "l.safetensors", read(content))
    w.select_works("t*[02468]", local=local)
    holds(w.site.count("B") and w.site.count("C"), "both hosts were asked")


@case
def hub_denies_for_ever(w):
    one_file(w)
    w.site.always("B GET", status(403, b"Auth failed: invalid range\n"))
    w.info_fails("remote_denied", "403", "Auth failed: invalid range")
    at_most(w.site.count("B"), 2, "requests to who denies")


# ── Who may ──

@quick
def hub_errors(w):
    hub = w.make_hub()
    repository = hub.add("ns/m", {"model.safetensors": models.small()})
    for url, says in (("hf://ns/none/x.safetensors", "ns/none"),
                      ("hf://ns/m@none/model.safetensors", "revision.*none|none.*revision"),
                      ("hf://ns/m/none.safetensors", "none.safetensors")):
        w.url = url
        w.info_fails("not_found", says)
    w.url = "hf://ns/m/model.safetensors"
    repository.gated = "auto"
    w.authorized["A"] = {TOKEN}
    w.info_fails("remote_denied", "terms", "ns/m", env={"HF_TOKEN": None})
    repository.gated = "ask"
    w.info_fails("remote_denied", "terms", "ns/m")
    repository.gated, repository.disabled = False, True
    w.info_fails("remote_denied", "disabled", hint=False)
    repository.disabled, repository.private = False, True
    w.info_fails("remote_denied", "token", env={"HF_TOKEN": None})
    w.info()


@case
def hub_bad_token(w):
    """Says from where the token came; it is not shown."""
    one_file(w)
    other = TOKEN + "2"
    w.info_fails("remote_denied", "HF_TOKEN", "not accepted|renew", env={"HF_TOKEN": other})
    path = models.write(w.folder, "home/.cache/huggingface/token", (other + "\n").encode())
    w.info_fails("remote_denied", "token", env={"HF_TOKEN": None})
    os.unlink(path)
    w.info_works(env={"HF_TOKEN": None})


@case
def hub_tokens(w):
    """Where they are looked for, as huggingface_hub does it."""
    one_file(w)
    found = models.write(w.folder, "t/token", (TOKEN + "\n").encode())
    home = models.write(w.folder, "hf/token", TOKEN.encode())
    models.write(w.folder, "xdg/huggingface/token", TOKEN.encode())
    for env, sent in (({"HF_TOKEN": TOKEN}, True), ({"HUGGING_FACE_HUB_TOKEN": TOKEN}, True),
                      ({"HF_TOKEN_PATH": found}, True), ({"HF_HOME": os.path.dirname(home)}, True),
                      ({"XDG_CACHE_HOME": os.path.join(w.folder, "xdg")}, True), ({}, False),
                      ({"HF_TOKEN": ""}, False),
                      ({"HF_TOKEN_PATH": found, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, False)):
        before = len(w.site.log)
        w.info_works(env={"HF_TOKEN": None, **env})
        same({r.header("Authorization") for r in w.site.log[before:] if r.origin == "A"},
             {"Bearer " + TOKEN if sent else None}, "%s" % env)


@case
def hub_rate_limit(w):
    one_file(w)
    w.site.fault("A GET /ns/m/resolve", too_many(1))
    w.info_works()
    w.site.always("A GET /ns/m/resolve", too_many(4000))
    w.info_fails("remote_busy", "6[67] min", "token")


@case
def hub_redirects_elsewhere(w):
    """A mirror that sends back to others: they are not told its token."""
    one_file(w)
    w.site.put("C", "/m.safetensors", models.small(64, 16 << 10))
    w.site.always("A GET /ns/m/resolve", moved(w.site.url("C", "/m.safetensors")))
    w.info_works()
    same([r.header("Authorization") for r in w.site.asked("C")], [None] * w.site.count("C"))


@case
def hub_path_escapes(w):
    """`..` never reaches the server: another repository would be asked with the token."""
    one_file(w)
    for url in ("hf://ns/m/../../other/repo/resolve/main/x.safetensors", "hf://ns/m/a/../b",
                "hf://ns/m/%2e%2e/x.safetensors", "hf://ns/../m/x.safetensors",
                "hf://ns/m@../x/y.safetensors"):
        w.url = url
        made = w.run("info", "--json", url, wanted=2)
        holds(made.result()["error"]["code"] in ("remote_url", "not_found"), url)
    for request in w.site.log:
        holds(".." not in request.target, request.line())


# ── Whole repositories: issue 18's "done when" ──

def compare(w, *words, drop=()):
    """The output for the repository and for its local copy, apart from names."""
    texts = []
    for path in (w.url, w.local):
        made = w.run(*words, path)
        text = made.text()
        for name in (w.site.url("A"), w.hub.endpoint, w.url, w.local):
            text = text.replace(name, "MODEL")
        texts.append(text)
    same(texts[0], texts[1], " ".join(words))


@quick
def hub_repository(w):
    repository(w, 6)


@case
def hub_repository_of_72_shards(w):
    w.site.delay = 0.02
    repository(w, 72)
    runs = len([made for made in w.runs if not made.status])
    for origin in "AB":
        at_most(w.site.origins[origin].accepted, 8 * runs, "connections made to " + origin)


def repository(w, shards):
    many(w, shards)
    found = w.run("info", "--json", w.url).result()
    wanted = w.run("info", "--json", w.local).result()
    count, sent = w.site.count(), w.site.sent()
    # The tree, the index, README.md and config.json, and of each shard the redirect and the head.
    at_most(count, 2 * shards + 8, "requests of info")
    at_most(sent, (shards * 132 + 500) << 10, "bytes of info")
    for part in ("file", "metadata", "metadata_cut", "adapter"):
        same(found[part], wanted[part], part)
    same([re.sub("^.*/", "", s["path"]) for s in found["shards"]],
         [re.sub("^.*/", "", s["path"]) for s in wanted["shards"]], "shards")
    for fact in ("kind", "architecture", "license", "llm", "precision", "evidence"):
        same(found["model"][fact], wanted["model"][fact], fact)
    same([s["kind"] for s in found["sidecars"]], [s["kind"] for s in wanted["sidecars"]],
         "sidecars")
    compare(w, "ls")
    compare(w, "ls", "--tsv")
    compare(w, "check")
    w.cat_works("model.layers.0.self_attn.q_proj.weight[:4]")
    w.cat_works("lm_head.weight[-1, :8]")
    before = w.site.sent()
    w.select_works("model.layers.0.*")
    at_most(w.site.sent() - before, (shards * 132 + 1500) << 10, "bytes of select")


@case
def hub_pinned(w):
    """A push while the model is read: shards are those of the index's commit."""
    repository = many(w, 4)
    first = repository.refs["main"]
    changed = {"model-00003-of-00004.safetensors": models.small(4, 64)}

    def push(request, reply):
        if repository.refs["main"] == first:
            repository.push(changed)
    w.site.fault("A GET /ns/m/resolve/main", push)
    w.site.fault("A GET /api/models/ns/m", push)
    w.run("ls", w.url)
    wanted = w.run("ls", w.local).text().split("\n")[1:]
    repository.refs["main"] = first
    w.site.fault("A GET /ns/m/resolve/main", push)
    w.site.fault("A GET /api/models/ns/m", push)
    same(w.run("ls", w.url).text().split("\n")[1:], wanted, "ls")
    shards = [r for r in w.site.asked("A GET /ns/m/resolve/") if "model-0" in r.target]
    same({r.path.split("/")[4] for r in shards} - {first}, set(), "revisions of shards")


@case
def hub_no_index(w):
    """Repositories without an index: the names that libraries know, else what there is."""
    hub = w.make_hub()
    data = models.small(7, 64)
    w.local = models.write(w.folder, "l.safetensors", data)
    for i, name in enumerate(("model.safetensors", "diffusion_pytorch_model.safetensors",
                              "adapter_model.safetensors", "other.safetensors")):
        hub.add("ns/r%d" % i, {name: data, "README.md": b"# x\n"})
        w.url = "hf://ns/r%d" % i
        w.info_works()
    hub.page = 2
    hub.add("ns/several", {"%d.safetensors" % i: models.small(7, 64, seed=i) for i in range(7)})
    w.url = "hf://ns/several"
    found = w.run("info", "--json", w.url).json()["results"]
    same(len(found), 7, "models of all pages")
    hub.add("ns/nothing", {"README.md": b"# x\n"})
    w.url = "hf://ns/nothing"
    made = w.run("info", w.url, wanted=2)
    w.says(made.errors(), ["safetensors|model"])


@case
def hub_pickle(w):
    """Other formats are read where they are."""
    zipped = os.path.join(ROOT_OF_SAMPLES, "plain.pt")
    if not os.path.exists(zipped):
        return
    w.make_hub().add("ns/m", {"pytorch_model.bin": Disk(zipped)})
    same(w.run("ls", "hf://ns/m/pytorch_model.bin").text().split("\n")[1:],
         w.run("ls", zipped).text().split("\n")[1:])


ROOT_OF_SAMPLES = os.path.join(os.environ.get("SFT_SHARED", ""), "samples")


@case
def hub_cache_of_headers(w):
    many(w, 6)
    words = ["--header-cache", os.path.join(w.folder, "cache")]
    first = w.run("ls", *words, w.url).text()
    before = w.site.count("B")
    same(w.run("ls", *words, w.url).text(), first)
    same(w.site.count("B"), before, "requests for bytes that are known by ETag")


# ── The cache of huggingface_hub ──

def cached(w, form, data, commit="a" * 40):
    """A cache with one file, laid out in one of the forms that huggingface_hub leaves."""
    cache = os.path.join(w.folder, "hfcache")
    root = os.path.join(cache, "models--ns--m")
    models.write(root, "refs/main", commit.encode())
    os.makedirs(os.path.join(root, "blobs"))
    snapshot = os.path.join(root, "snapshots", commit, "sub")
    os.makedirs(snapshot)
    path, blob = os.path.join(snapshot, "m.safetensors"), models.sha256(data)
    shared = os.path.join("blobs", "ab", "ab" + "cd" * 31)
    if form == "plain":
        models.write(snapshot, "m.safetensors", data)
    elif form == "link":
        models.write(root, "blobs/" + blob, data)
    elif form == "double":
        models.write(cache, shared, data)
        models.write(cache, "blobs/.huggingface-shared-blobs", b"1\n")
        os.symlink(os.path.join("..", "..", shared), os.path.join(root, "blobs", blob))
    elif form == "outside":
        os.symlink("/etc/hostname", os.path.join(root, "blobs", blob))
    if form in ("link", "double", "broken", "outside"):
        os.symlink(os.path.join("..", "..", "..", "blobs", blob), path)
    if form == "no_exist":
        models.write(os.path.join(root, ".no_exist", commit, "sub"), "m.safetensors", b"")
    w.url = "hf://ns/m/sub/m.safetensors"
    w.local = models.write(w.folder, "l.safetensors", data)
    return {"HF_HUB_CACHE": cache}


def cache_case(w, form, works, revision="", code="remote_offline"):
    w.make_hub()
    env = cached(w, form, models.small(64, 16 << 10))
    w.url = w.url.replace("ns/m/", "ns/m%s/" % revision)
    before = models.snapshot(env["HF_HUB_CACHE"])
    for words, more in ((["--offline"], {}), ([], {"HF_HUB_OFFLINE": "1"})):
        if works:
            w.info_works(*words, env={**env, **more})
            w.cat_works(SLICE, *words, env={**env, **more})
            w.select_works(KEEP, *words, env={**env, **more})
        else:
            w.info_fails(code, words=words, env={**env, **more})
    same(w.site.count(), 0, "requests")
    same(models.snapshot(env["HF_HUB_CACHE"]), before, "what the cache holds")


@quick
def cache_plain(w):
    cache_case(w, "plain", True)


@quick
def cache_link(w):
    cache_case(w, "link", True)


@quick
def cache_double_link(w):
    cache_case(w, "double", True)


@case
def cache_broken_link(w):
    cache_case(w, "broken", False)


@case
def cache_link_outside(w):
    cache_case(w, "outside", False)


@case
def cache_other_revision(w):
    cache_case(w, "link", False, "@other")


@case
def cache_no_exist(w):
    cache_case(w, "no_exist", False, code="not_found")


@case
def cache_by_commit(w):
    """Its bytes are used for the commit that the Hub tells; another commit's are not."""
    data = models.small(64, 16 << 10)
    repository = w.make_hub().add("ns/m", {"sub/m.safetensors": data})
    env = cached(w, "link", data, repository.refs["main"])
    w.info_works(env=env)
    w.cat_works(SLICE, env=env)
    same((w.site.count("B"), w.site.count("A GET /ns/m/resolve") > 0), (0, True))
    w.url = "hf://ns/m@%s/sub/m.safetensors" % repository.refs["main"]
    before = w.site.count()
    w.info_works(env=env)
    same(w.site.count() - before, 0, "requests of a commit that is here")
    repository.push({"sub/m.safetensors": models.small(64, 16 << 10, seed=4)})
    w.url = "hf://ns/m/sub/m.safetensors"
    w.run("cat", "--as", "raw", w.url, SLICE, env=env)
    holds(w.site.count("B"), "the new commit's bytes are fetched")


@case
def cache_homes(w):
    """HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HOME."""
    w.make_hub()
    cache = cached(w, "link", models.small(9, 64))["HF_HUB_CACHE"]
    os.makedirs(os.path.join(w.folder, "huggingface"))
    os.rename(cache, os.path.join(w.folder, "huggingface", "hub"))
    os.makedirs(os.path.join(w.folder, "home", ".cache"))
    os.symlink(os.path.join(w.folder, "huggingface"),
               os.path.join(w.folder, "home", ".cache", "huggingface"))
    hub = os.path.join(w.folder, "huggingface", "hub")
    for env in ({"HF_HUB_CACHE": hub}, {"HUGGINGFACE_HUB_CACHE": hub},
                {"HF_HOME": os.path.dirname(hub)}, {"XDG_CACHE_HOME": w.folder}, {}):
        w.info_works("--offline", env=env)
    w.info_fails("remote_offline", words=["--offline"], env={"HF_HOME": w.here})


# ── Claims: what the redirect tells of a file ──

@case
def claims_instead_of_data(w):
    """hash and find by the SHA-256 that the Hub tells; of a plain server there is none."""
    one_file(w)
    with open(w.local, "rb") as file:
        digest = models.sha256(file.read())
    holds(digest in w.run("hash", w.url).text(), "hash tells the claim")
    holds(w.run("find", digest[:12], w.url).text(), "find finds it")
    w.run("find", "0123456789ab", w.url, wanted=1)
    at_most(w.site.sent("B"), 3 * HEAD, "bytes")
    holds(digest in w.run("hash", "--read", w.url).text(), "hash --read computes it")
    w.url = w.site.put("A", "/plain.safetensors", models.small())
    made = w.run("hash", w.url, wanted=None)
    holds(made.status, "there is no claim")
    w.says(made.errors(), ["--read"])


@case
def civitai_without_data(w):
    """info --online asks CivitAI by the SHA-256 of the redirect."""
    one_file(w)
    asked = []

    def answer(request):
        asked.append(request)
        return w.hub.json([] if request.method == "POST" else {})
    w.site.beneath("C", "/api/v1/", answer)
    made = w.run("info", "--online", "--log-requests", "--civitai-url", w.site.url("C", "/"), w.url)
    w.says(made.errors(), ["POST " + w.site.url("C", "/api/v1/model-versions/by-hash"),
                           r"\n[^\n]* %d requests, [^\n]*\n$" % w.site.count()])
    with open(w.local, "rb") as file:
        digest = models.sha256(file.read())
    holds(any(digest.upper() in (r.target + r.body.decode()).upper() for r in asked),
          "CivitAI is asked for the SHA-256")
    at_most(w.site.sent("B"), HEAD, "bytes")
    same([r.header("Authorization") for r in asked], [None] * len(asked))


@case
def hub_at_a_path(w):
    """HF_ENDPOINT with a path, and with a slash at its end, as mirrors have it."""
    one_file(w)
    plain = w.hub.endpoint

    def answer(request):
        request.path = request.path[len("/mirror"):]
        return w.hub.answer(request)
    w.site.functions.insert(0, ("A", "/mirror/", answer))
    for w.hub.endpoint in (plain + "/mirror", plain + "/", plain + "/mirror/"):
        before = len(w.site.log)
        for w.url in ("hf://ns/m/model.safetensors",
                      w.hub.endpoint.rstrip("/") + "/ns/m/blob/main/model.safetensors"):
            w.info_works()
        told = [r for r in w.site.log[before:] if r.origin == "A"]
        same({r.target.startswith("/mirror/") for r in told}, {"mirror" in w.hub.endpoint})
        same({r.header("Authorization") for r in told}, {"Bearer " + TOKEN})
        same(len(w.run("ls", "--json", "hf://ns/m").json()["results"]), 1)


@case
def hub_without_shards(w):
    """A shard that is missing, and one that is other than the index says: as of the local copy."""
    repository = many(w, 4)
    name = "model-00003-of-00004.safetensors"
    repository.push({}, gone=[name])
    made = w.run("ls", "--json", w.url, wanted=2)
    w.says(made.text(), [name])
    os.unlink(os.path.join(w.local, name))
    local = w.run("ls", "--json", w.local, wanted=2).result()["error"]
    same(made.result()["error"]["code"], local["code"])
    repository.push({name: models.small()})
    models.write(w.local, name, models.small())
    made = w.run("check", "--json", w.url, wanted=None)
    local = w.run("check", "--json", w.local, wanted=None)
    same(made.status, local.status, "exit status")
    same(made.result()["error"]["code"], local.result()["error"]["code"])


@case
def hub_rate_limit_within(w):
    """The limit is reached in the middle of 40 shards, for two seconds: no hammering meanwhile."""
    many(w, 40)
    state = {"left": 30, "until": 0, "refused": 0}

    def limit(request, reply):
        with w.site.lock:
            state["left"] -= 1
            if state["left"] == 0:
                state["until"] = time.monotonic() + 2
            refused = time.monotonic() < state["until"]
            state["refused"] += refused
        if refused:
            too_many(1)(request, reply)
    w.site.always("A GET /ns/m/resolve", limit)
    compare(w, "ls")
    holds(state["refused"], "the limit was reached")
    at_most(state["refused"], 16, "requests that were refused")
