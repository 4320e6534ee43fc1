"""Ranges as servers give them, or do not: info, cat of a slice and select of one file by http."""
import json
import os
import struct

import models
import server
from faults import (aligned, at_most_bytes, became, both, chunked, claim, content_range, gzipped,
                    header, http_1_0, informed, many_headers, multipart, page, shifted, short,
                    silent_close, status, until_close, whole, with_200)
from server import Memory, Repeated
from world import HEAD, Wrong, at_most, case, holds, quick, same

KEEP, SLICE = "layer.5*", "layer.55.weight[100:200]"


def usual(w, **more):
    """64 tensors of 16 KiB: more than the first request brings."""
    w.put(models.small(64, 16 << 10), **more)
    return w.site


def all_three(w, *words, **more):
    w.info_works(*words, **more)
    w.cat_works(SLICE, *words, **more)
    w.select_works(KEEP, *words, **more)


# ── Servers that do what they should ──

@quick
def plain(w):
    usual(w)
    w.info_works()
    same(w.site.count(), 1, "requests of info")
    same(w.site.log[0].header("Range"), "bytes=0-%d" % (HEAD - 1))
    w.cat_works(SLICE)
    at_most(w.site.count(), 3, "requests of info and cat")
    at_most(w.site.sent() - 2 * HEAD, 1 << 20, "bytes of the slice")
    w.select_works(KEEP)


@quick
def small_file(w):
    """All of it comes with the first request."""
    w.put(models.small())
    w.info_works()
    w.cat_works("layer.3.weight")
    w.select_works("layer.1*")
    same(w.site.count(), 3, "requests")


@case
def long_header(w):
    w.put(models.wide(400 << 10))
    w.info_works()
    same(w.site.count(), 2, "requests")
    size = struct.unpack("<Q", open(w.local, "rb").read(8))[0]
    same(w.site.log[1].header("Range"), "bytes=%d-%d" % (HEAD, size + 7), "the rest of the header")


@case
def every_reader(w):
    """ls, check, meta, diff: what they say of the URL is what they say of the file."""
    usual(w)
    for words in (["ls"], ["check"], ["meta", "list"]):
        for extra in ([], ["--json"]):
            found = []
            for path in (w.url, w.local):
                made = w.run(*words, *extra, path).text().replace(path, "PATH")
                if extra:
                    made = json.loads(made)
                    made["results"][0].pop("remote", None)
                found.append(made)
            same(found[0], found[1], " ".join(words + extra))
    w.run("diff", w.url, w.local)


@case
def check_says_what_it_read(w):
    usual(w)
    made = w.run("check", "--json", w.url)
    at_most(w.site.sent(), HEAD, "bytes")
    w.says(made.text() + made.errors(), ["not read|header|data"])


@quick
def ten_gigabytes(w):
    content = models.large()
    w.put(content)
    w.info()
    found = w.run("cat", "--as", "raw", w.url, "t[:4]").out
    at_most(w.site.count(), 3, "requests of info and cat")
    at_most(w.site.sent() - 2 * HEAD, 1 << 20, "bytes after the header")
    begin = len(content.head)
    same(found == server.read(content, begin, begin + 4 * 4096 * 4), True, "t[:4]")
    before = w.site.count()
    found = w.run("cat", "--as", "raw", w.url, "t[-1, -8:]").out
    same(w.site.count() - before, 2, "requests of cat")
    end = content.size - 8
    same(found, server.read(content, end - 32, end), "t[-1, -8:]")


@case
def columns(w):
    """A slice of many small pieces: fewer requests than pieces, and not all of the file."""
    w.put(models.large(1))
    w.run("cat", "--as", "raw", w.url, "t[:20000:1000, 7]")
    at_most(w.site.count(), 22, "requests")
    at_most(w.site.sent(), 4 << 20, "bytes")


@case
def many_connections(w):
    """Runs far apart are asked for at once, by as many connections as --connections says."""
    head, size = models.header({"t%02d" % i: ("U8", [2 << 20]) for i in range(32)})
    block = Repeated(head, bytes(range(256)), len(head) + size)
    w.put(block)
    w.site.delay = 0.1
    for words, most in ((["--connections", 4], 4), ([], 8)):
        w.site.most = 0
        w.run("select", *words, w.url, "--keep", "t*[02468]", "-o", "out.safetensors", "--force")
        at_most(w.site.most, most, "requests at once")
        holds(w.site.most > most // 2, "only %d requests at once" % w.site.most)
    at_most(w.site.origins["A"].accepted, 4 + 8, "connections made")
    at_most(w.site.sent() // 2, (32 << 20) + 2 * HEAD, "bytes of 32 MiB")
    os.unlink(os.path.join(w.here, "out.safetensors"))


@case
def memory_stays_small(w):
    """A gigabyte goes through a few blocks of memory."""
    if os.environ.get("SFT_TARGET") in ("asan", "tsan"):
        return  # they take their own
    w.put(models.large(1, "U8"))
    for words in (["cat", "--as", "raw", w.url, "t"], ["check", "--deep", w.url],
                  ["hash", "--read", "--algo", "sha256", w.url]):
        at_most(w.memory(*words), 160, "MiB of " + words[0])


@case
def sharded_index(w):
    local = models.sharded(os.path.join(w.folder, "local"), 72)
    for name in os.listdir(local):
        w.site.put("A", "/x/" + name, server.Disk(os.path.join(local, name)))
    w.url = w.site.url("A", "/x/model.safetensors.index.json")
    found = w.info()
    same(w.site.count("A GET /x/model"), 73, "requests")
    same(found["file"], w.run("info", "--json", local).result()["file"])


# ── Servers without ranges, and other forms of a right answer ──

@quick
def no_ranges(w):
    w.put(models.small(20, 16 << 10))
    w.site.always("A GET /m", whole)
    w.info_works()
    w.cat_works("layer.15.weight[:9]")
    w.select_works("layer.1*")


@case
def no_ranges_no_length(w):
    """The whole file, and its length is not told either."""
    for form in (chunked, until_close, http_1_0):
        w.put(models.small(20, 16 << 10))
        w.site.constant.clear()
        w.site.always("A GET /m", both(whole, form))
        w.info_works()
        w.cat_works("layer.15.weight[:9]")
        w.select_works("layer.1*")


@case
def no_ranges_large(w):
    w.put(models.large())
    w.site.always("A GET /m", whole)
    w.info()
    at_most(w.site.sent(), 16 << 20, "bytes until the connection is closed")
    w.cat_fails("t[500000:500002]", "range", "--whole")
    w.put(models.large(1))
    w.select_fails("t", "range", "--whole")


@case
def no_ranges_whole(w):
    usual(w, etag='"one"')
    w.put(models.small(64, 64 << 10))
    w.site.always("A GET /m", whole)
    w.cat_fails(SLICE, "range")
    w.select_fails(KEEP, "range", "--whole")
    all_three(w, "--whole")


@quick
def status_200_with_range(w):
    usual(w)
    w.site.always("A GET /m", with_200)
    all_three(w)


@case
def forms_of_answers(w):
    for form in (http_1_0, until_close, informed, chunked, silent_close, many_headers(20000),
                 at_most_bytes(100000), aligned(65536),
                 header(("Content-Length", None)), header(("ETag", None)),
                 header(("ETag", None), ("Last-Modified", None)), header(("ETag", 'W/"weak"')),
                 header(("Content-Type", None)), header(("Content-Encoding", "identity"))):
        usual(w)
        w.site.constant.clear()
        w.site.always("A GET /m", form)
        try:
            all_three(w)
        except Wrong as error:
            raise Wrong("%s: %s" % (form, error)) from error


# ── Wrong answers ──

@quick
def shifted_before(w):
    usual(w)
    w.site.always("A GET /m", shifted(-4096))
    all_three(w)


def is_refused(w, fault, code, *says):
    """From the second request on: cat and select; from the first on: info."""
    usual(w)
    w.site.always("A GET /m", fault)
    w.info_fails(code, *says)
    w.site.constant.clear()
    for _ in range(2):
        w.site.fault("A GET /m", None, *[fault] * 40)
        w.cat_fails(SLICE, *says)
        w.site.faults.clear()
        w.site.fault("A GET /m", None, *[fault] * 40)
        w.select_fails(KEEP, *says)
        w.site.faults.clear()


@quick
def claimed_one_later(w):
    is_refused(w, claim(1, 1), "remote_range", "Content-Range")


@case
def shifted_after(w):
    is_refused(w, shifted(1), "remote_range", "Content-Range")


@case
def total_other(w):
    """Of the first answer it is taken for the file's length, of a later one it is a change."""
    usual(w)
    w.site.always("A GET /m", claim(total=1000))
    w.info_fails(w.run("info", "--json", longer(w), wanted=2).result()["error"]["code"])
    w.site.constant.clear()
    for fails in (w.cat_fails, w.select_fails):
        w.site.fault("A GET /m", None, *[claim(total=1000)] * 40)
        fails(SLICE if fails == w.cat_fails else KEEP, "changed|length|bytes")
        w.site.faults.clear()


def longer(w):
    with open(w.local, "rb") as file:
        return models.write(w.folder, "longer.safetensors", file.read() + bytes(1000))


@case
def bad_content_range(w):
    for text in ("bytes 5-2/9", "bytes */9", "lines 0-9/10", "bytes 0-131071/*",
                 "bytes 0-99999999999999999999/99999999999999999999", "bytes -5-9/10",
                 "bytes 0-131071/1000", None):
        try:
            usual(w)
            w.site.always("A GET /m", content_range(text))
            w.info_fails("remote_range", "size" if text and text.endswith("*") else "Content-Range")
            w.site.constant.clear()
        except Wrong as error:
            raise Wrong("%s: %s" % (text, error)) from error


@case
def several_parts(w):
    is_refused(w, multipart, "remote_range", "multipart")


@quick
def compressed(w):
    is_refused(w, gzipped, "remote_range", "Content-Encoding")


@case
def short_body(w):
    """Content-Length and Content-Range contradict one another."""
    is_refused(w, short(50), "remote_range", "Content-Length|Content-Range")


@quick
def page_of_text(w):
    """A login page: named, as the local file would be."""
    usual(w)
    w.site.always("A GET /m", page())
    w.info_fails(w.run("info", "--json", models.write(
        w.folder, "p.safetensors", server.read(reply_of(page()).content)), wanted=2)
        .result()["error"]["code"], "HTML")


def reply_of(fault):
    reply = server.Reply(200)
    fault(None, reply)
    return reply


@case
def page_within(w):
    """The session ends between two requests."""
    usual(w)
    for fails, what in ((w.cat_fails, SLICE), (w.select_fails, KEEP)):
        w.site.fault("A GET /m", None, *[page()] * 40)
        fails(what)
        w.site.faults.clear()


@case
def headers_without_end(w):
    usual(w)
    w.site.always("A GET /m", many_headers(2 << 20))
    w.info_fails("remote_status", "header", hint=False)
    same(w.site.count(), 1, "requests")


@quick
def missing(w):
    w.url = w.site.url("A", "/none.safetensors")
    w.info_fails("not_found")
    same(w.site.count(), 1, "requests")


@case
def statuses(w):
    usual(w)
    for code, wanted in ((400, "remote_status"), (401, "remote_denied"), (403, "remote_denied"),
                         (405, "remote_status"), (410, "not_found"), (418, "remote_status"),
                         (451, "remote_status"), (501, "remote_status"), (204, "remote_status"),
                         (304, "remote_status"), (300, "remote_status")):
        w.site.constant.clear()
        w.site.always("A GET /m", status(code, b"\n\nthe reason is this\nnot this\n",
                                         ("Content-Type", "text/plain")))
        before = w.site.count()
        try:
            says = ["the reason is this"] if code in (400, 401, 403, 418, 451) else []
            text = w.info_fails(wanted, str(code), *says, hint=wanted == "remote_denied")
            holds("HF_TOKEN" not in text, text)
            at_most(w.site.count() - before, 2, "requests")
        except Wrong as error:
            raise Wrong("%d: %s" % (code, error)) from error


# ── Files that change ──

@quick
def etag_changes(w):
    usual(w)
    for fails, what in ((w.cat_fails, SLICE), (w.select_fails, KEEP)):
        w.site.fault("A GET /m", None, *[header(("ETag", '"other"'))] * 40)
        fails(what, "changed")
        w.site.faults.clear()
    w.put(models.wide(400 << 10))
    w.site.fault("A GET /m", None, *[header(("ETag", '"n%d"' % i)) for i in range(40)])
    w.info_fails("remote_changed")


@case
def etag_changes_once(w):
    """The header's two requests met two files: begun again, nothing was given out."""
    w.put(models.wide(400 << 10, seed=1))
    old = Memory(models.wide(410 << 10, seed=2))
    w.site.fault("A GET /m", became(old))
    w.info_works()


@case
def grows_or_shrinks(w):
    usual(w)
    for size in (200, 20):
        for etag in ('"another"', w.site.paths["A", "/m.safetensors"].etag, None):
            other = became(Memory(models.small(size, 16 << 10)), etag)
            for fails, what in ((w.cat_fails, SLICE), (w.select_fails, KEEP)):
                w.site.fault("A GET /m", None, *[other] * 40)
                fails(what, "changed|shorter|bytes")
                w.site.faults.clear()


@case
def same_length_modified(w):
    """No ETag, the same length, another Last-Modified."""
    usual(w, etag=None)
    other = became(Memory(models.small(64, 16 << 10, seed=9)), None)
    later = both(other, header(("Last-Modified", "Sat, 21 Nov 2026 13:00:00 GMT")))
    for fails, what in ((w.cat_fails, SLICE), (w.select_fails, KEEP)):
        w.site.fault("A GET /m", None, *[later] * 40)
        fails(what, "changed")
        w.site.faults.clear()


@case
def range_beyond(w):
    """416 from a file that was long enough before."""
    usual(w)
    gone = status(416, b"", ("Content-Range", "bytes */20000"))
    for fails, what in ((w.cat_fails, SLICE), (w.select_fails, KEEP)):
        w.site.fault("A GET /m", None, *[gone] * 40)
        fails(what, "20[, ]?000|changed")
        w.site.faults.clear()


@case
def truncated_upload(w):
    """A file that is shorter than its header says: what check says of the local one."""
    data = models.small(64, 16 << 10)[:700000]
    w.put(data)
    wanted = w.run("check", "--json", w.local, wanted=1).result()["error"]
    found = w.run("check", "--json", w.url, wanted=1).result()["error"]
    same(found["code"], wanted["code"])
    same(found["message"], wanted["message"])
    same(w.site.count(), 1, "requests")


@case
def empty_file(w):
    """A server answers a range of nothing by 416, or by 200 and nothing."""
    w.put(b"")
    wanted = w.run("info", "--json", w.local, wanted=2).result()["error"]
    w.info_fails(wanted["code"])
    w.site.always("A GET /m", status(200, b""))
    w.info_fails(wanted["code"])


# ── Headers that lie, indexes that point elsewhere ──

@quick
def lengths_that_lie(w):
    for data in (struct.pack("<Q", 1 << 63) + b"{}" * 500, struct.pack("<Q", 5000) + b"{}" * 500,
                 struct.pack("<Q", 200 << 20) + b"{" + b" " * (1 << 20)):
        w.put(data)
        before = w.site.count()
        wanted = w.run("info", "--json", w.local, wanted=2).result()["error"]["code"]
        w.info_fails(wanted)
        at_most(w.site.count() - before, 1 if len(data) < HEAD else 2, "requests")  # its end, too
    head = struct.pack("<Q", 200 << 20) + b'{"a":'
    w.put(Repeated(head, b" ", 10 ** 10))
    before = w.site.sent()
    w.info_fails("header_too_large")
    at_most(w.site.sent() - before, 2 * HEAD, "bytes")  # and what tells other formats


@quick
def index_elsewhere(w):
    for name in ("../x.safetensors", "http://127.0.0.1:1/x.safetensors", "x.safetensors?y",
                 "/x.safetensors", "//127.0.0.1:1/x", "a/../../x.safetensors",
                 "x%2e%2e.safetensors", "x#y", "..\\x", "hf://ns/m/x.safetensors"):
        w.url = w.site.put("A", "/deep/er/model.safetensors.index.json", json.dumps(
            {"metadata": {}, "weight_map": {"a": name}}).encode())
        w.site.put("A", "/deep/x.safetensors", models.small())
        w.site.put("A", "/deep/er/x.safetensors", models.small())
        w.site.put("A", "/x.safetensors", models.small())
        before = w.site.count()
        try:
            made = w.run("ls", "--json", w.url, wanted=None)
            same(made.result()["ok"], False, "ok")
            same(w.site.count() - before, 1, "requests")
        except Wrong as error:
            raise Wrong("%s: %s" % (name, error)) from error
