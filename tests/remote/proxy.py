"""A proxy: absolute URLs and CONNECT, all hosts by one address if asked."""
import http.client
import socket
import socketserver
import threading
import urllib.parse


class Tunnel(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline(65536).decode("latin-1").split()
        if len(line) != 3:
            return
        headers = http.client.parse_headers(self.rfile)
        proxy = self.server
        proxy.log.append((line[0], line[1], dict(headers)))
        if proxy.refusal:
            self.request.sendall(("HTTP/1.1 %d No\r\nContent-Length: 0\r\n"
                                  "Connection: close\r\n\r\n" % proxy.refusal).encode())
            return
        if line[0] == "CONNECT":
            host, _, port = line[1].rpartition(":")
            with socket.create_connection(proxy.of(host, int(port))) as other:
                self.request.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
                self.pump(other)
            return
        url = urllib.parse.urlsplit(line[1])
        with socket.create_connection(proxy.of(url.hostname, url.port or 80)) as other:
            text = ["%s %s HTTP/1.1" % (line[0], url.path + ("?" + url.query if url.query else ""))]
            text += ["%s: %s" % pair for pair in headers.items()
                     if not pair[0].lower().startswith(("proxy-", "connection"))]
            other.sendall(("\r\n".join(text) + "\r\nConnection: close\r\n\r\n").encode("latin-1"))
            while True:
                data = other.recv(1 << 16)
                if not data:
                    return
                self.request.sendall(data)

    def pump(self, other):
        back = threading.Thread(target=self.copy, args=(other, self.request), daemon=True)
        back.start()
        self.copy(self.request, other)
        back.join()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Proxy(socketserver.ThreadingTCPServer):
    """hosts: {name: (address, port)} for those that no resolver knows."""
    daemon_threads = True

    def __init__(self, hosts=None, refusal=0):
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.hosts, self.refusal, self.log = hosts or {}, refusal, []
        self.url = "http://127.0.0.1:%d" % self.server_address[1]

    def of(self, host, port):
        return self.hosts.get(host, (host, port))

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *args):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass
