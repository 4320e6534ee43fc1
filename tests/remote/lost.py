"""Connections that are lost, servers that ask to wait, Ctrl-C, signed URLs that expire."""
import signal
import time

import models
import server
from matrix import KEEP, SLICE, all_three, usual
from faults import cut, drip, hang_up, pause, status, too_many
from server import Memory, Repeated, Signed
from world import at_most, case, holds, quick, same


# ── Lost ──

def cut_cases(w, every):
    data = models.small(3, 40)
    for k in every:
        w.put(data, "/k%d.safetensors" % k)
        w.site.fault("A GET /k%d." % k, cut(k, reset=k % 2 == 1))
    children = [(k, w.start("info", "--json", w.site.url("A", "/k%d.safetensors" % k)))
                for k in every]
    for k, child in children:
        w.end(child, ["info", "cut after", k], 0)
        asked = w.site.asked("A GET /k%d." % k)
        same(len(asked), 2, "requests when cut after %d" % k)
        if k % 2 == 0:
            same(int(asked[1].header("Range")[6:].split("-")[0]), k, "goes on from")


@quick
def cut_after(w):
    cut_cases(w, (0, 1, 8, 100))


@case
def cut_after_every_byte(w):
    size = len(models.small(3, 40))
    for begin in range(0, size, 24):
        cut_cases(w, range(begin, min(begin + 24, size)))


@case
def cut_within_data(w):
    usual(w)
    for k in (0, 1, 4095, 70000):
        w.site.fault("A GET /m", None, cut(k))
        w.select_works(KEEP)
        w.site.faults.clear()
        w.site.fault("A GET /m", None, cut(min(k, 50), reset=True))
        w.cat_works(SLICE)
        w.site.faults.clear()


@case
def hangs_up(w):
    usual(w)
    w.site.fault("A GET /m", hang_up, hang_up)
    w.info_works()
    w.site.always("A GET /m", hang_up)
    w.info_fails("remote_network")


@case
def nobody_listens(w):
    w.url = "http://127.0.0.1:1/m.safetensors"
    w.info_fails("remote_network", "127.0.0.1:1")


@case
def no_such_host(w):
    w.url = "http://no-such-host.invalid/m.safetensors"
    w.info_fails("remote_network", "no-such-host.invalid")


@quick
def busy_twice(w):
    usual(w)
    w.site.fault("A GET /m", status(503), status(500))
    begin = time.monotonic()
    w.info_works()
    holds(time.monotonic() - begin > 1, "retries wait")
    same(w.site.count(), 3, "requests")


@case
def busy_for_ever(w):
    usual(w)
    w.site.always("A GET /m", status(503, b"out of order\n"))
    text = w.info_fails("remote_busy", "503")
    holds("Hugging Face" not in text, text)
    same(w.site.count(), 5, "requests")
    w.info_fails("remote_busy", "503", words=["--retries", 1])
    same(w.site.count(), 7, "requests with --retries 1")


@case
def busy_within(w):
    usual(w)
    w.site.fault("A GET /m", None, status(503), status(502), None, status(504))
    w.select_works(KEEP)


@quick
def told_to_wait(w):
    usual(w)
    begin = time.monotonic()
    w.site.fault("A GET /m", too_many(1))
    w.info_works()
    holds(time.monotonic() - begin > 1.9, "waits for t and a second")
    text = w.site.count()
    w.site.always("A GET /m", too_many(4000))
    w.info_fails("remote_busy", "6[67] min")
    same(w.site.count() - text, 1, "requests when the wait is too long")


@case
def told_to_wait_otherwise(w):
    usual(w)
    for form in ("seconds", "date"):
        w.site.fault("A GET /m", too_many(2, form))
        begin = time.monotonic()
        w.info_works()
        holds(time.monotonic() - begin > 0.9, "waits as told by " + form)
        w.site.constant.clear()
        w.site.always("A GET /m", too_many(4000, form))
        w.info_fails("remote_busy", "6[67] min")
        w.site.constant.clear()
    w.site.fault("A GET /m", status(503, b"", ("Retry-After", "2")))
    begin = time.monotonic()
    w.info_works()
    holds(time.monotonic() - begin > 1.9, "waits for Retry-After of 503")


@case
def one_byte_a_second(w):
    usual(w)
    w.site.always("A GET /m", drip(1))
    begin = time.monotonic()
    w.info_fails("remote_network", words=["--timeout", 3, "--retries", 1])
    at_most(time.monotonic() - begin, 30, "seconds")


@case
def stalls(w):
    usual(w)
    w.site.always("A GET /m", pause(60))
    begin = time.monotonic()
    w.info_fails("remote_network", words=["--timeout", 2, "--retries", 1])
    at_most(time.monotonic() - begin, 20, "seconds")


@quick
def interrupted(w):
    """Ctrl-C in the middle of select: the folder is as before."""
    w.put(models.large(1))
    models.write(w.here, "out.safetensors", b"the old one")
    before = models.snapshot(w.here)
    w.site.fault("A GET /m", None, *[pause(60)] * 40)
    child = w.start("select", w.url, "--keep", "t", "-o", "out.safetensors", "--force")
    for _ in range(400):
        if w.site.count() > 1:
            break
        time.sleep(0.05)
    time.sleep(0.2)
    begin = time.monotonic()
    child.send_signal(signal.SIGINT)
    made = w.end(child, ["select"], None)
    holds(made.status in (130, -signal.SIGINT), "exit status %d" % made.status)
    at_most(time.monotonic() - begin, 5, "seconds until it ended")
    same(models.snapshot(w.here), before, "what is in the folder")


@case
def interrupted_while_waiting(w):
    """Ctrl-C while nothing arrives: in the wait of a 429, between tries, before the first byte."""
    usual(w)
    for fault in (too_many(50), status(503, b"", ("Retry-After", "50")), pause(60), drip(1)):
        w.site.constant.clear()
        w.site.always("A GET /m", fault)
        before = w.site.count()
        child = w.start("info", w.url)
        while w.site.count() == before:
            time.sleep(0.02)
        time.sleep(0.3)
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        made = w.end(child, ["info"], None)
        holds(made.status in (130, -signal.SIGINT), "exit status %d" % made.status)
        at_most(time.monotonic() - begin, 3, "seconds until it ended")


# ── Signed URLs ──

def signed(w, uses, content=None):
    content = content or Memory(models.small(64, 16 << 10))
    w.signed = Signed(w.site, "B", "/signed/m.safetensors", content, uses)
    w.url = w.site.put("A", "/m.safetensors", lambda request: server.Reply(
        302, [("Location", w.signed.sign())], b""))
    if isinstance(content, Memory):
        w.local = models.write(w.folder, "m.safetensors", bytes(content.data))


@quick
def signed_url(w):
    """Resolved once, then the signed URL is used again and again."""
    signed(w, None)
    all_three(w)
    same(w.site.count("A"), 3, "requests for three commands")


@case
def signed_url_expires(w):
    head, size = models.header({"t%02d" % i: ("U8", [2 << 20]) for i in range(24)})
    content = Repeated(head, bytes(range(251)), len(head) + size)
    signed(w, 3, content)
    local = models.write(w.folder, "l.safetensors", server.read(content))
    w.cat_works("t13[:100]", local=local)
    same(w.site.count("A"), 1, "resolved")
    w.select_works("t*[02468]", "--connections", 1, local=local)
    at_most(w.site.count("A"), 8, "resolved")


@case
def denied_for_ever(w):
    signed(w, 0)
    w.info_fails("remote_denied", "403", "expired")
    at_most(w.site.count("B"), 2, "requests to who denies")
    at_most(w.site.count(), 4, "requests")


@case
def denied_within(w):
    signed(w, 1)
    w.signed.uses = None
    w.site.fault("B GET", None, *[status(403, b"Auth failed: invalid range\n")] * 40)
    w.cat_fails(SLICE, "403", "Auth failed: invalid range")
    at_most(w.site.count("B"), 4, "requests")
