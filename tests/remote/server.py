"""A web server of several origins that answers ranges as it should, or as a fault says.

    with Site() as site:                      # origins A and B: two ports of 127.0.0.1
        site.put("A", "/m.safetensors", Memory(data))
        site.fault("A GET /m", None, cut(100))  # the second request to it is cut short
        ... site.url("A", "/m.safetensors") ...
        site.log                              # every request of every origin, in order

A reply is built as it should be, then handed to the fault (faults.py), which changes it.
"""
import collections
import hashlib
import json
import os
import socket
import socketserver
import struct
import threading
import time
import urllib.parse

PIECE = 1 << 20
DATE = "Sat, 21 Nov 2026 12:00:00 GMT"


# ── Contents ──

class Memory:
    def __init__(self, data):
        self.data, self.size = memoryview(bytes(data)), len(data)

    def pieces(self, begin, end):
        for at in range(begin, end, PIECE):
            yield self.data[at:min(at + PIECE, end)]


class Repeated:
    """A head, then one block again and again up to a size: nothing of it is stored."""

    def __init__(self, head, block, size):
        self.head, self.size = head, size
        self.block = memoryview(bytes(block) * max(1, PIECE // len(block)))

    def pieces(self, begin, end):
        if begin < len(self.head):
            yield memoryview(self.head)[begin:min(len(self.head), end)]
            begin = min(len(self.head), end)
        while begin < end:
            at = (begin - len(self.head)) % len(self.block)
            piece = self.block[at:at + end - begin]
            yield piece
            begin += len(piece)


class Disk:
    def __init__(self, path):
        self.path, self.size = path, os.path.getsize(path)

    def pieces(self, begin, end):
        with open(self.path, "rb", buffering=0) as file:
            file.seek(begin)
            while begin < end:
                piece = file.read(min(PIECE, end - begin))
                if not piece:
                    return
                yield piece
                begin += len(piece)


def read(content, begin=0, end=None):
    return b"".join(content.pieces(begin, content.size if end is None else end))


class Resource:
    """What stands at a path. etag and modified: None for no such header."""

    def __init__(self, content, etag="", modified=DATE, kind="application/octet-stream",
                 headers=()):
        self.content, self.modified, self.kind = content, modified, kind
        self.etag = self.tag_of(content) if etag == "" else etag
        self.headers = list(headers)

    @staticmethod
    def tag_of(content):
        digest = hashlib.md5(b"%d " % content.size)
        if isinstance(content, Disk):
            digest.update(content.path.encode())
        else:
            digest.update(read(content, 0, min(content.size, PIECE)))
        return '"%s"' % digest.hexdigest()


# ── Requests and replies ──

class Request:
    def __init__(self, origin, method, target, headers, body):
        self.origin, self.method, self.target = origin, method, target
        self.headers, self.body = headers, body
        self.path, _, self.query = target.partition("?")
        self.time, self.status, self.sent = time.monotonic(), 0, 0

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(values) if values else None

    def range(self, size):
        """(begin, end) of the bytes asked for; None without a range, False if none is there."""
        text = self.header("Range")
        if not text or not text.startswith("bytes=") or "," in text:
            return None
        first, _, last = text[6:].partition("-")
        if first:
            begin, end = int(first), min(int(last) + 1 if last else size, size)
        else:
            begin, end = max(0, size - int(last)), size
        return (begin, end) if begin < end else False

    def line(self):
        return "%s %s %s" % (self.origin, self.method, self.target)

    def record(self):
        return {"origin": self.origin, "method": self.method, "target": self.target,
                "headers": self.headers, "status": self.status, "sent": self.sent}


class Reply:
    def __init__(self, status, headers=(), content=b"", begin=0, end=None):
        self.status, self.headers = status, list(headers)
        self.content = Memory(content) if isinstance(content, bytes) else content
        self.begin, self.end = begin, self.content.size if end is None else end
        self.length = self.end - begin  # announced; None: the end of the connection is the end
        self.version, self.chunked, self.close = "HTTP/1.1", False, False
        self.silent = False  # close afterwards without having said so
        self.before = b""   # sent first, as it is: answers of 1xx
        self.pause = 0      # seconds until the first byte
        self.rate = None    # bytes of the body a second
        self.cut = None     # bytes of the body after which the connection is lost
        self.reset = False  # by RST rather than FIN

    def set(self, name, value):
        """Replace a header; None: take it away."""
        self.headers = [pair for pair in self.headers if pair[0].lower() != name.lower()]
        if value is not None:
            self.headers.append((name, value))

    def get(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def body(self, data):
        self.content, self.begin, self.end, self.length = Memory(data), 0, len(data), len(data)

    def head(self):
        lines = ["%s %d %s" % (self.version, self.status, "Reason")]
        lines += ["%s: %s" % pair for pair in self.headers]
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self.length is not None and self.status not in (204, 304):
            lines.append("Content-Length: %d" % self.length)
        if self.close:
            lines.append("Connection: close")
        return self.before + ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def found(request, resource):
    """The reply of a server that does everything right."""
    size = resource.content.size
    headers = [("Content-Type", resource.kind), ("Accept-Ranges", "bytes"), *resource.headers]
    if resource.etag:
        headers.append(("ETag", resource.etag))
    if resource.modified:
        headers.append(("Last-Modified", resource.modified))
    match, none = request.header("If-Match"), request.header("If-None-Match")
    if match and match not in ("*", resource.etag):
        return Reply(412, headers)
    if none and none == resource.etag:
        return Reply(304, headers)
    asked = request.range(size)
    if asked is None:
        return Reply(200, headers, resource.content)
    if not asked:
        return Reply(416, [("Content-Range", "bytes */%d" % size)], b"no such range\n")
    begin, end = asked
    headers.append(("Content-Range", "bytes %d-%d/%d" % (begin, end - 1, size)))
    return Reply(206, headers, resource.content, begin, end)


# ── The server ──

class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def setup(self):
        if self.server.tls:
            self.request.settimeout(10)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            self.request.settimeout(None)
        super().setup()

    def handle(self):
        while self.exchange():
            pass

    def read_request(self):
        line = self.rfile.readline(65536).decode("latin-1").split()
        if len(line) != 3 or not line[2].startswith("HTTP/"):
            if line:
                self.request.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")
            return None
        headers = []
        while True:
            text = self.rfile.readline(65536).decode("latin-1")
            if text in ("\r\n", "\n", ""):
                break
            name, _, value = text.partition(":")
            headers.append((name, value.strip()))
        length = next((int(v) for n, v in headers if n.lower() == "content-length"), 0)
        return Request(self.server.origin, line[0], line[1], headers, self.rfile.read(length))

    def exchange(self):
        try:
            request = self.read_request()
            if request is None:
                return False
            with self.server.site.busy(request):
                reply = self.server.site.reply(request)
                return self.send(request, reply)
        except (BrokenPipeError, ConnectionResetError, ConnectionAbortedError, OSError):
            return False

    def send(self, request, reply):
        wait = self.server.site.wait
        if wait(reply.pause + self.server.site.delay):
            return False
        request.status = reply.status
        head = reply.head()
        end = reply.end if reply.cut is None else min(reply.end, reply.begin + reply.cut)
        if request.method == "HEAD":
            self.request.sendall(head)
        elif reply.rate:
            self.request.sendall(head)
            for at in range(reply.begin, end):
                self.request.sendall(read(reply.content, at, at + 1))
                request.sent += 1
                if wait(1 / reply.rate):
                    return False
        else:
            self.send_body(request, reply, head, end)
        if reply.reset:
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.request.detach())
        asked = (request.header("Connection") or "").lower()
        ends = reply.close or reply.silent or reply.cut is not None \
            or reply.version == "HTTP/1.0" or reply.length is None and not reply.chunked
        return not ends and asked != "close"

    def send_body(self, request, reply, head, end):
        if isinstance(reply.content, Disk) and not self.server.tls and not reply.chunked:
            self.request.sendall(head)
            with open(reply.content.path, "rb") as file:
                request.sent = self.request.sendfile(file, reply.begin, end - reply.begin) \
                    if end > reply.begin else 0
            return
        for piece in reply.content.pieces(reply.begin, end):
            request.sent += len(piece)
            if reply.chunked:
                piece = b"%x\r\n" % len(piece) + bytes(piece) + b"\r\n"
            self.request.sendall(head + bytes(piece) if head else piece)
            head = b""
        if reply.chunked and reply.cut is None:
            head += b"0\r\n\r\n"
        if head:
            self.request.sendall(head)


class Origin(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, site, name, tls, address):
        super().__init__((address, 0), Connection)
        self.site, self.origin, self.tls, self.accepted = site, name, tls, 0
        self.url = "%s://%s:%d" % ("https" if tls else "http", address, self.server_address[1])

    def verify_request(self, request, client_address):
        self.accepted += 1
        return True

    def handle_error(self, request, client_address):
        self.site.broken += 1  # a handshake that failed


class Site:
    """tls: {origin: ssl.SSLContext}; addresses: {origin: of this machine}."""

    def __init__(self, origins="AB", tls=None, addresses=None):
        self.lock, self.stopping = threading.Lock(), threading.Event()
        self.origins = {name: Origin(self, name, (tls or {}).get(name),
                                     (addresses or {}).get(name, "127.0.0.1"))
                        for name in origins}
        self.paths, self.functions, self.faults, self.constant = {}, [], [], []
        self.log, self.delay, self.broken = [], 0, 0
        self.now, self.most = 0, 0  # requests at once
        self.threads = [threading.Thread(target=origin.serve_forever, args=(0.02,), daemon=True)
                        for origin in self.origins.values()]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *args):
        self.stopping.set()
        for origin in self.origins.values():
            origin.shutdown()
            origin.server_close()
        for thread in self.threads:
            thread.join()

    def wait(self, seconds):
        """True: the site is closed."""
        return seconds > 0 and self.stopping.wait(seconds)

    def url(self, origin, path=""):
        return self.origins[origin].url + path

    def put(self, origin, path, what, **more):
        """what: contents, a resource, or a function of the request that returns a reply."""
        if not callable(what) and not isinstance(what, Resource):
            what = Resource(what if hasattr(what, "pieces") else Memory(what), **more)
        self.paths[origin, path] = what
        return self.url(origin, path)

    def beneath(self, origin, path, function):
        """All paths that begin so."""
        self.functions.append((origin, path, function))

    def fault(self, begins, *faults):
        """For the next requests whose "ORIGIN METHOD TARGET" begins so, one each, in turn."""
        self.faults += [(begins, fault) for fault in faults]

    def always(self, begins, fault):
        self.constant.append((begins, fault))

    def busy(self, request):
        return Busy(self, request)

    def reply(self, request):
        with self.lock:
            here = next((i for i, (begins, _) in enumerate(self.faults)
                         if request.line().startswith(begins)), None)
            faults = [] if here is None else [self.faults.pop(here)[1]]
        faults += [fault for begins, fault in self.constant if request.line().startswith(begins)]
        reply = self.honest(request)
        for fault in faults:
            if fault:
                fault(request, reply)
        return reply

    def honest(self, request):
        what = self.paths.get((request.origin, urllib.parse.unquote(request.path)))
        if what is None:
            what = next((function for origin, path, function in self.functions
                         if origin == request.origin and request.path.startswith(path)), None)
        if what is None:
            return Reply(404, [("Content-Type", "text/plain")], b"nothing here\n")
        return found(request, what) if isinstance(what, Resource) else what(request)

    # ── What was asked ──

    def asked(self, begins=""):
        return [request for request in self.log if request.line().startswith(begins)]

    def count(self, begins=""):
        return len(self.asked(begins))

    def sent(self, begins=""):
        return sum(request.sent for request in self.asked(begins))

    def dump(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump([request.record() for request in self.log], file, indent=1)


class Busy:
    def __init__(self, site, request):
        self.site, self.request = site, request

    def __enter__(self):
        with self.site.lock:
            self.site.log.append(self.request)
            self.site.now += 1
            self.site.most = max(self.site.most, self.site.now)

    def __exit__(self, *args):
        with self.site.lock:
            self.site.now -= 1


class Signed:
    """URLs that hold for some uses each: sign() makes one; afterwards they answer 403."""

    def __init__(self, site, origin, path, content, uses=None, secret="Signature=xyzzy"):
        self.site, self.origin, self.path, self.uses = site, origin, path, uses
        self.resource, self.secret = Resource(content), secret
        self.used, self.made = collections.Counter(), 0
        self.body = b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code>" \
                    b"<Message>Request has expired</Message></Error>"
        site.put(origin, path, self.answer)

    def sign(self):
        with self.site.lock:
            self.made += 1
            return "%s?Expires=1&%s-%d" % (self.site.url(self.origin, self.path), self.secret,
                                           self.made)

    def answer(self, request):
        with self.site.lock:
            self.used[request.query] += 1
            spent = self.uses is not None and self.used[request.query] > self.uses
        if spent or self.secret not in request.query:
            return Reply(403, [("Content-Type", "application/xml")], self.body)
        return found(request, self.resource)
