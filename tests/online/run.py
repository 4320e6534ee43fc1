#!/usr/bin/env python3
"""info --online against a server of the test's own on 127.0.0.1.

  tests/online/run.py [-v] [CASE]…

Every case has a folder and a server of its own; nothing leaves this machine.
"""
import argparse
import ctypes
import hashlib
import inspect
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)

import server  # noqa: E402
from server import endless, endless_headers, hang_up, moved, slow, status, text  # noqa: E402

BY_HASH = "/api/v1/model-versions/by-hash"
LIMIT = 120
WEEK = 7 * 24 * 3600


class Wrong(Exception):
    pass


def same(found, wanted, what=""):
    if found != wanted:
        raise Wrong("%sexpected %r, found %r" % (what and what + ": ", wanted, found))


def holds(ok, what):
    if not ok:
        raise Wrong(what)


def command():
    build = os.path.abspath(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")))
    return shlex.split(os.environ.get("SFT_COMMAND", os.path.join(build, "safetensors")))


class World:
    """A folder, a server, and the command between them."""

    def __init__(self, folder, site):
        self.folder, self.site, self.seed = folder, site, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self, name="neon.safetensors", size=64):
        self.seed += 1
        header = json.dumps({"lora_unet_x.lora_up.weight":
                             {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
        header += " " * (-len(header) % 8)
        data = hashlib.sha256(b"%d" % self.seed).digest() * (size // 32)
        whole = struct.pack("<Q", len(header)) + header.encode() + data
        with open(self.path(name), "wb") as f:
            f.write(whole)
        return {"sha256": hashlib.sha256(whole).hexdigest(), "size": len(whole),
                "autov3": hashlib.sha256(data).hexdigest()[:12]}

    def write(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def info(self, *options, online=True, wanted=0, names=None, name="info",
             cwd=None):
        words = command() + [name, *options]
        if online:
            words += ["--online", "--civitai-url", self.site.url + "/"]
        made = subprocess.run(words + ["--"] + (names or [self.folder]), timeout=LIMIT,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              cwd=cwd)
        self.errors = made.stderr.decode()
        if wanted is not None:
            same(made.returncode, wanted, "exit status (%s)" % self.errors.strip())
        return made.stdout.decode()

    def json(self, *options, **more):
        answer = json.loads(self.info("--json", *options, **more))
        for line in schema_errors(answer):
            raise Wrong(line)
        return answer["results"]


def schema_errors(answer):
    """Nothing where jsonschema is not installed."""
    try:
        import jsonschema
    except ImportError:
        return
    with open(os.path.join(ROOT, "docs", "schema", "info.json"), encoding="utf-8") as f:
        checker = jsonschema.Draft202012Validator(json.load(f))
    for error in checker.iter_errors(answer):
        best = jsonschema.exceptions.best_match([error])
        yield "schema: %s: %s" % (best.json_path, best.message[:200])


def value(result, fact):
    return result["model"][fact] and (result["model"][fact]["value"],
                                      result["model"][fact]["source"])


ONLINE = "online:civitai"
CASES = []


def case(function):
    CASES.append(function)
    return function


# ── Answers ──

@case
def success(w):
    """Facts, their source and trust; the match; what was sent."""
    file = w.model()
    w.site.add(file)
    result = w.json()[0]
    same(value(result, "name"), ("Neon City", ONLINE))
    same(value(result, "version_name"), ("v2", ONLINE))
    same(value(result, "description"), ("All neon.", ONLINE))
    same(value(result, "version_description"), ("Second try", ONLINE))
    same(value(result, "author"), ("lamp", ONLINE))
    same(value(result, "tags"), (["city", "style"], ONLINE))
    same(value(result, "base_model"), ("SDXL 1.0", ONLINE))
    same(result["model"]["name"]["trust"], 95)
    same([t["text"] for t in result["trigger_words"]], ["neon city", "glow"])
    same({t["source"] for t in result["trigger_words"]}, {ONLINE})
    civitai = result["civitai"]
    same((civitai["model_id"], civitai["version_id"]), (70, 7))
    same((civitai["source"], civitai["trust"]), (ONLINE, 90))
    same((civitai["match"], civitai["matches_file"]), ("sha256", True))
    same(civitai["permissions"], {"credit": False, "commercial": ["Image"],
                                  "derivatives": True, "relicense": False})
    same(result["hashes"]["computed"], {"sha256": file["sha256"], "autov3": file["autov3"]})
    same(result["hashes"]["recorded"], [])
    same(result["example_prompts"][0]["source"], ONLINE)
    same(result["sidecars"], [])
    same([path.split("?")[0] for path in w.site.paths()], [BY_HASH, "/api/v1/models"])
    same(json.loads(w.site.log[0][2]), [file["sha256"].upper()])
    headers = w.site.log[0][3]
    holds(headers["user-agent"].startswith("libsafetensors/"), "user agent")
    same(headers["content-type"], "application/json")
    holds("70" in w.site.paths()[1] and "nsfw=true" in w.site.paths()[1], "ids")
    same(sorted(os.listdir(w.folder)), ["neon.safetensors"], "nothing is saved")


@case
def catalogue(w):
    """A page knows what info would say."""
    w.site.add(w.model())
    w.model("other.safetensors")
    w.info("-o", w.path("c.html"), name="catalog")
    rows = json.loads(re.search('id="rows">(.*?)</script>', w.read("c.html"))[1])
    same(rows["name"], ["Neon City", "other"])
    same(rows["words"], [["neon city", "glow"], []])
    same(rows["flags"], [6, 2])
    same([path.split("?")[0] for path in w.site.paths()][0], BY_HASH)
    w.site.log.clear()
    w.info("-o", w.path("d.html"), name="catalog", online=False)
    same(w.site.log, [])


@case
def offline(w):
    """Without --online nothing is asked and nothing hashed."""
    w.site.add(w.model())
    result = w.json(online=False)[0]
    same((result["civitai"], result["hashes"]["computed"]), (None, {}))
    w.info("--civitai-url", w.site.url, online=False)
    same(w.site.log, [])


@case
def by_weights(w):
    """Unknown by SHA-256, known by AutoV3: the same weights with other metadata."""
    file = w.model()
    version = w.site.add(dict(file, sha256="ab" * 32), known_by=("autov3",))
    version["files"][0]["hashes"]["AutoV3"] = file["autov3"].upper()
    result = w.json()[0]
    same(w.site.paths()[1], BY_HASH + "/" + file["autov3"].upper())
    same((result["civitai"]["match"], result["civitai"]["matches_file"]), ("weights", True))
    same(value(result, "name"), ("Neon City", ONLINE))
    same(result["hashes"]["mismatches"], [])


@case
def not_found(w):
    """404 is an answer: no facts, no complaint."""
    w.model()
    result = w.json()[0]
    same(result["civitai"], None)
    same(len(w.site.log), 2)
    same(w.errors, "")


@case
def beside_a_sidecar(w):
    """Online facts are listed with those of a sidecar, first at equal trust."""
    file = w.model()
    w.site.add(file)
    w.write("neon.civitai.info", {"id": 7, "modelId": 70, "name": "old",
                                  "model": {"name": "Old name", "type": "LORA"}})
    w.write("neon.json", {"description": "mine", "activation text": "", "sd version": "SDXL"})
    result = w.json()[0]
    same(value(result, "name"), ("Neon City", ONLINE))
    same(result["model"]["name"]["others"][0]["source"], "sidecar:neon.civitai.info:/model/name")
    same(value(result, "description"), ("mine", "sidecar:neon.json:/description"))


@case
def other_users_models(w):
    """An answer about other files tells nothing."""
    w.model()
    other = dict(sha256="cd" * 32, autov3="cd" * 6)
    version = w.site.add(other)
    w.site.fault("POST", lambda h: h.reply(200, [version]) or True)
    same(w.json()[0]["civitai"], None)


# ── Batches ──

@case
def many(w):
    """250 files: three POSTs, at most a hundred each, all of them answered."""
    sent = []
    for i in range(250):
        w.site.add(w.model("m%03d.safetensors" % i), 1000 + i, 2000 + i)
    results = w.json()
    for _, path, body, _ in w.site.log:
        if path == BY_HASH:
            sent.append(len(json.loads(body)))
    same(sent, [100, 100, 50])
    same([r["civitai"]["version_id"] for r in results], list(range(1000, 1250)))
    pages = [p for p in w.site.paths("GET") if p.startswith("/api/v1/models?")]
    same(len(pages), 5)
    same(len(w.site.log), 8)


@case
def twice_the_same(w):
    """Two copies of a file are asked for once, and both are told."""
    w.site.add(w.model("a.safetensors"))
    w.seed = 0
    w.model("b.safetensors")
    same([r["civitai"]["version_id"] for r in w.json()], [7, 7])
    same(len(json.loads(w.site.log[0][2])), 1)


# ── Hashes at hand ──

@case
def recorded(w):
    """A recorded SHA-256 whose size fits saves the hashing; near-miss: another size."""
    file = w.model()
    w.site.add(file)
    side = {"sha256": file["sha256"], "size": file["size"], "file_name": "neon"}
    w.write("neon.metadata.json", side)
    result = w.json()[0]
    same(result["hashes"]["computed"], {})
    same(result["civitai"]["version_id"], 7)
    same(len(w.site.log), 2)
    w.write("neon.metadata.json", dict(side, size=file["size"] + 5000))
    same(sorted(w.json()[0]["hashes"]["computed"]), ["autov3", "sha256"])


@case
def recorded_and_stale(w):
    """A recorded SHA-256 that nobody knows is not relied on: the file is hashed."""
    file = w.model()
    w.site.add(file)
    w.write("neon.metadata.json", {"sha256": "ef" * 32, "size": file["size"],
                                   "file_name": "neon"})
    result = w.json()[0]
    same(result["hashes"]["computed"]["sha256"], file["sha256"])
    same(result["civitai"]["match"], "sha256")
    same([json.loads(body)[0] for m, _, body, _ in w.site.log if m == "POST"],
         ["EF" * 32, file["sha256"].upper()])


@case
def cached(w):
    """Digests of the cache are used: the data are not read again."""
    file = w.model()
    w.site.add(file)
    cache = w.path("cache")
    w.info("--cache", cache)
    said = w.info("--cache", cache, "--dry-run")
    holds("would hash 0 files" in said and "1 cached" in said, said)
    same(w.json("--cache", cache)[0]["hashes"]["computed"]["sha256"], file["sha256"])


@case
def unknown_for_a_week(w):
    """An unknown file is not looked up again within a week unless it has changed."""
    w.model()
    cache = w.path("cache")
    w.info("--cache", cache)
    same(len(w.site.log), 2)
    result = w.json("--cache", cache)[0]
    same(len(w.site.log), 2, "asked again")
    same(sorted(result["hashes"]["computed"]), ["autov3", "sha256"])
    holds("1 unknown to the server this week" in w.info("--cache", cache, "--dry-run"), "dry run")
    lines = [json.loads(line) for line in w.read("cache").splitlines()]
    same(lines[1]["mark"]["name"], "unknown to " + w.site.url)
    for age, asked in ((WEEK - 100, 0), (WEEK + 100, 2), (-100000, 2)):
        lines[1]["mark"]["time"] = int(time.time()) - age
        w.write("cache", "".join(json.dumps(line, separators=(",", ":")) + "\n"
                                 for line in lines))
        before = len(w.site.log)
        w.info("--cache", cache)
        same(len(w.site.log) - before, asked, "age %d" % age)
    w.model()
    before = len(w.site.log)
    w.info("--cache", cache)
    same(len(w.site.log) - before, 2, "changed")


@case
def failure_is_not_unknown(w):
    """What the server could not answer is asked again the next time."""
    w.model()
    w.site.fault("GET " + BY_HASH, text("<html>", 400))
    w.info("--cache", w.path("cache"), wanted=2)
    before = len(w.site.log)
    w.info("--cache", w.path("cache"))
    same(len(w.site.log) - before, 2)


# ── A busy server ──

@case
def busy_then_well(w):
    """429 with Retry-After, then an answer."""
    w.site.add(w.model())
    w.site.fault("POST", status(429, ("Retry-After", "1")))
    begin = time.monotonic()
    same(w.json()[0]["civitai"]["version_id"], 7)
    holds(1 <= time.monotonic() - begin < 10, "waited as asked")
    same(len(w.site.paths("POST")), 2)


@case
def busy_for_long(w):
    """A server that asks for an hour is not waited for."""
    w.site.add(w.model())
    w.site.fault("POST", status(429, ("Retry-After", "3600")))
    begin = time.monotonic()
    w.info(wanted=2)
    holds(time.monotonic() - begin < 5, "it waited")
    holds("in 60 minutes" in w.errors, w.errors)
    same(len(w.site.log), 1)


@case
def failing(w):
    """500 again and again: so many tries, a longer time between, then a complaint; the facts
    that are there are shown all the same."""
    w.model()
    w.write("neon.txt", "neon word")
    w.site.fault("POST", *[status(code) for code in (500, 503, 502, 504)])
    begin = time.monotonic()
    result = w.json("--retries", "2", wanted=2)[0]
    holds(time.monotonic() - begin >= 1.5, "no pause")
    same(len(w.site.log), 3)
    holds("status 502" in w.errors and w.site.url in w.errors, w.errors)
    same(result["trigger_words"][0]["text"], "neon word")
    same(sorted(result["hashes"]["computed"]), ["autov3", "sha256"])


@case
def failing_once_each(w):
    """Three failures one after another are enough."""
    for i in range(6):
        w.model("m%d.safetensors" % i)
    w.site.fault("GET " + BY_HASH, *[text("{", 400)] * 6)
    w.info(wanted=2)
    same(len(w.site.log), 4)
    holds("nothing more is asked online" in w.errors, w.errors)


# ── A bad server ──

@case
def garbage(w):
    """What is no JSON, another JSON, JSON that is not UTF-8 or very deep."""
    w.model()
    bad = [b"", b"<html>hello</html>", b"{}", b"[{]", b"[\"\xff\"]", b"[" * 5000, b"null",
           b"[1,2,"]
    for body in bad:
        w.site.log.clear()
        w.site.fault("POST", text(body))
        w.info(wanted=2)
        holds("expected a JSON answer" in w.errors, "%r: %s" % (body, w.errors))
        same(len(w.site.log), 1)
    for body in (b"[]", b"[1,null,[],{}]", b'[{"id":"x","files":[{"hashes":{"SHA256":5}}]}]',
                 b'[{"files":{"a":1},"id":3}]'):
        w.site.fault("POST", text(body))
        same(w.json()[0]["civitai"], None, repr(body))


@case
def garbage_about_models(w):
    """The version's facts stay where the models' page is none."""
    file = w.model()
    for body in (b"<html>", b"{}", b'{"items":7}', b'{"items":[{"id":70,"tags":"x"}]}',
                 b'{"items":[{"id":71,"description":"another"}]}'):
        w.site.add(file)
        w.site.fault("GET /api/v1/models?", text(body))
        result = w.json(wanted=None)[0]
        same(value(result, "name"), ("Neon City", ONLINE), repr(body))
        same(value(result, "description"), None)


@case
def hostile_words(w):
    """Terminal escapes and markup of the server are escaped as a file's are."""
    file = w.model()
    version = w.site.add(file, trainedWords=["a\x1b[31mb", "x"])
    version["model"]["name"] = "evil\x1b]0;title\x07\u202egnp"
    said = w.info()
    holds("\x1b" not in said and "\x07" not in said and "\u202e" not in said, repr(said))


@case
def large(w):
    """Ten megabytes of answer are read, within bounds of memory and time."""
    w.site.add(w.model(), description="x" * (10 << 20))
    begin = time.monotonic()
    result = w.json()[0]
    holds(time.monotonic() - begin < 30, "slow")
    same(len(result["model"]["version_description"]["value"].encode()) <= (64 << 10) + 3, True)
    same(result["civitai"]["version_id"], 7)


@case
def too_large(w):
    """An answer without end is cut off."""
    w.site.add(w.model())
    w.site.fault("POST", endless(2000))
    begin = time.monotonic()
    w.info(wanted=2)
    holds("expected an answer of at most 67108864 bytes" in w.errors, w.errors)
    holds(time.monotonic() - begin < 60, "slow")


@case
def too_large_headers(w):
    """Some versions of libcurl would keep them all."""
    w.site.add(w.model())
    w.site.fault("POST", endless_headers)
    w.info(wanted=2)
    holds("expected HTTP headers of at most 262144 bytes" in w.errors, w.errors)


@case
def too_slow(w):
    w.site.add(w.model())
    w.site.fault("POST", slow(6))
    begin = time.monotonic()
    w.info("--timeout", "1", wanted=2)
    holds(0.9 < time.monotonic() - begin < 5, "did not stop in time")
    holds("within 1 s" in w.errors, w.errors)
    same(len(w.site.log), 1)


@case
def interrupted(w):
    """A signal ends it, and nothing is left behind."""
    w.site.add(w.model())
    w.site.fault("POST", slow(20))
    words = command() + ["info", "--online", "--save", "--civitai-url", w.site.url, w.folder]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not w.site.log:
        time.sleep(0.05)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=LIMIT)
    holds(time.monotonic() - begin < 15, "it went on")
    same(child.returncode in (130, -signal.SIGINT), True, str(child.returncode))
    same(os.listdir(w.folder), ["neon.safetensors"])


@case
def hung_up(w):
    w.site.add(w.model())
    w.site.fault("POST", *[hang_up] * 4)
    w.info("--retries", "1", wanted=2)
    same(len(w.site.log), 2, "no more requests to a server that does not answer")


@case
def hung_up_once(w):
    """A lost connection is made again."""
    w.site.add(w.model())
    w.site.fault("POST", hang_up)
    same(w.json()[0]["civitai"]["version_id"], 7)
    same(w.site.paths("POST"), [BY_HASH, BY_HASH])


@case
def nobody_there(w):
    w.model()
    url = w.site.url
    w.site.url = "http://127.0.0.1:9"
    begin = time.monotonic()
    same(len(w.json(wanted=2)), 1)
    holds(time.monotonic() - begin < 15, "slow")
    w.site.url = url


# ── Sent elsewhere ──

@case
def redirect_same_host(w):
    w.site.add(w.model())
    w.site.fault("POST", moved(BY_HASH + "?x", 307))
    same(w.json()[0]["civitai"]["version_id"], 7)
    same(w.site.paths("POST"), [BY_HASH, BY_HASH + "?x"])


@case
def redirect_other_host(w):
    """Neither another host nor another port nor another scheme, of whatever spelling."""
    w.site.add(w.model())
    port = w.site.url.rsplit(":", 1)[1]
    with server.Site() as other:
        for to in (other.url + BY_HASH, "http://localhost:%s%s" % (port, BY_HASH),
                   "//%s%s" % (other.url.split("//")[1], BY_HASH),
                   "http://127.0.0.1:%s@%s/" % (port, other.url.split("//")[1]),
                   "https://127.0.0.1:%s/" % port, "file:///etc/passwd", "gopher://x/"):
            for code in (301, 302, 307):
                w.site.fault("POST", moved(to, code))
                w.info(wanted=2)
        same(other.log, [])
    holds("redirect" in w.errors, w.errors)


@case
def redirect_for_ever(w):
    w.site.add(w.model())
    w.site.fault("POST", *[moved(BY_HASH, 307)] * 50)
    w.info(wanted=2)
    same(len(w.site.log), 1)
    holds("in a circle" in w.errors, w.errors)
    w.site.log.clear()
    w.site.faults.clear()
    w.site.fault("POST", *[moved("%s?%d" % (BY_HASH, i), 307) for i in range(50)])
    w.info(wanted=2)
    same(len(w.site.log), 6)
    holds("at most 5 redirects" in w.errors, w.errors)


# ── Dry run ──

@case
def dry_run(w):
    """It says what it would do, and does nothing."""
    sizes = [w.model("m%03d.safetensors" % i)["size"] for i in range(120)]
    said = w.info("--dry-run", "--save", "--cache", w.path("cache"))
    same(w.site.log, [])
    holds("would look up 120 files" in said and "(%d bytes)" % sum(sizes) in said, said)
    holds("would send 2 requests by SHA-256" in said, said)
    told = json.loads(w.info("--dry-run", "--json"))
    same(told["online"], {"files": 120, "remembered": 0, "recorded": 0, "unknown": 0,
                          "hashed": 120, "bytes": sum(sizes), "requests_by_sha256": 2,
                          "requests_by_autov3_most": 120, "requests_for_models_most": 3})
    same(told["results"], [])
    same(list(schema_errors(told)), [])
    same(list(schema_errors(json.loads(w.info("--dry-run", "--jsonl")))), [])
    same(w.site.log, [])
    holds(not os.path.exists(w.path("cache")), "a cache was written")
    w.write("bad.safetensors", "no model")
    told = json.loads(w.info("--dry-run", "--json"))
    same([r["ok"] for r in told["results"]], [False])


@case
def where(w):
    """Only models that fit are hashed and looked up."""
    w.site.add(w.model("a.safetensors"))
    w.model("b.safetensors")
    results = w.json("--where", "name=a")
    same(len(json.loads(w.site.log[0][2])), 1)
    same(len(results), 0, "its name is another now")


# ── Saving ──

@case
def save(w):
    """The answer as a sidecar that is read again, and the first picture by its bytes."""
    file = w.model()
    w.site.add(file)
    w.info("--save")
    same(sorted(os.listdir(w.folder)),
         ["neon.civitai.info", "neon.preview.png", "neon.safetensors"])
    same(open(w.path("neon.preview.png"), "rb").read(), server.PNG)
    saved = json.loads(w.read("neon.civitai.info"))
    same((saved["id"], saved["modelId"], saved["creator"]["username"]), (7, 70, "lamp"))
    same(saved["model"]["tags"], ["city", "style"])
    same(saved["model"]["allowNoCredit"], True)
    before = len(w.site.log)
    result = w.json(online=False)[0]
    same(len(w.site.log), before)
    same(value(result, "name"), ("Neon City", "sidecar:neon.civitai.info:/model/name"))
    same(value(result, "author"), ("lamp", "sidecar:neon.civitai.info:/creator/username"))
    same(result["previews"][0]["media_type"], "image/png")


@case
def save_again(w):
    """A sidecar stays, whatever it says, unless --force; then its owner's keys are kept."""
    file = w.model()
    w.site.add(file)
    mine = {"id": 8, "modelId": 70, "name": "mine", "extensions": {"rating": [5, "\u00e9"]},
            "skeleton_file": True, "model": {"name": "Mine", "stars": 5}}
    w.write("neon.civitai.info", mine)
    w.write("neon.preview.png", "mine")
    w.info("--save", wanted=2)
    same(json.loads(w.read("neon.civitai.info")), mine)
    holds("--force" in w.errors, w.errors)
    w.write("neon.civitai.info", dict(mine, id=7))
    w.info("--save")
    same(json.loads(w.read("neon.civitai.info")), dict(mine, id=7), "the same version")
    w.info("--save", "--force")
    saved = json.loads(w.read("neon.civitai.info"))
    same(saved["name"], "v2")
    same(saved["extensions"], {"rating": [5, "\u00e9"]})
    same((saved["model"]["name"], saved["model"]["stars"]), ("Neon City", 5))
    holds("skeleton_file" not in saved, "still a skeleton")
    same(open(w.path("neon.preview.png"), "rb").read(), server.PNG)


@case
def save_over_broken(w):
    for broken in ("", "{", "[1]", "\x00"):
        w.site.add(w.model())
        w.write("neon.civitai.info", broken)
        w.info("--save", wanted=2)
        same(w.read("neon.civitai.info"), broken)
        w.info("--save", "--force")
        same(json.loads(w.read("neon.civitai.info"))["id"], 7)


@case
def save_nothing(w):
    """No skeleton for an unknown model; its own preview stays."""
    w.model()
    w.info("--save")
    same(os.listdir(w.folder), ["neon.safetensors"])


@case
def save_keeps_preview(w):
    w.site.add(w.model())
    with open(w.path("neon.png"), "wb") as f:
        f.write(server.PNG)
    w.info("--save")
    same(sorted(os.listdir(w.folder)), ["neon.civitai.info", "neon.png", "neon.safetensors"])
    same([p for p in w.site.paths() if "jpeg" in p], [])


@case
def save_not_through_links(w):
    w.site.add(w.model())
    w.write("precious", "mine")
    os.symlink("precious", w.path("neon.civitai.info"))
    w.info("--save", "--force", wanted=2)
    same(w.read("precious"), "mine")


@case
def pictures_elsewhere(w):
    """A picture on another host is not fetched; one that is none is not written."""
    file = w.model()
    with server.Site() as other:
        w.site.add(file, images=[{"url": other.url + "/image.jpeg", "type": "image"}])
        w.info("--save", wanted=2)
        same(other.log, [])
    os.remove(w.path("neon.civitai.info"))
    w.site.add(file, images=[{"url": w.site.url + "/page", "type": "image"}])
    w.site.fault("GET /page", text(b"<html>"))
    w.info("--save", wanted=2)
    same(sorted(os.listdir(w.folder)), ["neon.civitai.info", "neon.safetensors"])
    os.remove(w.path("neon.civitai.info"))
    w.site.add(file, images=[{"url": "file:///etc/hostname", "type": "image"}])
    w.info("--save", wanted=2)
    same(sorted(os.listdir(w.folder)), ["neon.civitai.info", "neon.safetensors"])


# ── Updates ──

MODELS = "/api/v1/models?"


def side(w, name="neon", version_id=7, model_id=70, **model):
    """A sidecar with ids and permissions, so that nothing need be hashed."""
    w.write(name + ".civitai.info", {
        "id": version_id, "modelId": model_id, "name": "v2", "baseModel": "SDXL 1.0",
        "trainedWords": ["x"], "publishedAt": "2024-05-01T10:00:00.000Z",
        "model": {"name": "Neon City", "type": "LORA", "allowNoCredit": True,
                  "allowCommercialUse": ["Image"], "allowDerivatives": True,
                  "allowDifferentLicense": False, **model}})


def updates(w, *options, wanted=0):
    return [r["updates"] for r in w.json("--updates", *options, wanted=wanted)]


@case
def updates_current(w):
    """By the recorded ids: the model's id is all that is sent, and nothing is hashed."""
    w.site.add(w.model())
    side(w)
    same(updates(w), [{"status": "current", "model_id": 70, "version_id": 7, "mode": None,
                       "newer": [], "newer_count": 0, "permissions": []}])
    same(len(w.site.log), 1)
    holds(w.site.paths()[0].endswith("&ids=70"), w.site.paths()[0])
    same(w.info("--updates"), "1 model, all current\n")
    holds("neon.safetensors: current" in w.info("--updates", "-v"), "-v")


@case
def updates_newer(w):
    """Later ones by date, newest first; another base model is told; drafts and older ones not."""
    w.site.add(w.model())
    side(w)
    w.site.publish(5, name="v1.5", date="2024-04-01T10:00:00.000Z")
    w.site.publish(6, name="re-upload", date="2024-06-01T10:00:00.000Z")
    w.site.publish(9, name="v3 \u00e9\x1b[31m", base="Flux.1 D")
    w.site.publish(99, name="draft", status="Draft", date="2025-01-01T10:00:00.000Z")
    found = updates(w, wanted=1)[0]
    same((found["status"], found["newer_count"]), ("newer", 2))
    same(found["newer"], [
        {"version_id": 9, "name": "v3 \u00e9\x1b[31m", "base_model": "Flux.1 D",
         "published_at": "2024-09-01T10:00:00.000Z", "have": None},
        {"version_id": 6, "name": "re-upload", "base_model": "SDXL 1.0",
         "published_at": "2024-06-01T10:00:00.000Z", "have": None}])
    said = w.info("--updates", wanted=1)
    holds("newer version v3 \u00e9" in said and "\x1b" not in said, repr(said))
    holds("of 2024-09-01 for Flux.1 D, and 1 more: %s/models/70?modelVersionId=9" % w.site.url
          in said, said)
    holds("1 model, 1 with a newer version" in said, said)


@case
def updates_had(w):
    """A newer version that lies beside: by the ids, by the digest of a sidecar, by its own."""
    w.site.add(w.model())
    side(w)
    second = w.model("second.safetensors")
    size = second["size"] / 1024
    w.site.publish(9, files=[{"name": "f", "sizeKB": size,
                              "hashes": {"SHA256": second["sha256"].upper()}}])
    neon = [w.path("neon.safetensors")]

    def told(*options, wanted=0):
        found = json.loads(w.info("--updates", "--json", *options, wanted=wanted, names=neon))
        return found["results"][0]["updates"]
    found = told()
    same((found["status"], found["newer"][0]["have"]), ("current", w.path("second.safetensors")))
    said = w.info("--updates", names=neon)
    holds("newer version v3 of 2024-09-01 for SDXL 1.0: you have it, " in said, said)
    holds(said.endswith("all current\n"), said)
    w.site.publish(10, name="v4", date="2024-10-01T10:00:00.000Z")
    w.site.publish(11, name="v5", date="2024-11-01T10:00:00.000Z", base="Flux.1 D")
    found = told(wanted=1)
    same([(n["name"], bool(n["have"])) for n in found["newer"]],
         [("v5", False), ("v4", False), ("v3", True)])
    said = w.info("--updates", wanted=1, names=neon)
    holds("newer version v5 of 2024-11-01 for Flux.1 D, and 1 more: " in said, said)
    same([n["name"] for n in told("--same-base", wanted=1)["newer"]], ["v4", "v3"])
    w.model("third.safetensors")
    side(w, "third", version_id=10)
    same(told("--same-base")["status"], "current")
    os.remove(w.path("second.safetensors"))
    same([(n["name"], bool(n["have"])) for n in told("--same-base", wanted=1)["newer"]],
         [("v4", True), ("v3", False)])
    w.model("second.safetensors")
    side(w, "second", version_id=1, model_id=2)
    w.write("second.metadata.json", {"sha256": second["sha256"], "size": second["size"]})
    same(told("--same-base")["newer"][1]["have"], w.path("second.safetensors"))


@case
def updates_without_dates(w):
    """By id where no date is told, or one that is none."""
    w.site.add(w.model())
    side(w)
    w.site.models[70]["modelVersions"] = [{"id": 7}, {"id": 3}, {"id": 8, "publishedAt": "soon"},
                                          {"id": 9, "name": 5}]
    same([n["version_id"] for n in updates(w, wanted=1)[0]["newer"]], [9, 8])


@case
def updates_many_newer(w):
    """Ten of them are told, all are counted."""
    w.site.add(w.model())
    side(w)
    for i in range(40):
        w.site.publish(100 + i * 7 % 40, date=None)
    found = updates(w, wanted=1)[0]
    same(found["newer_count"], 40)
    same([n["version_id"] for n in found["newer"]], list(range(139, 129, -1)))


@case
def updates_deleted(w):
    """A model that the list lacks is asked for once more: 404 is deleted, an answer is not."""
    w.site.add(w.model())
    side(w)
    kept = w.site.models.pop(70)
    same(updates(w, wanted=1)[0]["status"], "deleted")
    same(w.site.paths()[1], "/api/v1/models/70")
    holds("model 70 is no longer there" in w.info("--updates", wanted=1), "words")
    w.site.models[70] = kept
    w.site.fault("GET " + MODELS, text(b'{"items":[]}'))
    same(updates(w)[0]["status"], "current")


@case
def updates_removed(w):
    """A version that its model lacks is asked for once more."""
    w.site.add(w.model())
    side(w)
    w.site.models[70]["modelVersions"] = []
    w.site.publish(9)
    same(updates(w, wanted=1)[0]["status"], "newer")
    same(w.site.paths()[-1], "/api/v1/model-versions/7")
    del w.site.versions[7]
    found = updates(w, wanted=1)[0]
    same((found["status"], found["newer_count"]), ("removed", 1))
    said = w.info("--updates", wanted=1)
    holds("version 7 of model 70 is no longer there" in said, said)


@case
def updates_permissions(w):
    """Those that are not as recorded; what nobody recorded is not compared."""
    w.site.add(w.model())
    side(w)
    w.site.models[70].update(allowNoCredit=False, allowCommercialUse="{Image,Rent}",
                             allowDerivatives="x")
    found = updates(w, wanted=1)[0]
    same(found["status"], "current")
    same(found["permissions"], [
        {"what": "credit", "recorded": False, "now": True},
        {"what": "commercial", "recorded": ["Image"], "now": ["Image", "Rent"]}])
    said = w.info("--updates", wanted=1)
    holds("credit required, was: credit not required" in said
          and "commercial use Image, Rent, was: Image" in said
          and "1 with changed permissions" in said, said)
    w.write("neon.civitai.info", {"id": 7, "modelId": 70, "name": "v2", "trainedWords": ["x"]})
    same(updates(w)[0]["permissions"], None)


@case
def updates_old_spelling(w):
    """Once one word stood for itself and all before it."""
    w.site.add(w.model())
    side(w, allowCommercialUse="Sell")
    w.site.models[70]["allowCommercialUse"] = ["Image", "RentCivit", "Rent", "Sell"]
    same(updates(w)[0]["permissions"], [])
    side(w, allowCommercialUse="None")
    w.site.models[70]["allowCommercialUse"] = []
    same(updates(w)[0]["permissions"], [])


@case
def updates_by_hash(w):
    """Without recorded ids the file is looked up; one that nobody knows is unknown."""
    w.site.add(w.model("a.safetensors"))
    w.site.publish(9)
    w.model("b.safetensors")
    found = updates(w, wanted=1)
    same([f["status"] for f in found], ["newer", "unknown"])
    same((found[0]["model_id"], found[0]["version_id"]), (70, 7))
    same(found[1]["model_id"], None)
    same(found[0]["permissions"], None)
    same([p.split("?")[0] for p in w.site.paths("GET")][1:], ["/api/v1/models"])
    holds("1 unknown to the server" in w.info("--updates", wanted=1), "words")


@case
def updates_batches(w):
    """120 files of 60 models: two requests for a hundred files, one for twenty."""
    for i in range(120):
        w.model("m%03d.safetensors" % i)
        side(w, "m%03d" % i, version_id=1000 + i, model_id=100 + i // 2)
        w.site.add({"sha256": "%064x" % i, "autov3": "%012x" % i}, 1000 + i, 100 + i // 2)
    for i in range(60):
        w.site.models[100 + i]["modelVersions"] = [{"id": 1000 + 2 * i}, {"id": 1001 + 2 * i}]
    found = updates(w)
    same([f["newer_count"] for f in found], [1, 0] * 60)
    holds(all(f["newer"][0]["have"] for f in found[::2]), "each is in the folder")
    same(len(w.site.log), 2)


@case
def updates_twice_the_same(w):
    """Two files of one deleted model: it is asked for once."""
    for name in "ab":
        w.model(name + ".safetensors")
        side(w, name)
    same([f["status"] for f in updates(w, wanted=1)], ["deleted", "deleted"])
    same(len(w.site.log), 2)


@case
def updates_dry_run(w):
    w.model("a.safetensors")
    side(w, "a")
    w.model("b.safetensors")
    told = json.loads(w.info("--updates", "--dry-run", "--json"))
    same(list(schema_errors(told)), [])
    online = told["online"]
    same((online["files"], online["hashed"], online["requests_by_sha256"]), (2, 1, 1))
    same((online["requests_for_models_most"], online["requests_one_by_one_most"]), (1, 2))
    holds("and 2 for what they do not answer" in w.info("--updates", "--dry-run"), "words")
    same(w.site.log, [])


@case
def updates_nobody_there(w):
    """Without an answer nothing is said of the model, and the exit status is 2."""
    w.model()
    side(w)
    url, w.site.url = w.site.url, "http://127.0.0.1:9"
    try:
        same(updates(w, wanted=2)[0]["status"], "unanswered")
        holds("nothing more is asked online" in w.errors, w.errors)
        holds("1 unanswered" in w.info("--updates", wanted=2), "words")
    finally:
        w.site.url = url


@case
def updates_busy(w):
    w.site.add(w.model())
    side(w)
    w.site.fault("GET " + MODELS, status(429, ("Retry-After", "1")))
    same(updates(w)[0]["status"], "current")
    same(len(w.site.log), 2)


@case
def updates_garbage(w):
    """Answers that are none say nothing: least of all that a model is deleted."""
    w.site.add(w.model())
    side(w)
    for body in (b"", b"<html>", b"[]", b'{"items":[{]}', b"{" * 5000):
        w.site.fault("GET " + MODELS, text(body))
        same(updates(w, wanted=2)[0]["status"], "unanswered", repr(body))
    w.site.fault("GET " + MODELS, text(b"{}"))
    same(updates(w, wanted=2)[0]["status"], "unanswered")
    w.site.fault("GET " + MODELS, text(b'{"items":7}'))
    same(updates(w)[0]["status"], "current")
    w.site.fault("GET " + MODELS, *[text(b'{"items":[]}')] * 2)
    for body in (b'{"id":71,"modelVersions":[]}', b'{"error":"x"}'):
        w.site.fault("GET /api/v1/models/70", text(body))
        same(updates(w, wanted=2)[0]["status"], "unanswered", repr(body))
    for versions in (7, {"a": 1}, [1, None, [], {"id": -1}, {"id": "9"}, {"id": 1e30}],
                     [{"id": 7, "publishedAt": "9" * 100}], "x"):
        w.site.models[70]["modelVersions"] = versions
        same(updates(w)[0]["newer_count"], 0, repr(versions))
    w.site.models[70].update(modelVersions=[{"id": 7}], allowCommercialUse={"a": 1},
                             allowNoCredit=[], mode={"x": 1})
    same(updates(w)[0]["permissions"], [])
    w.site.models[70].update(allowCommercialUse=["x" * 1000, 5, None] + ["Y%d" % i
                                                                         for i in range(5000)])
    holds(len(updates(w, wanted=1)[0]["permissions"][0]["now"]) <= 16, "bounded")


@case
def updates_large(w):
    """A hundred thousand versions are read within bounds."""
    w.site.add(w.model())
    side(w)
    w.site.models[70]["modelVersions"] = [{"id": i, "name": "n" * 100} for i in range(100000)]
    begin = time.monotonic()
    same(updates(w, wanted=1)[0]["newer_count"], 100000 - 8)
    holds(time.monotonic() - begin < 20, "slow")


@case
def updates_memory(w):
    """Many answers, each within its limit, are not kept without limit."""
    for i in range(24):
        w.model("%02d.safetensors" % i)
        side(w, "%02d" % i, 100 + i, 200 + i)
        w.site.fault("GET /api/v1/models/%d" % (200 + i),
                     text(b'{"id":%d,"x":"%s"}' % (200 + i, b"x" * (15 << 20))))
        w.site.versions[100 + i] = {"id": 100 + i}
    results = updates(w, wanted=2)
    holds("expected at most 268435456 bytes in all answers" in w.errors, w.errors)
    told = [result["status"] for result in results]
    same((told.count("current"), told.count("unanswered")), (17, 7))


@case
def updates_mode(w):
    w.site.add(w.model())
    side(w)
    w.site.models[70]["mode"] = "Archived"
    same(updates(w)[0]["mode"], "Archived")
    holds("Archived" in w.info("--updates"), "words")


@case
def updates_words(w):
    """Dates of either key, names that are cut, none at all; blanks before an answer."""
    w.site.add(w.model())
    side(w, publishedAt="no")
    w.site.models[70]["modelVersions"] = [
        {"id": 7, "createdAt": "2024-05-01T10:00:00", "baseModel": 5},
        {"id": 6, "createdAt": "2024-06-01T10:00:00Z", "publishedAt": "2024-07-01 10:00:00",
         "baseModel": "sdxl 1.0"},
        {"id": 9, "publishedAt": "2024-05-02T10:00:0x", "status": "Published",
         "name": "\u00e9" * 300},
        {"id": 10, "status": 3, "baseModel": "Pony", "name": "z"}]
    answer = json.dumps({"items": [w.site.models[70]]}).encode()
    w.site.fault("GET " + MODELS, text(b" \r\n\t" + answer))
    found = updates(w, wanted=1)[0]
    same([(n["version_id"], n["published_at"]) for n in found["newer"]],
         [(10, None), (9, None), (6, "2024-06-01T10:00:00Z")])
    same(found["newer"][1]["name"], "\u00e9" * 256)
    same(found["newer"][2]["name"], None)
    holds("newer version z for Pony, and 2 more: " in w.info("--updates", wanted=1), "words")
    same([n["version_id"] for n in updates(w, "--same-base", wanted=1)[0]["newer"]], [9, 6])
    w.site.models[70]["modelVersions"][2:] = []
    said = w.info("--updates", wanted=1)
    holds("newer version  of 2024-06-01 for sdxl 1.0: http" in said, said)
    w.write("neon.civitai.info", {"id": 7, "modelId": 70, "name": "v2", "trainedWords": ["x"]})
    w.site.models[70]["modelVersions"] = [{"id": 9, "baseModel": "Pony"}]
    same([n["version_id"] for n in updates(w, "--same-base", wanted=1)[0]["newer"]], [9])


@case
def updates_uses(w):
    """Commercial use: none of it, more than one word, words of one level, one that is not told."""
    w.site.add(w.model())
    for was, now, changed in (("Image", [], True), (["Image", "Rent"], ["Rent", "image"], False),
                              (["Image", "Rent"], ["Image", "Sell"], True),
                              ("Rent", ["RentCivit"], True), ("Rent", "{Image, Rent}", False),
                              (["Image", "Rent"], ["Rent"], False), ("None", ["None"], False),
                              ("None", " {} ", False), ("Sell", 5, False), ("Sell", None, False),
                              (["Image", "Rent"], ["Image", "Rent", "x" * 41], False)):
        side(w, allowCommercialUse=was)
        w.site.models[70]["allowCommercialUse"] = now
        found = updates(w, wanted=int(changed))[0]["permissions"]
        same(len(found), int(changed), "%r, %r" % (was, now))
    side(w, allowCommercialUse="Image")
    w.site.models[70]["allowCommercialUse"] = []
    holds("commercial use none, was: Image" in w.info("--updates", wanted=1), "words")
    w.site.models[70] = {"id": 70, "modelVersions": [{"id": 7}]}
    same(updates(w)[0]["permissions"], None)


@case
def updates_of_both(w):
    """Two files of one version that its model lacks: it is asked for once; -v tells of all."""
    w.site.add(w.model("a.safetensors"))
    w.model("b.safetensors")
    side(w, "a")
    side(w, "b")
    w.site.models[70]["modelVersions"] = []
    same([f["status"] for f in updates(w)], ["current", "current"])
    same(w.site.paths()[1:], ["/api/v1/model-versions/7"])
    del w.site.versions[7]
    same([f["status"] for f in updates(w, wanted=1)], ["removed", "removed"])
    w.site.fault("GET /api/v1/model-versions/7", text(b"{"))
    same([f["status"] for f in updates(w, wanted=2)], ["unanswered", "unanswered"])
    w.model("c.safetensors")
    said = w.info("--updates", "-v", wanted=1)
    holds("a.safetensors: removed\n" in said and "c.safetensors: unknown\n" in said, said)
    w.write("c.civitai.info", {"id": 8, "modelId": 0, "trainedWords": ["x"], "name": "v"})
    same(updates(w, wanted=1)[2]["status"], "unknown")


@case
def updates_beside(w):
    """What in the folder is a newer version: files whose digest and length a version tells."""
    w.site.add(w.model())
    side(w)
    other = w.model("other.sft")
    w.model("third.safetensors", 4096)
    w.model(".hidden.safetensors")
    os.mkdir(w.path("folder.safetensors"))
    w.write("note.txt", "x")
    sha256 = other["sha256"].upper()
    version = w.site.publish(9)
    for files, had in ((7, False), ([{"name": "f"}], False), ([{"hashes": {"SHA256": 5}}], False),
                       ([{"hashes": {"SHA256": sha256[:63]}, "sizeKB": 0}], False),
                       ([{"hashes": {"SHA256": sha256}, "sizeKB": "x"}], False),
                       ([{"hashes": {"SHA256": sha256}, "sizeKB": 4}], False),
                       ([{"hashes": {"SHA256": "0" * 64}, "sizeKB": 0}], False),
                       ([{"hashes": {"SHA256": sha256}}], False),
                       ([{"hashes": {"SHA256": "0" * 64}, "sizeKB": 0},
                         {"hashes": {"SHA256": sha256}, "sizeKB": 0.2}], True)):
        version["files"] = files
        told = json.loads(w.info("--updates", "--json", wanted=int(not had), cwd=w.folder,
                                 names=["neon.safetensors"]))
        have = told["results"][0]["updates"]["newer"][0]["have"]
        same(have, "other.sft" if had else None, repr(files))


@case
def save_pictures(w):
    """The first picture that has an address; nothing where it is not there, or no picture."""
    file = w.model()
    page = w.site.url + "/image.jpeg"
    one = [{"url": 5}, {"url": "x" * 5000}, {"type": "image"}, {"url": page}]
    for images, there in ((one, True),
                          ({}, False), ([], False), ([{"url": page, "type": "video"}], False),
                          ([{"url": w.site.url + "/gone.png", "type": "image"}], False)):
        w.site.add(file, images=images)
        w.info("--save")
        names = ["neon.civitai.info"] + ["neon.preview.png"] * there + ["neon.safetensors"]
        same(sorted(os.listdir(w.folder)), names, repr(images)[:60])
        for name in set(names) - {"neon.safetensors"}:
            os.remove(w.path(name))
    w.site.add(file, images=[{"url": page}])
    w.site.fault("GET /image.jpeg", text(b""))
    w.info("--save")
    same(sorted(os.listdir(w.folder)), ["neon.civitai.info", "neon.safetensors"])


@case
def versions_that_are_odd(w):
    """A version whose model is no object, one with its own words and creator, ids that are none."""
    file = w.model()
    w.site.add(file, model=[1], creator={"username": "own"})
    result = w.json()[0]
    same(value(result, "name"), ("Neon City", ONLINE))
    same(value(result, "author"), ("own", ONLINE))
    w.site.add(file, model_id=0)
    same(value(w.json()[0], "version_name"), ("v2", ONLINE))
    for odd in (0, "7", None, -1):
        w.site.add(file)["id"] = odd
        same(value(w.json()[0], "version_name"), None, repr(odd))


@case
def save_as(w):
    """What was learned online goes into another program's sidecar; its digests too."""
    file = w.model()
    w.site.add(file)
    results = w.json("--save-as", "lora-manager")
    same(results[0]["saved"]["output"], w.path("neon.metadata.json"))
    saved = json.loads(w.read("neon.metadata.json"))
    same((saved["sha256"], saved["autov3"]), (file["sha256"], file["autov3"]))
    same((saved["model_name"], saved["trainedWords"]), ("Neon City", ["neon city", "glow"]))
    same((saved["civitai"]["id"], saved["civitai"]["modelId"]), (7, 70))
    same(saved["civitai"]["model"]["allowNoCredit"], True)
    result = w.json(online=False)[0]
    same(value(result, "name")[0], "Neon City")
    same(result["civitai"]["permissions"], {"credit": False, "commercial": ["Image"],
                                            "derivatives": True, "relicense": False})
    before = len(w.site.log)
    w.info("--save-as", "civitai", "--dry-run")
    same(len(w.site.log), before)
    same(sorted(os.listdir(w.folder)), ["neon.metadata.json", "neon.safetensors"])


# ── Usage ──

@case
def usage(w):
    w.model()
    for words, says in ((["--save"], "--online"), (["--dry-run"], "--online")):
        w.info(*words, online=False, wanted=2)
        holds(says in w.errors, w.errors)
    for words in (["--timeout", "0"], ["--timeout", "x"], ["--retries", "99"],
                  ["--connect-timeout", "-1"], ["--timeout", "99999999999999999999"]):
        w.info(*words, wanted=2)
    for url in ("ftp://x", "x", "http://", "http://u:p@x/", "http://x/?a=b", "http://a b/"):
        w.info("--online", "--civitai-url", url, online=False, wanted=2)
        holds("civitai-url" in w.errors, url + ": " + w.errors)
    w.info(names=["-"], wanted=2)
    same(w.site.log, [])


@case
def no_library(w):
    """Where libcurl is not there, it is said, and nothing is hashed."""
    w.model()
    fake = w.path("lib")
    os.mkdir(fake)
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"):
        with open(os.path.join(fake, name), "wb") as f:
            f.write(b"no library")
    old = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = fake
    try:
        w.info(wanted=2)
        holds("libcurl" in w.errors, w.errors)
        holds("would hash 1 file" in w.info("--dry-run"), "a dry run needs none")
    finally:
        del os.environ["LD_LIBRARY_PATH"]
        if old is not None:
            os.environ["LD_LIBRARY_PATH"] = old


@case
def environment(w):
    """No proxy of the environment is used."""
    w.site.add(w.model())
    with server.Site() as proxy:
        os.environ.update(http_proxy=proxy.url, all_proxy=proxy.url)
        try:
            same(w.json()[0]["civitai"]["version_id"], 7)
            same(proxy.log, [])
            w.info("--proxy", proxy.url, wanted=None)
            holds(proxy.log and not w.site.log[2:], "--proxy is not used")
        finally:
            del os.environ["http_proxy"], os.environ["all_proxy"]


@case
def no_single_files(w):
    """Models in many files have no digest of their own, and are not looked up."""
    file = w.model("model-00001-of-00001.safetensors")
    w.site.add(file)
    w.write("model.safetensors.index.json",
            {"weight_map": {"lora_unet_x.lora_up.weight": "model-00001-of-00001.safetensors"}})
    same(len(w.json()), 1)
    same(w.site.log, [])


# ── All ──

def has_library():
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"):
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            pass
    return False


def run_case(function):
    with tempfile.TemporaryDirectory() as folder, server.Site() as site:
        function(World(folder, site))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-v", dest="verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    unknown = set(args.names) - {c.__name__ for c in CASES}
    if unknown:
        sys.exit("tests/online: no case is called " + ", ".join(sorted(unknown)))
    chosen = [c for c in CASES if not args.names or c.__name__ in args.names]
    if os.environ.get("SFT_EMULATE") or not has_library():
        print("skipped: libcurl is not there (Debian: apt-get install libcurl4)")
        print("0 passed, 0 failed, %d skipped" % len(chosen))
        return 0
    failed = 0
    for function in chosen:
        begin = time.monotonic()
        try:
            run_case(function)
            if args.verbose:
                print("ok   %-24s %.1f s" % (function.__name__, time.monotonic() - begin))
        except Wrong as wrong:
            line = [f for f in inspect.trace() if f.filename == __file__][1].lineno
            print("FAIL %s, line %d: %s" % (function.__name__, line, wrong))
            failed += 1
        except Exception:
            print("FAIL %s" % function.__name__)
            traceback.print_exc(file=sys.stdout)
            failed += 1
    print("%d passed, %d failed" % (len(chosen) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
