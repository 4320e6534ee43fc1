"""What a server may do wrong: each is, or makes, a function that changes the reply to a request."""
import email.utils
import gzip
import time

from server import Resource, found, read


def whole(_, reply):
    """No ranges: 200 and everything."""
    if reply.status == 206:
        reply.status, reply.begin, reply.end = 200, 0, reply.content.size
        reply.length = reply.end
        reply.set("Content-Range", None)
        reply.set("Accept-Ranges", None)


def with_200(_, reply):
    """200 with the right Content-Range and only the slice."""
    if reply.status == 206:
        reply.status = 200


def claim(first=0, last=0, total=0):
    """A Content-Range moved by so much; the body is what was asked for."""
    def fault(_, reply):
        if reply.status == 206:
            reply.set("Content-Range", "bytes %d-%d/%d" % (
                reply.begin + first, reply.end - 1 + last, reply.content.size + total))
    return fault


def shifted(by):
    """A reply that begins elsewhere, and says so: bytes and Content-Range agree."""
    def fault(_, reply):
        if reply.status == 206:
            reply.begin = max(0, reply.begin + by)
            reply.length = reply.end - reply.begin
            claim()(_, reply)
    return fault


def content_range(text):
    """Content-Range as spelt; None: none."""
    def fault(_, reply):
        if reply.status == 206:
            reply.set("Content-Range", text)
    return fault


def multipart(_, reply):
    data = read(reply.content, reply.begin, reply.end)
    named = "Content-Type: application/octet-stream\r\nContent-Range: %s\r\n\r\n" % \
        reply.get("Content-Range")
    reply.body(b"--cut\r\n" + named.encode() + data + b"\r\n--cut--\r\n")
    reply.set("Content-Type", "multipart/byteranges; boundary=cut")
    reply.set("Content-Range", None)


def short(by):
    """A complete reply whose body lacks its last bytes; Content-Range tells of all."""
    def fault(_, reply):
        reply.end = max(reply.begin, reply.end - by)
        reply.length = reply.end - reply.begin
    return fault


def cut(after, reset=False):
    """The connection is lost after so many bytes of the body."""
    def fault(_, reply):
        reply.cut, reply.reset = after, reset
    return fault


def hang_up(_, reply):
    """Nothing at all: not even a status."""
    reply.version, reply.headers, reply.length = "", [], None
    reply.head, reply.cut = lambda: b"", 0


def gzipped(_, reply):
    data = gzip.compress(read(reply.content, reply.begin, reply.end), 1)
    reply.body(data)
    reply.status = 200
    reply.set("Content-Range", None)
    reply.set("Content-Encoding", "gzip")


def header(*pairs):
    """Headers set, or with None taken away."""
    def fault(_, reply):
        for name, value in pairs:
            reply.set(name, value)
    return fault


def status(code, body=b"busy\n", *headers):
    def fault(_, reply):
        reply.status, reply.headers = code, list(headers)
        reply.body(body)
    return fault


def too_many(seconds, form="ratelimit"):
    """429, and when to come again: in one of three spellings."""
    if form == "ratelimit":
        pairs = [("RateLimit", '"resolvers";r=0;t=%d' % seconds),
                 ("RateLimit-Policy", '"fixed window";"resolvers";q=3000;w=300')]
    elif form == "seconds":
        pairs = [("Retry-After", str(seconds))]
    else:
        now = time.time()
        pairs = [("Date", email.utils.formatdate(now, usegmt=True)),
                 ("Retry-After", email.utils.formatdate(now + seconds, usegmt=True))]
    return status(429, b"slow down\n", *pairs)


def moved(to, code=302, *headers):
    return status(code, b"", ("Location", to), *headers)


def page(code=200):
    """A login page in place of the file."""
    return status(code, b"<!DOCTYPE html>\n<html><title>Sign in</title></html>\n",
                  ("Content-Type", "text/html; charset=utf-8"))


def pause(seconds):
    def fault(_, reply):
        reply.pause = seconds
    return fault


def drip(rate=1.0):
    """So many bytes of the body a second."""
    def fault(_, reply):
        reply.rate = rate
    return fault


def many_headers(size):
    """Fields of so many bytes together."""
    def fault(_, reply):
        reply.headers += [("X-Field-%d" % i, "v" * 1000) for i in range(size // 1000)]
    return fault


def http_1_0(_, reply):
    reply.version, reply.close = "HTTP/1.0", True


def until_close(_, reply):
    """No length: the body ends with the connection."""
    reply.length, reply.close = None, True


def chunked(_, reply):
    reply.chunked = True


def silent_close(_, reply):
    """A complete answer that does not say that the connection ends with it."""
    reply.silent = True


def at_most_bytes(count):
    """Ranges are given up to so many bytes: the rest has to be asked for."""
    def fault(_, reply):
        if reply.status == 206:
            reply.end = min(reply.end, reply.begin + count)
            reply.length = reply.end - reply.begin
            claim()(_, reply)
    return fault


def aligned(block):
    """Ranges are widened to whole blocks, as some caches do."""
    def fault(_, reply):
        if reply.status == 206:
            reply.begin -= reply.begin % block
            reply.end = min(reply.content.size, -(-reply.end // block) * block)
            reply.length = reply.end - reply.begin
            claim()(_, reply)
    return fault


def informed(_, reply):
    """Two answers of 1xx before the real one."""
    reply.before = (b"HTTP/1.1 100 Continue\r\n\r\n"
                    b"HTTP/1.1 103 Early Hints\r\nETag: \"other\"\r\n"
                    b"Content-Range: bytes 7-8/9\r\n\r\n")


def became(content, etag='"another"'):
    """From this request on the path has other contents."""
    def fault(request, reply):
        fresh = found(request, Resource(content, etag))
        reply.__dict__.update(fresh.__dict__)
    return fault


def both(*faults):
    def fault(request, reply):
        for one in faults:
            one(request, reply)
    return fault
