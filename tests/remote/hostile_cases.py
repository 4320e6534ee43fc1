"""Servers that mean harm: words for terminals, lists that lead elsewhere, answers without end."""
import json

import models
from faults import header, moved, status
from hub import File
from hub_cases import many, one_file
from matrix import SLICE, usual
from server import Repeated, Reply
from world import Wrong, at_most, case, holds, quick, same

EVIL = "\x1b[31mred\x07\x9b2J"
BIDI = "\u202etxt.exe"


def is_clean(made, raw=False):
    for name, data in (("output", b"" if raw else made.out), ("errors", made.err)):
        for bad in (b"\x1b", b"\x07", b"\x9b", BIDI[0].encode()):
            holds(bad not in data, "%s: %r" % (name, data[-300:]))


@quick
def words_for_terminals(w):
    """Controls and direction marks in what a server says are escaped, wherever they are shown."""
    usual(w)
    body = (EVIL + BIDI).encode() + b"\n"
    latin = EVIL.encode("latin-1").decode("latin-1")
    for fault in (status(403, body), status(400, body, ("X-Error-Message", latin)),
                  status(503, body, ("X-Error-Code", latin)), moved("http://a" + latin + "/"),
                  moved("/x?" + latin), header(("ETag", '"%s"' % latin)),
                  header(("Content-Disposition", 'attachment; filename="%s"' % latin)),
                  header(("Content-Type", latin)), header(("Content-Encoding", latin)),
                  header(("Content-Range", latin)), status(200, body)):
        w.site.constant.clear()
        w.site.always("A GET /", fault)
        for words in (["info"], ["info", "--json"], ["ls", "--log-requests"]):
            is_clean(w.run(*words, "--retries", 0, w.url, wanted=None))


@case
def words_of_a_hub(w):
    repository = one_file(w)
    refuse = w.hub.error
    w.hub.error = lambda code, name, message: refuse(code, name, message + EVIL)
    repository.gated = "ask"
    for url in (w.url, "hf://ns/none/x", "hf://ns/m@none/x", "hf://ns/m"):
        is_clean(w.run("info", url, wanted=None))
        is_clean(w.run("info", "--json", url, wanted=None))


def tree_is(w, entries):
    """What the tree of every revision says."""
    w.site.functions.insert(0, ("A", "/api/models/ns/m/tree/", lambda request: Reply(
        200, [("Content-Type", "application/json")],
        entries if isinstance(entries, bytes) else json.dumps(entries).encode())))


def entry(path, size=1000, **more):
    return {"type": "file", "path": path, "size": size, "oid": "0" * 40, **more}


@case
def names_in_a_tree(w):
    """Names that lead elsewhere, or are none: nothing outside of the repository is asked for."""
    one_file(w)
    w.url = "hf://ns/m"
    for path in ("../../other/repo/x.safetensors", "/etc/passwd.safetensors", "a/../x.safetensors",
                 "..", "", "a//b.safetensors", "%2e%2e/x.safetensors", "x?y=z.safetensors",
                 "x#y.safetensors", "a\\b.safetensors", EVIL + ".safetensors",
                 BIDI + ".safetensors", "x" * 5000 + ".safetensors", "a\nb.safetensors"):
        tree_is(w, [entry(path), entry("model.safetensors")])
        before = len(w.site.log)
        is_clean(w.run("info", w.url, wanted=None))
        is_clean(w.run("ls", "--json", w.url, wanted=None))
        for request in w.site.log[before:]:
            holds(request.path.startswith(("/ns/m/resolve/", "/api/models/ns/m/", "/xet-bridge"))
                  and "/../" not in request.path, "%r: %s" % (path, request.line()))


@case
def broken_trees(w):
    """No JSON, other JSON, sizes that are none, pages that never end: an error, and soon."""
    one_file(w)
    w.url = "hf://ns/m"
    deep = b'[{"path":' + b"[" * 100000 + b"]" * 100000 + b"}]"
    for text in (b"", b"[", b"null", b"{}", b'{"error":"x"}', b"[1,2]", b'[{"type":"file"}]', deep,
                 b'[{"type":"file","path":"m.safetensors","size":-1}]', b"\xff\xfe", b"<html>",
                 b'[{"type":"file","path":7,"size":"x"}]'):
        tree_is(w, text)
        made = w.run("info", w.url, wanted=None)
        holds(made.status in (0, 1, 2), "%r: exit status %d" % (text[:40], made.status))
        is_clean(made)
    w.site.functions.insert(0, ("A", "/api/models/ns/m/tree/", lambda request: Reply(
        200, [("Link", '<%s?cursor=%d>; rel="next"' % (w.site.url("A", request.path),
                                                       w.site.count())),
              ("Content-Type", "application/json")], b"[]")))
    before = w.site.count()
    w.run("info", w.url, wanted=None)
    at_most(w.site.count() - before, 2000, "pages of a tree that never ends")


@quick
def next_page_elsewhere(w):
    """The next page of a tree is at another origin: the token is not sent there."""
    one_file(w)
    w.url = "hf://ns/m"
    for to in (w.site.url("B", "/next"), w.site.url("B", "/next")[5:], "http://127.0.0.1:1/"):
        w.site.functions.insert(0, ("A", "/api/models/ns/m/tree/", lambda request, to=to: Reply(
            200, [("Link", '<%s>; rel="next"' % to), ("Content-Type", "application/json")],
            json.dumps([entry("model.safetensors")]).encode())))
        w.run("info", w.url, wanted=None)
    same([r.line() for r in w.site.asked("B") if r.header("Authorization")], [], "told the token")


@case
def answers_without_end(w):
    """README.md, config.json, an index and a tree that do not end are not read for ever."""
    repository = many(w, 4)
    huge = Repeated(b'{"a":"', b"x" * 4096, 1 << 33)
    for name in ("README.md", "config.json", "model.safetensors.index.json"):
        old = repository.commits[repository.refs["main"]][name]
        repository.push({name: File(huge, False, "ab" * 32)})
        before = w.site.sent()
        w.run("info", "--json", w.url, wanted=None)
        at_most(w.site.sent() - before, 200 << 20, "bytes for " + name)
        repository.push({name: old})
    w.site.functions.insert(0, ("A", "/api/models/ns/m/tree/", lambda request: Reply(
        200, [("Content-Type", "application/json")], huge)))
    before = w.site.sent()
    w.run("info", "--json", w.url, wanted=None)
    at_most(w.site.sent() - before, 200 << 20, "bytes for a tree")


@case
def claims_that_lie(w):
    """The redirect tells another size or digest than the file has: told, or not believed."""
    one_file(w)
    for lie in (("X-Linked-Size", "12"), ("X-Linked-Size", "99999999999999999999"),
                ("X-Linked-Size", "-1"), ("X-Linked-Etag", '"../../x"'),
                ("X-Linked-Etag", '"%s"' % ("zz" * 32)), ("X-Repo-Commit", "../../../etc"),
                ("X-Repo-Commit", "main"), ("X-Repo-Commit", EVIL), ("X-Xet-Hash", "/etc/passwd")):
        w.site.constant.clear()
        w.site.always("A GET /ns/m/resolve", header(lie))
        made = w.run("cat", "--as", "raw", w.url, SLICE, wanted=None)
        is_clean(made, raw=True)
        wanted = w.run("cat", "--as", "raw", w.local, SLICE).out
        holds(made.out in (b"", wanted), "%s: other bytes" % (lie,))
        for request in w.site.log:
            if ".." in request.target or "etc" in request.target:
                raise Wrong("%s: %s" % (lie, request.line()))
