"""HTTP by http.client, for systems without libcurl. The library asks for one exchange at a time on
each of its threads, and does all that is above one: ranges, redirects, retries, credentials
(safetensors_remote.h, "Transport"). LIBSAFETENSORS_TRANSPORT=python takes it in any case."""
from __future__ import annotations

import errno
import http.client
import io
import ipaddress
import os
import selectors
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Callable, TypeVar
from urllib.parse import unquote, urlsplit

from . import _core

__all__ = ["Transport"]

_PIECE = 256 << 10     # bytes given to the library at once
_HEAD = 320 << 10      # bytes of heads, those of 1xx too, with what was read of the body
_IDLE = 16             # connections kept for each place
_IDLE_SECONDS = 30.0   # and how long: servers close them after a minute or so
_PORTS = {"http": 80, "https": 443}


class _Failed(Exception):
    """code: of the library."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def _reason(error: BaseException) -> str:
    """Never what a server or a URL said, only what went wrong."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return str(error.reason or "the connection could not be secured")
    if isinstance(error, TimeoutError):
        return "nothing arrived in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__


# As src/remote/http/host.c has them: ipaddress calls NAT64 and some others global.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL = ipaddress.ip_network("2000::/3")
_SPECIAL = [ipaddress.ip_network(text) for text in (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]


def _is_public(text: str) -> bool:
    address: Any = ipaddress.ip_address(text.partition("%")[0])
    if address.version == 6:
        inner = address.ipv4_mapped
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xffffffff)
        if inner is None and address not in _GLOBAL:
            return False
        address = inner or address
    return not any(address in block for block in _SPECIAL)


def _addresses(host: str, port: int, public_only: bool) -> list[Any]:
    """What a name resolves to. _Failed if one of it is not public, and that is asked for."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if public_only and not all(_is_public(str(place[0])) for *_, place in found):
        raise _Failed("remote_private", "expected a public address, found one that is not")
    return found


# What may wait does so in short steps, between which the library may end the exchange.
_STEP = 0.25
_T = TypeVar("_T")


def _until(end: float, exchange: _Exchange, plug: socket.socket, call: Callable[[], _T]) -> _T:
    """What a call of a method of the socket returns; TimeoutError."""
    while True:
        plug.settimeout(max(0.001, min(_STEP, end - time.monotonic())))
        try:
            return call()
        except TimeoutError:
            exchange.check()
            if time.monotonic() >= end:
                raise


def _text_of(error: int) -> str:
    """Those of Windows's sockets are none of its C library's."""
    if os.name != "nt":
        return os.strerror(error)
    import ctypes
    text: str = ctypes.FormatError(error)  # type: ignore[attr-defined,unused-ignore]
    return text


def _connect_to(place: Any, plug: socket.socket, end: float, exchange: _Exchange) -> None:
    plug.setblocking(False)
    error = plug.connect_ex(place)
    if error in (errno.EINPROGRESS, errno.EWOULDBLOCK):
        with selectors.DefaultSelector() as ready:
            ready.register(plug, selectors.EVENT_WRITE)
            while not ready.select(max(0.001, min(_STEP, end - time.monotonic()))):
                exchange.check()
                if time.monotonic() >= end:
                    raise TimeoutError
        error = plug.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, _text_of(error))
    plug.settimeout(exchange.stall)


def _connect(host: str, port: int, end: float, public_only: bool,
             exchange: _Exchange) -> socket.socket:
    """A connection to the very address that was looked at."""
    last: OSError | None = None
    for family, kind, protocol, _, place in _addresses(host, port, public_only):
        plug = socket.socket(family, kind, protocol)
        try:
            _connect_to(place, plug, end, exchange)
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return plug
        except OSError as error:
            plug.close()
            last = error
        except BaseException:
            plug.close()
            raise
    raise last or OSError("no address")


class _Connection(http.client.HTTPConnection):
    """To a server, perhaps through a proxy; https through a tunnel."""

    def __init__(self, scheme: str, host: str, port: int, context: ssl.SSLContext | None,
                 proxy: Any, public_only: bool, connect_seconds: float) -> None:
        super().__init__(host, port)
        self.name, self.context, self.proxy = host, context, proxy
        self.public_only, self.seconds, self.used = public_only, connect_seconds, 0.0
        self.default_port = _PORTS[scheme]

    def begin(self, exchange: _Exchange) -> None:
        end = time.monotonic() + self.seconds
        if self.proxy is None:
            plug = _connect(self.name, self.port, end, self.public_only, exchange)
        else:
            plug = self._connect_to_proxy(end, exchange)
        try:
            if self.proxy is not None and self.context is not None:
                self._tunnel_to(plug, end, exchange)
            if self.context is not None:
                plug = self.context.wrap_socket(plug, server_hostname=self.name,
                                                do_handshake_on_connect=False)
                _until(end, exchange, plug, plug.do_handshake)
        except BaseException:
            plug.close()
            raise
        self.sock = plug

    def is_said(self) -> bool:
        """Whether something has come, or the end, that nobody has asked for."""
        if isinstance(self.sock, ssl.SSLSocket):  # tickets of a session come at any time
            return self.sock.pending() > 0
        with selectors.DefaultSelector() as ready:
            ready.register(self.sock, selectors.EVENT_READ)
            return bool(ready.select(0))

    def _proxy_place(self) -> str:
        return "%s:%d" % (self.proxy.hostname, self.proxy.port or _PORTS["http"])

    def _connect_to_proxy(self, end: float, exchange: _Exchange) -> socket.socket:
        try:
            plug = _connect(self.proxy.hostname, self.proxy.port or _PORTS["http"], end, False,
                            exchange)
        except OSError as error:
            raise _Failed("remote_network", "no connection to the proxy %s: %s" % (
                self._proxy_place(), _reason(error))) from None
        if self.proxy.scheme != "https":
            return plug
        try:
            if self.context is not None:
                raise _Failed("remote_transport", "expected a proxy of http for a URL of https, "
                              "found one of https: Python's modules have no TLS in TLS")
            plug = ssl.create_default_context().wrap_socket(
                plug, server_hostname=self.proxy.hostname, do_handshake_on_connect=False)
            _until(end, exchange, plug, plug.do_handshake)
        except BaseException:
            plug.close()
            raise
        return plug

    def _tunnel_to(self, plug: socket.socket, end: float, exchange: _Exchange) -> None:
        place = "[%s]:%d" if ":" in self.name else "%s:%d"
        lines = ["CONNECT %s HTTP/1.1" % (place % (self.name, self.port)),
                 "Host: %s" % (place % (self.name, self.port))]
        lines += ["%s: %s" % pair for pair in _proxy_headers(self.proxy)]
        plug.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            byte = _until(end, exchange, plug, lambda: plug.recv(1))
            if not byte or len(answer) > 65536:
                raise _Failed("remote_network", "the proxy ended the connection")
            answer += byte
        words = answer.split(None, 2)
        status = words[1].decode("latin-1") if len(words) > 1 and words[1].isdigit() else "none"
        if status[0] != "2":
            code = "remote_status" if status[0] in "34" else "remote_network"
            raise _Failed(code, "the proxy %s refused the connection with status %s%s" % (
                self._proxy_place(), status[:3],
                " (it wants a user and a password)" if status == "407" else ""))


def _proxy_headers(proxy: Any) -> list[tuple[str, str]]:
    if not proxy.username:
        return []
    pair = "%s:%s" % (unquote(proxy.username), unquote(proxy.password or ""))
    return [("proxy-authorization", "Basic " + b64encode(pair.encode()).decode("ascii"))]


class _Exchange:
    """One request on its way."""

    def __init__(self, handle: Any, method: str, url: str, headers: list[tuple[str, str]],
                 body: bytes, proxy: str | None, ca_file: str | None, public_only: bool,
                 connect: float, stall: float, total: float) -> None:
        self.handle, self.method, self.url, self.body = handle, method, url, body
        self.public_only, self.connect, self.stall = public_only, connect, stall
        self.parts = urlsplit(url)
        self.proxy = urlsplit(proxy if "://" in proxy else "http://" + proxy) if proxy else None
        self.ca_file, self.end = ca_file, time.monotonic() + total if total else None
        self.headers = headers
        self.begun = False  # something of the answer has arrived
        self.left = _HEAD   # bytes that may arrive until the next piece of the body
        self.checked = 0.0

    def key(self) -> tuple[Any, ...]:
        return (self.parts.scheme, self.parts.hostname, self.parts.port, self.public_only,
                self.ca_file, self.proxy and self.proxy.geturl())

    def target(self) -> str:
        """As it is spelt: urlsplit would drop an empty query."""
        rest = self.url.partition("://")[2]
        cut = min((rest.find(mark) for mark in "/?" if mark in rest), default=len(rest))
        path = rest[cut:].partition("#")[0]
        path = path if path.startswith("/") else "/" + path
        if self.proxy is None or self.parts.scheme == "https":
            return path
        return "http://%s%s" % (self.parts.netloc.rpartition("@")[2], path)

    def check(self) -> None:
        self.checked = time.monotonic()
        if self.end is not None and self.checked > self.end:
            raise _Failed("remote_network", "the time for the whole answer is over")
        if not _core.transport_go_on(self.handle):
            raise _Failed("cancelled", "the exchange was ended")

    def take(self, count: int) -> None:
        """So many bytes have arrived."""
        self.begun = self.begun or count > 0
        self.left -= count
        if self.left < 0:
            raise _Failed("remote_status", "expected HTTP headers of at most %d bytes, found more"
                          % _HEAD)
        if time.monotonic() - self.checked > _STEP:
            self.check()


class _Steps(io.RawIOBase):
    """Reads of a socket that wait in steps, up to the time without a byte."""

    def __init__(self, plug: socket.socket, exchange: _Exchange) -> None:
        super().__init__()
        self.plug, self.exchange = plug, exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        end = time.monotonic() + self.exchange.stall
        count = _until(end, self.exchange, self.plug, lambda: self.plug.recv_into(buffer))
        self.exchange.take(count)
        return count


class _Response(http.client.HTTPResponse):
    def __init__(self, plug: socket.socket, exchange: _Exchange,
                 interim: _Response | None = None) -> None:
        super().__init__(plug, method=exchange.method)
        self.fp.close()
        if interim is None:
            self.fp = io.BufferedReader(_Steps(plug, exchange), 65536)
        else:  # what was read ahead of the answer is there
            self.fp, interim.fp = interim.fp, None  # type: ignore[assignment]


class Transport:
    """Connections by where they lead. Any number of threads may send."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[Any, ...], list[_Connection]] = {}
        self._contexts: dict[str | None, ssl.SSLContext] = {}

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for kept in idle.values():
            for connection in kept:
                connection.close()

    def _context(self, ca_file: str | None) -> ssl.SSLContext:
        with self._lock:
            if ca_file not in self._contexts:
                try:
                    self._contexts[ca_file] = ssl.create_default_context(cafile=ca_file)
                except OSError:  # ssl.SSLError is one
                    raise _Failed("remote_tls", "expected certificate authorities in \"%s\", "
                                  "found none that can be read" % ca_file) from None
            return self._contexts[ca_file]

    def _take(self, exchange: _Exchange, fresh: bool) -> _Connection:
        with self._lock:
            kept = self._idle.get(exchange.key(), [])
            while kept and not fresh:
                connection = kept.pop()
                if time.monotonic() - connection.used < _IDLE_SECONDS and not connection.is_said():
                    return connection
                connection.close()
        parts = exchange.parts
        if parts.scheme not in _PORTS or not parts.hostname:
            raise _Failed("remote_transport", "expected http or https")
        context = self._context(exchange.ca_file) if parts.scheme == "https" else None
        return _Connection(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme],
                           context, exchange.proxy, exchange.public_only, exchange.connect)

    def _keep(self, exchange: _Exchange, connection: _Connection) -> None:
        connection.used = time.monotonic()
        with self._lock:
            kept = self._idle.setdefault(exchange.key(), [])
            if len(kept) < _IDLE:
                kept.append(connection)
                return
        connection.close()

    def send(self, handle: Any, method: str, url: str, headers: Sequence[tuple[str, str]],
             body: bytes, *how: Any) -> tuple[int, str] | tuple[int, str, int]:
        """One exchange; returns the library's code, a message and, if it is of use, the errno."""
        exchange = _Exchange(handle, method, url, list(headers), body, *how)
        try:
            exchange.check()
            self._exchange(exchange)
        except _Failed as error:
            return _core.CODES[error.code][0], str(error)
        except ssl.SSLCertVerificationError as error:
            return _core.CODES["remote_tls"][0], _reason(error)
        except ssl.SSLError as error:
            code = "remote_network" if exchange.begun else "remote_tls"
            return _core.CODES[code][0], _reason(error)
        except ConnectionRefusedError as error:
            return _core.CODES["remote_network"][0], _reason(error), error.errno or 0
        except (OSError, http.client.IncompleteRead, ValueError) as error:
            return _core.CODES["remote_network"][0], _reason(error)
        except http.client.HTTPException:
            return (_core.CODES["remote_status"][0],
                    "expected an answer of HTTP with at most 100 headers, found something else")
        return 0, ""

    def _exchange(self, exchange: _Exchange) -> None:
        connection = self._take(exchange, False)
        try:
            old = connection.sock is not None
            try:
                response = self._ask(connection, exchange)
            except (ConnectionError, http.client.HTTPException, ssl.SSLError):
                # The server has closed a connection that was kept.
                if not old or exchange.begun:
                    raise
                connection.close()
                connection = self._take(exchange, True)
                response = self._ask(connection, exchange)
            whole = self._answer(response, exchange)
            if whole and not response.will_close and response.status != 101:
                self._keep(exchange, connection)
                connection = None  # type: ignore[assignment]
        finally:
            if connection is not None:
                connection.close()

    def _ask(self, connection: _Connection, exchange: _Exchange) -> http.client.HTTPResponse:
        if connection.sock is None:
            connection.begin(exchange)
        connection.sock.settimeout(exchange.stall)
        parts, lines = exchange.parts, []
        host = parts.netloc.rpartition("@")[2]
        lines.append("%s %s HTTP/1.1" % (exchange.method, exchange.target()))
        lines.append("host: " + host)
        lines += ["%s: %s" % pair for pair in exchange.headers]
        if exchange.proxy is not None and parts.scheme == "http":
            lines += ["%s: %s" % pair for pair in _proxy_headers(exchange.proxy)]
        if exchange.method == "POST":
            lines.append("content-length: %d" % len(exchange.body))
        connection.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
                                + exchange.body)
        response = _Response(connection.sock, exchange)
        response.begin()
        while 100 <= response.status < 200 and response.status != 101:
            response = _Response(connection.sock, exchange, response)  # http.client skips 100 only
            response.begin()
        return response

    def _answer(self, response: http.client.HTTPResponse, exchange: _Exchange) -> bool:
        """Hands it over; whether all of it was read."""
        lines: list[bytes] = []
        for name, value in response.headers.raw_items():
            lines += (name.lower().encode("latin-1"),
                      str(value).strip().encode("latin-1", "replace"))
        wanted = _core.transport_head(exchange.handle, response.status, tuple(lines))
        if not wanted:
            return response.length == 0
        while True:
            exchange.check()
            exchange.left = _PIECE + _HEAD  # lines of chunks and trailers, too
            piece = response.read1(_PIECE) if response.chunked else response.read(_PIECE)
            if not piece:
                break
            if not _core.transport_body(exchange.handle, piece):
                return response.length == 0
        if response.length:
            raise _Failed("remote_network", "the connection was lost before the end of the answer")
        return True
