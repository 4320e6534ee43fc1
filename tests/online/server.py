"""A server that answers as CivitAI's interface does, and misbehaves as it is told."""
import http.server
import json
import threading
import time
import urllib.parse

PNG = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde"
       b"\0\0\0\0IEND\xaeB`\x82")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", headers=()):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve(self):
        site = self.server.site
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        site.log.append((self.command, self.path, body, dict(self.headers)))
        try:
            fault = site.next_fault(self.command, self.path)
            if not (fault and fault(self)):
                site.answer(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_POST = serve


class Site:
    """versions by SHA-256 and AutoV3 in capitals, models by id; faults, in turn, for the
    requests whose "METHOD PATH" begins so. A fault answers by itself and returns True."""

    def __init__(self):
        self.by_hash, self.models, self.log, self.faults = {}, {}, [], []
        self.versions = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.site = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def fault(self, begins, *faults):
        self.faults += [(begins, fault) for fault in faults]

    def next_fault(self, method, path):
        for i, (begins, fault) in enumerate(self.faults):
            if ("%s %s" % (method, path)).startswith(begins):
                del self.faults[i]
                return fault
        return None

    def paths(self, method=None):
        return [path for m, path, _, _ in self.log if method in (None, m)]

    def add(self, file, version_id=7, model_id=70, known_by=("sha256", "autov3"), **more):
        """A version of one file, and its model; what by-hash tells."""
        version = {
            "id": version_id, "modelId": model_id, "name": "v2", "baseModel": "SDXL 1.0",
            "trainedWords": ["neon city", "glow"], "description": "<p>Second try</p>",
            "nsfwLevel": 1, "publishedAt": "2024-05-01T10:00:00.000Z",
            "model": {"name": "Neon City", "type": "LORA", "nsfw": False},
            "files": [{"name": "other.safetensors", "sizeKB": 1, "type": "Model",
                       "hashes": {"SHA256": file["sha256"].upper(),
                                  "AutoV3": file["autov3"].upper()}}],
            "images": [{"url": self.url + "/clip.mp4", "type": "video"},
                       {"url": self.url + "/image.jpeg", "type": "image",
                        "meta": {"prompt": "a city", "steps": 20}}],
            "air": "urn:air:sdxl:lora:civitai:%d@%d" % (model_id, version_id), **more}
        for algo in known_by:
            self.by_hash[file[algo].upper()] = version
        self.models[model_id] = {
            "id": model_id, "name": "Neon City", "type": "LORA", "nsfw": False,
            "description": "<p>All <b>neon</b>.</p>", "tags": ["city", "style"],
            "allowNoCredit": True, "allowCommercialUse": ["Image"], "allowDerivatives": True,
            "allowDifferentLicense": False, "creator": {"username": "lamp"},
            "modelVersions": [{"id": version_id, "name": "v2",
                               "publishedAt": "2024-05-01T10:00:00.000Z"}]}
        self.versions[version_id] = version
        return version

    def publish(self, version_id, model_id=70, name="v3", date="2024-09-01T10:00:00.000Z",
                base="SDXL 1.0", **more):
        """One more version of a model."""
        version = {"id": version_id, "name": name, "baseModel": base, "publishedAt": date, **more}
        self.models[model_id]["modelVersions"].append(version)
        return version

    def one(self, handler, found):
        if found:
            handler.reply(200, found)
        else:
            handler.reply(404, {"error": "not found"})

    def answer(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        begin = "/api/v1/model-versions/by-hash"
        if handler.command == "POST" and url.path == begin:
            asked = json.loads(body)
            if len(asked) > 100:
                handler.reply(400, {"error": "too many"})
                return
            found = {id(v): v for v in (self.by_hash.get(h) for h in asked) if v}
            handler.reply(200, list(found.values()))
        elif url.path.startswith(begin + "/"):
            version = self.by_hash.get(url.path[len(begin) + 1:])
            if version:
                handler.reply(200, version)
            else:
                handler.reply(404, {"error": "Model not found"})
        elif url.path == "/api/v1/models":
            ids = urllib.parse.parse_qs(url.query)["ids"][0].split(",")
            items = [self.models[int(i)] for i in ids if int(i) in self.models]
            handler.reply(200, {"items": items, "metadata": {}})
        elif url.path.startswith("/api/v1/models/"):
            self.one(handler, self.models.get(int(url.path.rsplit("/", 1)[1])))
        elif url.path.startswith("/api/v1/model-versions/"):
            self.one(handler, self.versions.get(int(url.path.rsplit("/", 1)[1])))
        elif url.path == "/image.jpeg":
            handler.reply(200, PNG, [("Content-Type", "image/jpeg")])
        else:
            handler.reply(404, b"<html>nothing</html>")


# ── Faults ──

def status(code, *headers):
    def fault(handler):
        handler.reply(code, {"error": "busy"}, headers)
        return True
    return fault


def text(body, code=200):
    def fault(handler):
        handler.reply(code, body, [("Content-Type", "text/html")])
        return True
    return fault


def moved(to, code=302):
    def fault(handler):
        handler.reply(code, b"", [("Location", to)])
        return True
    return fault


def slow(seconds):
    """The answer's head at once, the rest never in time."""
    def fault(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"[")
        handler.wfile.flush()
        time.sleep(seconds)
        handler.close_connection = True
        return True
    return fault


def endless(megabytes):
    """Blanks without a length, so many megabytes at most."""
    def fault(handler):
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for _ in range(megabytes):
            handler.wfile.write(b" " * (1 << 20))
        return True
    return fault


def endless_headers(handler):
    """Fields of a header without an end; a megabyte at most."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X-Field: value\r\n" * (1 << 16))
    handler.close_connection = True
    return True


def hang_up(handler):
    handler.close_connection = True
    return True
