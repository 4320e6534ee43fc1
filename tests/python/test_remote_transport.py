"""How URLs are fetched: TLS, proxies, limits, addresses and interrupts, by libcurl and by Python's
own modules."""
import contextlib
import os
import shutil
import socket
import struct
import sys
import threading
import time

import numpy as np
import pytest

from alarms import interrupt
import libsafetensors
import libsafetensors.numpy
from libsafetensors import _remote, remote

import certificates
import faults
import proxy as proxies
import server

PASSWORD = "xyzzypassword"


def content(count=64):
    return libsafetensors.numpy.save({"t%03d" % i: np.full(4096, i, "f4") for i in range(count)})


@pytest.fixture
def url(site, transport):
    return site.put("A", "/m.safetensors", content())


def failure(url, **options):
    """What opening it raises; options: of a Remote without retries."""
    with remote.Remote(**{"retries": 0, **options}) as mine:
        before = remote.use(mine)
        try:
            with pytest.raises(Exception) as error:
                libsafetensors.open(url)
        finally:
            remote.use(before)
    return error.value


# ── TLS ──

@pytest.fixture(scope="session")
def made(tmp_path_factory):
    if not shutil.which("openssl"):
        pytest.skip("the program openssl is missing")
    return certificates.Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secure(made, transport, monkeypatch):
    """Makes a site by https with a certificate of that name, and a URL of it."""
    monkeypatch.setenv("CURL_CA_BUNDLE", made.path("ca.pem"))
    with contextlib.ExitStack() as stack:
        def open_site(name):
            site = stack.enter_context(server.Site("S", tls={"S": made.context(name)}))
            return site, site.put("S", "/m.safetensors", content())
        yield open_site


def test_tls(secure, monkeypatch):
    site, url = secure("good")
    wanted = libsafetensors.open(content()).numpy()
    found = libsafetensors.numpy.load_file(url)
    assert url.startswith("https://") and all(np.array_equal(found[n], wanted[n]) for n in wanted)
    assert site.origins["S"].accepted <= 1 + site.most  # connections are kept
    remote.use(None)
    monkeypatch.delenv("CURL_CA_BUNDLE")  # the system knows no such authority
    assert failure(url).code == "remote_tls"


@pytest.mark.parametrize("name", ["unknown", "wrong", "expired"])
def test_certificates_that_are_not_trusted(secure, name):
    site, url = secure(name)
    error = failure(url, retries=3)
    assert isinstance(error, OSError) and error.code == "remote_tls" and "certif" in str(error)
    assert site.log == [] and site.origins["S"].accepted == 1  # not tried again


def test_a_server_without_tls(secure, url):
    error = failure(url.replace("http://", "https://"), retries=3)
    assert error.code == "remote_tls"


def test_a_bundle_that_is_missing(secure, monkeypatch):
    site, url = secure("good")
    monkeypatch.setenv("CURL_CA_BUNDLE", "/none.pem")
    error = failure(url, retries=3)
    assert error.code == "remote_tls" and "/none.pem" in str(error)


# ── Proxies ──

def test_a_host_that_only_the_proxy_knows(site, url, monkeypatch):
    there = "http://model.test/m.safetensors"
    with proxies.Proxy({"model.test": site.origins["A"].server_address}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.replace("//", "//user:%s@" % PASSWORD))
        assert libsafetensors.open(there).keys()
        assert {(method, name) for method, name, _ in proxy.log} == {("GET", there)}
        headers = {name.lower() for name in proxy.log[0][2]}
        assert "proxy-authorization" in headers
        count = len(proxy.log)
        monkeypatch.setenv("NO_PROXY", "model.test")
        error = failure(there)
        assert error.code == "remote_network" and PASSWORD not in str(error)
        monkeypatch.delenv("NO_PROXY")
        assert failure(there, proxy="").code == "remote_network"
        assert len(proxy.log) == count
    assert not any(request.header("Proxy-Authorization") for request in site.log)


def test_no_proxy(site, url, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "other.test, 127.0.0.1")
    assert libsafetensors.open(url).keys()


def test_a_tunnel(secure, monkeypatch):
    site, url = secure("good")
    host, port = site.origins["S"].server_address
    there = "https://model.test:%d/m.safetensors" % port
    with proxies.Proxy({"model.test": (host, port)}) as proxy:
        monkeypatch.setenv("https_proxy", proxy.url.replace("//", "//user:%s@" % PASSWORD))
        assert libsafetensors.open(there).keys()
        assert {(method, name) for method, name, _ in proxy.log} == {
            ("CONNECT", "model.test:%d" % port)}
        assert "proxy-authorization" in {name.lower() for name in proxy.log[0][2]}
    assert not any(request.header("Proxy-Authorization") for request in site.log)


@pytest.mark.parametrize("status", [403, 407])
def test_a_proxy_that_refuses(transport, status):
    with proxies.Proxy(refusal=status) as proxy:
        error = failure("https://model.test/m.safetensors", proxy=proxy.url, retries=3)
        assert error.code == "remote_status" and "refused" in str(error)
        assert str(status) in str(error) and proxy.url[7:] in str(error)
        assert len(proxy.log) == 1  # not tried again


def test_a_proxy_that_is_gone(url):
    error = failure(url, proxy="http://user:%s@127.0.0.1:1" % PASSWORD)
    assert error.code == "remote_network" and "proxy" in str(error)
    assert "127.0.0.1:1" in str(error) and PASSWORD not in str(error)


# ── Limits ──

def test_many_headers(site, url):
    site.always("A GET", faults.many_headers(60000))
    assert libsafetensors.open(url).keys()
    remote.use(None)
    site.constant.clear()
    site.always("A GET", faults.many_headers(2 << 20))
    assert failure(url, retries=3).code == "remote_status"
    assert site.count() == 2  # not tried again


@contextlib.contextmanager
def flood(head, piece):
    """A server that sends head, then pieces without end; yields its URL."""
    def answer(listener):
        while True:
            try:
                plug = listener.accept()[0]
            except OSError:
                return
            with plug, contextlib.suppress(OSError):
                plug.recv(65536)
                plug.sendall(head)
                while True:
                    plug.sendall(piece * 1000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,), daemon=True)
        thread.start()
        yield "http://127.0.0.1:%d/m.safetensors" % listener.getsockname()[1]
        with contextlib.suppress(OSError):  # Windows: it is not connected
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


CHUNKED = (b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-9/10\r\n"
           b"Transfer-Encoding: chunked\r\n\r\n")


@pytest.mark.parametrize("head, piece", [
    (CHUNKED + b"a\r\n0123456789\r\n0\r\n", b"X-Trailer: value\r\n"),
    (CHUNKED + b"a;", b"extension=1;"), (b"", b"no HTTP at all\r\n"),
    (b"HTTP/1.1 206 Partial\r\nX: ", b"0123456789")])
def test_answers_without_end(transport, head, piece):
    with flood(head, piece) as url:
        begun = time.monotonic()
        error = failure(url, timeout=5)
        assert isinstance(error, OSError) or error.code == "header_too_short"
        assert time.monotonic() - begun < 10


# ── Interim answers ──

@contextlib.contextmanager
def said(before, behind):
    """A server of one-tensor files, whose names are their values: it says more than the answer;
    yields its address."""
    def file_of(value):
        header = b'{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}   '
        return struct.pack("<Q", len(header)) + header + bytes([value])

    def serve(plug):
        with plug, contextlib.suppress(OSError):
            while request := plug.recv(65536):
                whole = file_of(int(request.split()[1][1:]))
                head = ("HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-%d/%d\r\n"
                        "Content-Length: %d\r\n\r\n" % (len(whole) - 1, len(whole), len(whole)))
                plug.sendall(before + head.encode() + whole + behind)

    def answer(listener):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        yield "http://127.0.0.1:%d/" % listener.getsockname()[1]
        with contextlib.suppress(OSError):  # Windows: it is not connected
            listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n",
                                    b"HTTP/1.1 102 Processing\r\n\r\n" * 3])
@pytest.mark.parametrize("behind", [b"", b"HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-0/1"
                                         b"\r\nContent-Length: 1\r\n\r\nx"])
def test_interim_answers(transport, before, behind):
    """Each file has its own bytes, whatever the server says around them."""
    with said(before, behind) as address:
        for value in range(1, 6):
            with libsafetensors.open(address + str(value)) as file:
                assert bytes(file["t"]) == bytes([value])


# ── Addresses ──

def test_a_name_of_a_private_address(site, url, monkeypatch):
    """What a name resolves to is what counts, for Python's modules; tests/remote has libcurl's."""
    host, port = site.origins["A"].server_address
    there = "http://model.test:%d/m.safetensors" % port
    monkeypatch.setenv("LIBSAFETENSORS_TRANSPORT", "python")
    resolve = socket.getaddrinfo
    asked = []

    def answer(name, *args, **kwargs):
        asked.append(name)
        return resolve(host if name == "model.test" else name, *args, **kwargs)
    monkeypatch.setattr(_remote.socket, "getaddrinfo", answer)
    remote.use(None)
    assert libsafetensors.open(there).keys() and "model.test" in asked
    count = site.count()
    assert failure(there, public_only=True, retries=3).code == "remote_private"
    assert site.count() == count
    if shutil.which("getent"):
        assert failure(url, public_only=True).code == "remote_private"


# ── Interrupts ──

@contextlib.contextmanager
def interrupted_within(seconds):
    """Ctrl-C after one second ends it so soon, and leaves no thread. libcurl, while it connects,
    asks only once a second whether to go on."""
    before, sent = threads(), []

    def send():
        sent.append(time.monotonic())
        interrupt()
    timer = threading.Timer(1, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - sent[0] < seconds
    timer.join()
    until = time.monotonic() + 5  # threads of the pool end when there was no work for a second
    while threads() > before:
        assert time.monotonic() < until
        time.sleep(0.05)


def threads():
    """Of this process, without those of servers and tests, which Python began."""
    if not sys.platform.startswith("linux"):
        return 0
    return len(os.listdir("/proc/self/task")) - threading.active_count()


def large():
    return libsafetensors.numpy.save({"t": np.zeros(16 << 20, "f4")})


@pytest.mark.parametrize("change", [faults.pause(60), faults.drip(2.0)])
@pytest.mark.parametrize("requests", [
    pytest.param(0, marks=pytest.mark.long), 1, pytest.param(3, marks=pytest.mark.long)])
@pytest.mark.few(1)
def test_ctrl_c(site, transport, change, requests):
    """While the head is awaited, and pieces of tensors on several threads."""
    url = site.put("A", "/m.safetensors", large())
    site.always("A GET", lambda request, reply: site.count() > requests
                and change(request, reply))
    with interrupted_within(2):
        libsafetensors.numpy.load_file(url)


class Slow(proxies.Proxy):
    """Answers one CONNECT, and leaves the others without an answer."""

    def of(self, host, port):
        if len(self.log) > 1:
            time.sleep(8)
        return super().of(host, port)


@pytest.mark.few(1)
def test_ctrl_c_while_threads_connect(secure):
    site, _ = secure("good")
    url = site.put("S", "/m.safetensors", large())
    with Slow() as proxy, remote.Remote(proxy=proxy.url) as mine:
        remote.use(mine)
        with interrupted_within(2):
            libsafetensors.numpy.load_file(url)
        remote.use(None)
        assert len(proxy.log) > 2


@pytest.mark.few(1)
def test_ctrl_c_while_threads_shake_hands(secure, made):
    """TLS begins with a server that says nothing."""
    site, _ = secure("good")
    url = site.put("S", "/m.safetensors", large())
    context, silent = made.context("good"), threading.Event()

    class Once:
        taken = 0

        def wrap_socket(self, plug, server_side):
            Once.taken += 1
            if Once.taken > 1:
                silent.wait(8)
            return context.wrap_socket(plug, server_side=server_side)
    site.origins["S"].tls = Once()
    with interrupted_within(2):
        libsafetensors.numpy.load_file(url)
    silent.set()
    assert Once.taken > 2
