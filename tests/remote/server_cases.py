"""Do the faults that a reader should survive happen at all? Asked over a plain socket."""
import socket
import time

from faults import (became, chunked, cut, drip, hang_up, header, http_1_0, informed, many_headers,
                    pause, shifted, short, status, until_close, whole, with_200)
from server import Memory, Repeated, Signed, read
from world import holds, quick, same


def ask(w, text="Range: bytes=5000-5009\r\n", path="/m"):
    """Status lines and headers, and the body until the connection ends."""
    with socket.create_connection(w.site.origins["A"].server_address, 5) as one:
        one.sendall(("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n" % (path, text))
                    .encode())
        data = b""
        try:
            while piece := one.recv(1 << 16):
                data += piece
        except ConnectionResetError:
            data += b"RESET"
    while data.startswith(b"HTTP/1.1 1"):
        data = data.partition(b"\r\n\r\n")[2]
    head, _, body = data.partition(b"\r\n\r\n")
    return head.decode("latin-1"), body


@quick
def faults_happen(w):
    w.any_header = True
    data = bytes(range(256)) * 40
    w.site.put("A", "/m", data)
    want = data[5000:5010]
    for fault, line, says, body in (
            (None, "HTTP/1.1 206", "Content-Range: bytes 5000-5009/10240", want),
            (whole, "HTTP/1.1 200", "Content-Length: 10240", data),
            (with_200, "HTTP/1.1 200", "Content-Range: bytes 5000-5009/10240", want),
            (shifted(-4096), "HTTP/1.1 206", "bytes 904-5009/10240", data[904:5010]),
            (shifted(1), "HTTP/1.1 206", "bytes 5001-5009/10240", data[5001:5010]),
            (short(4), "HTTP/1.1 206", "Content-Length: 6", want[:6]),
            (cut(4), "HTTP/1.1 206", "Content-Length: 10", want[:4]),
            (cut(4, True), "HTTP/1.1 206", "Content-Length: 10", want[:4] + b"RESET"),
            (hang_up, "", "", b""),
            (status(503), "HTTP/1.1 503", "Content-Length: 5", b"busy\n"),
            (many_headers(5000), "HTTP/1.1 206", "X-Field-4: v", want),
            (http_1_0, "HTTP/1.0 206", "Connection: close", want),
            (until_close, "HTTP/1.1 206", "Connection: close", want),
            (chunked, "HTTP/1.1 206", "chunked", b"a\r\n" + want + b"\r\n0\r\n\r\n"),
            (informed, "HTTP/1.1 206", "Content-Length: 10", want),
            (header(("ETag", None)), "HTTP/1.1 206", "", want),
            (drip(20), "HTTP/1.1 206", "Content-Length: 10", want),
            (pause(0.2), "HTTP/1.1 206", "Content-Length: 10", want),
            (became(Memory(b"n" * 9999)), "HTTP/1.1 206", '"another"', b"n" * 10)):
        w.site.fault("A GET /m", fault)
        begin = time.monotonic()
        head, found = ask(w)
        what = getattr(fault, "__qualname__", "no fault")
        holds(head.startswith(line) and says in head, "%s: %s" % (what, head))
        same(found, body, what)
        if "drip" in what or "pause" in what:
            holds(time.monotonic() - begin > 0.19, what + " takes its time")
        if "Content-Length" not in says or fault is None:
            same("Content-Length" in head, fault not in (hang_up, until_close, chunked),
                 what + ": Content-Length")


@quick
def conditions_hold(w):
    w.any_header = True
    w.site.put("A", "/m", b"0123456789", etag='"e"')
    for text, line in (("If-Match: \"e\"\r\n", "200"), ("If-Match: \"f\"\r\n", "412"),
                       ("If-None-Match: \"e\"\r\n", "304"), ("Range: bytes=9-20\r\n", "206"),
                       ("Range: bytes=10-20\r\n", "416"), ("Range: bytes=-3\r\n", "206")):
        same(ask(w, text)[0].split()[1], line, text)
    signed = Signed(w.site, "A", "/s", Memory(b"abc"), 2)
    url = signed.sign()
    path = url[url.index("/s"):]
    same([ask(w, "", path)[0].split()[1] for _ in range(3)], ["200", "200", "403"])
    same(ask(w, "", "/s")[0].split()[1], "403", "without a signature")
    large = Repeated(b"head", b"0123456789", 10 ** 10)
    w.site.put("A", "/large", large)
    same(ask(w, "Range: bytes=5000000004-5000000013\r\n", "/large")[1], b"0123456789")
    same(read(large, 2, 8), b"ad0123")
