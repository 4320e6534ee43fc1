"""nginx in the place of our own server: true ranges, gzip, HTTP/2, TLS."""
import contextlib
import os
import shutil
import socket
import subprocess
import time

import models
from certificates import Certificates
from matrix import SLICE, all_three
from world import CASES, HEAD, PASSWORD, ROOT, Wrong, at_most, holds, same

MINE = []  # cases that need nginx


def case(function):
    MINE.append(function)
    CASES.append((function, False))
    return function


def program():
    """The path of nginx, or None: tools/nginx.sh has it unpacked where it is not installed."""
    found = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if not found:
        made = subprocess.run([os.path.join(ROOT, "tools", "nginx.sh")], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
        found = made.stdout.strip() if made.returncode == 0 else None
    return found


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


CONFIGURATION = """
daemon off;
master_process off;
worker_processes 1;
error_log %(folder)s/error.log;
pid %(folder)s/pid;
events { worker_connections 512; }
http {
    log_format asked '$server_port|$server_protocol|$request_method|$request_uri|$status|'
                     '$http_range|$http_accept_encoding|$http_authorization|$body_bytes_sent';
    access_log %(folder)s/access.log asked;
    client_body_temp_path %(folder)s/t1; proxy_temp_path %(folder)s/t2;
    fastcgi_temp_path %(folder)s/t3; uwsgi_temp_path %(folder)s/t4; scgi_temp_path %(folder)s/t5;
    sendfile on; tcp_nodelay on; keepalive_requests 100000;
    gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;
    root %(root)s;
    server { listen 127.0.0.1:%(plain)d backlog=256;
             location /whole/ { alias %(root)s/; max_ranges 0; }
             location /users/ { alias %(root)s/; auth_basic "x"; auth_basic_user_file %(users)s; }
             location /moved/ { return 302 /m.safetensors; }
             location /zipped/ { alias %(root)s/; gzip_static always; } }
    %(secure)s
}
"""
SECURE = """
    server { listen 127.0.0.1:%(port)d ssl http2; ssl_certificate %(name)s.pem;
             ssl_certificate_key %(name)s.key; }
"""


class Nginx:
    """urls: plain, and if there are certificates good, expired, wrong and unknown."""

    def __init__(self, folder, root, certificates=None):
        self.folder, names = folder, ["plain"]
        os.makedirs(folder, exist_ok=True)
        if certificates:
            names += ["good", "expired", "wrong", "unknown"]
        self.ports = {name: free_port() for name in names}
        self.urls = {name: "http%s://127.0.0.1:%d" % ("s" if name != "plain" else "", port)
                     for name, port in self.ports.items()}
        secure = "".join(SECURE % {"port": self.ports[name], "name": certificates.path(name)}
                         for name in names[1:])
        users = models.write(folder, "users", ("u:{PLAIN}%s\n" % PASSWORD).encode())
        text = CONFIGURATION % {"folder": folder, "root": root, "plain": self.ports["plain"],
                                "secure": secure, "users": users}
        self.configuration = models.write(folder, "nginx.conf", text.encode())

    def __enter__(self):
        self.child = subprocess.Popen(
            [program(), "-p", self.folder, "-c", self.configuration, "-e",
             os.path.join(self.folder, "error.log")], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE)
        for _ in range(200):
            if self.child.poll() is not None:
                raise Wrong("nginx: " + self.child.stderr.read().decode())
            try:
                socket.create_connection(("127.0.0.1", self.ports["plain"])).close()
                return self
            except ConnectionRefusedError:
                time.sleep(0.02)
        raise Wrong("nginx does not answer")

    def __exit__(self, *args):
        self.child.terminate()
        self.child.communicate()

    def log(self):
        """Rows of port, protocol, method, target, status, range, encoding, authorization, sent."""
        with open(os.path.join(self.folder, "access.log"), encoding="utf-8") as file:
            return [line.rstrip("\n").split("|") for line in file]


@contextlib.contextmanager
def serving(w, secure=False):
    root = os.path.join(w.folder, "root")
    w.local = models.write(root, "m.safetensors", models.small(64, 16 << 10))
    made = Certificates(os.path.join(w.folder, "certificates")) if secure else None
    with Nginx(os.path.join(w.folder, "nginx"), root, made) as nginx:
        w.url = nginx.urls["plain"] + "/m.safetensors"
        yield nginx, {"CURL_CA_BUNDLE": made.path("ca.pem")} if made else {}
        for row in nginx.log():
            same((row[2], row[6]), ("GET", "identity"), "method and Accept-Encoding")


@case
def nginx_ranges(w):
    with serving(w) as (nginx, _):
        all_three(w)
        same({row[4] for row in nginx.log()}, {"206"}, "statuses")
        w.url = nginx.urls["plain"] + "/none.safetensors"
        w.info_fails("not_found")
        w.url = nginx.urls["plain"] + "/moved/"
        w.info_works()


@case
def nginx_whole(w):
    """max_ranges 0: a server that has no ranges."""
    with serving(w) as (nginx, _):
        w.local = models.write(os.path.dirname(w.local), "s.safetensors", models.small(20, 9999))
        w.url = nginx.urls["plain"] + "/whole/s.safetensors"
        w.info_works()
        w.select_works("layer.1*")


@case
def nginx_compressed(w):
    """A file that lies there compressed, and is sent so whatever is asked."""
    import gzip
    with serving(w) as (nginx, _):
        with open(w.local, "rb") as file:
            models.write(os.path.dirname(w.local), "m.safetensors.gz", gzip.compress(file.read()))
        w.url = nginx.urls["plain"] + "/zipped/m.safetensors"
        w.info_fails("remote_range", "Content-Encoding")


@case
def nginx_user(w):
    with serving(w) as (nginx, _):
        w.url = nginx.urls["plain"] + "/users/m.safetensors"
        w.info_fails("remote_denied", "401")
        w.url = w.url.replace("http://", "http://u:%s@" % PASSWORD)
        w.info_works()
        w.cat_works(SLICE)


@case
def nginx_ten_gigabytes(w):
    with serving(w) as (nginx, _):
        content = models.large()
        path = models.write(os.path.dirname(w.local), "big.safetensors", bytes(content.head))
        os.truncate(path, content.size)
        w.url = nginx.urls["plain"] + "/big.safetensors"
        found = w.run("cat", "--as", "raw", w.url, "t[-3:]").out
        same(found, bytes(3 * 4096 * 4), "zeros")
        at_most(len(nginx.log()), 2, "requests")
        at_most(sum(int(row[8]) for row in nginx.log()), HEAD + (1 << 20), "bytes")


@case
def nginx_shards(w):
    with serving(w) as (nginx, _):
        local = models.sharded(os.path.join(w.folder, "root", "m"), 12)
        w.url = nginx.urls["plain"] + "/m/model.safetensors.index.json"
        same(w.run("ls", w.url).text().split("\n")[1:], w.run("ls", local).text().split("\n")[1:])
        w.select_works("model.layers.3.*", local=local)


@case
def nginx_tls(w):
    """HTTP/2 where TLS agrees on it, or 1.1: both are right."""
    with serving(w, True) as (nginx, env):
        w.url = nginx.urls["good"] + "/m.safetensors"
        all_three(w, env=env)
        for name, says in (("expired", "expired"), ("wrong", "host|name|127.0.0.1"),
                           ("unknown", "certificate|issuer|authority")):
            w.url = nginx.urls[name] + "/m.safetensors"
            w.info_fails("remote_tls", says, env=env)
        w.url = nginx.urls["unknown"] + "/m.safetensors"
        w.info_fails("remote_tls", "CURL_CA_BUNDLE", env={})
        holds(all(row[0] == str(nginx.ports["good"]) for row in nginx.log()), "no other answers")
