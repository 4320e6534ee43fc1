"""Servers that attack: what they say is neither believed beyond its limits nor repeated."""
import json
import os
import shutil

import models
from faults import cut, moved, status
from server import Reply
from world import PASSWORD, QUERY, at_most, case, holds, quick, same


@quick
def hub_commit_with_nul(w):
    """40 digits, a NUL and a flood: no commit, and nothing that fits where one does."""
    hub = w.make_hub()
    hub.add("ns/m", {"model.safetensors": models.small()})
    for flood in (0, 30, 5000):
        w.site.always("A GET /api/models/ns/m/revision",
                      status(200, json.dumps({"sha": "a" * 40 + "\0" + "b" * flood}).encode()))
        w.run("ls", "hf://ns/m")
        w.site.constant.clear()
    holds(not w.site.count("A GET /api/models/ns/m/tree/aaaa"), "the commit was believed")


@quick
def password_in_a_failure(w):
    """It was sent in base64, and comes back as it is."""
    w.url = w.put(models.small()).replace("http://", "http://someone:%s@" % PASSWORD)
    for reply in (status(403, b"someone:%s may not\n" % PASSWORD.encode()),
                  status(404, b"", ("X-Error-Message", "no file for " + PASSWORD))):
        w.site.constant.clear()
        w.site.always("A GET /m", reply)
        made = w.run("info", "--json", w.url, wanted=2)
        holds(b"[...]" in made.out and b"[...]" in made.err, "the rest is said: %r" % made.err)


@quick
def query_behind_a_redirect(w):
    """The server of the second hop knows what was in the first one's query."""
    w.url = w.put(models.small()) + "?token=" + QUERY
    for to, reply in (("/denied", status(403, b"bad token %s\n" % QUERY.encode())),
                      ("/denied/" + QUERY, status(403)), ("ftp://host/" + QUERY, None),
                      ("//%s/%s" % (w.site.url("B")[7:], QUERY), None)):
        w.site.constant.clear()
        w.site.always("A GET /m", moved(to))
        if reply:
            w.site.always("A GET /denied", reply)
        made = w.run("info", "--log-requests", w.url, wanted=2)
        holds(b"[...]" in made.err.replace(b"?[...]", b""), "the rest is said: %r" % made.err)


@case
def token_behind_a_redirect(w):
    """The Hub's own, which it repeats in a place that is asked without it."""
    hub = w.make_hub()
    hub.add("ns/m", {"model.safetensors": models.small()})
    w.site.always("A GET /ns/m/resolve", moved("ftp://host/" + hub.token))
    made = w.run("info", "hf://ns/m/model.safetensors", "--log-requests", wanted=2)
    holds(b"ftp://host/[...]" in made.err, "the rest is said: %r" % made.err)


def endless_bucket(w, key, keys):
    """Pages of so many keys, each a bytes object made of key % number."""
    pages = [0]

    def page(_):
        pages[0] += 1
        at = pages[0] * keys
        entries = b"".join(b"<Contents><Key>%s</Key></Contents>" % (key % i)
                           for i in range(at, at + keys))
        return Reply(200, [("Content-Type", "application/xml")],
                     b"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>"
                     b"%d</NextContinuationToken>%s</ListBucketResult>" % (at, entries))
    w.site.beneath("A", "/", page)
    return pages


@case
def bucket_without_end(w):
    """Neither objects nor names without number take memory without limit."""
    env = {"AWS_ENDPOINT_URL": w.site.url("A"), "AWS_ACCESS_KEY_ID": None,
           "AWS_SECRET_ACCESS_KEY": None, "AWS_SESSION_TOKEN": None}
    for key, keys, most in ((b"k" * 1000 + b"%d", 7000, 12), (b"%d", 100000, 12)):
        pages = endless_bucket(w, key, keys)
        made = w.run("ls", "s3://bucket/", wanted=2, env=env)
        holds(b"a folder of at most" in made.err, repr(made.err))
        at_most(pages[0], most, "pages")
        w.site.functions.clear()


@quick
def region_with_a_host(w):
    """A region becomes part of the host that requests are signed for: it must be no host."""
    for region in ("eu-west-1.evil.example/", "x@evil.example#", "evil.example", "..", "a b"):
        made = w.run("info", "--log-requests", "--retries", "0", "s3://bucket/m", wanted=2,
                     env={"AWS_REGION": region})
        holds(b"expected the name of a region" in made.err, repr(made.err))
        holds(b"GET" not in made.err, "asked: %r" % made.err)


@quick
def cache_whose_folders_are_links(w):
    """A snapshot that lies elsewhere would make that place's files the repository's own."""
    data = models.small()
    w.make_hub().add("ns/m", {"README.md": b"no model"})
    elsewhere = models.write(os.path.join(w.folder, "elsewhere"), "private.safetensors", data)
    repository = os.path.join(w.folder, "hub", "models--ns--m")
    env, commit = {"HF_HUB_CACHE": os.path.join(w.folder, "hub")}, "a" * 40
    for link, to in (("snapshots/" + commit, "."), ("snapshots", "..")):
        shutil.rmtree(repository, ignore_errors=True)
        os.makedirs(os.path.join(repository, os.path.dirname(link)))
        os.symlink(os.path.join(os.path.dirname(elsewhere), to), os.path.join(repository, link))
        if link == "snapshots":
            os.rename(os.path.dirname(elsewhere), os.path.join(w.folder, commit))
        for words, says in ((["--offline"], b"no such revision"), ([], b"")):
            name = "hf://ns/m@%s/private.safetensors" % commit
            holds(says in w.run("ls", *words, name, wanted=2, env=env).err, link)
        holds(b"private" not in w.run("ls", "--offline", "hf://ns/m@" + commit, wanted=2,
                                      env=env).out, link)


@quick
def signature_spent_on_a_lost_connection(w):
    """A redirect's URL that holds for one use, which ended early: the redirect is asked again."""
    hub = w.make_hub()
    hub.add("ns/m", {"model.safetensors": models.small(64, 16 << 10)})
    hub.uses = 1
    w.site.fault("B GET", cut(100))
    w.run("ls", "hf://ns/m/model.safetensors")
    same([r.status for r in w.site.asked("B GET")], [206, 403, 206], "answers")
