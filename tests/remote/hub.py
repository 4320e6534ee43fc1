"""A Hugging Face Hub on a Site: repositories of folders, their pages on origin A, the bytes of
large files on origin B behind signed URLs. What it answers, huggingface_hub accepts
(hub_honest.py).

    hub.py NS/NAME=FOLDER...      serves them until it is stopped, and says HF_ENDPOINT
"""
import hashlib
import json
import os
import re
import sys
import threading
import urllib.parse

from server import Disk, Memory, Reply, Resource, Signed, Site, found, read

TOKEN = "hf_" + "TheTokenOfTheTests"
LARGE = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".onnx", ".h5", ".ckpt", ".npz")


class File:
    def __init__(self, content, large, sha256=None):
        self.content, self.large = content, large
        sha = hashlib.sha256()
        git = hashlib.sha1(b"blob %d\0" % content.size)
        for piece in content.pieces(0, content.size if sha256 is None else 0):
            sha.update(piece)
            git.update(piece)
        self.sha256, self.sha1 = sha256 or sha.hexdigest(), git.hexdigest()
        self.xet = hashlib.sha256(b"xet" + self.sha256.encode()).hexdigest()

    def entry(self, path):
        """As the tree tells it."""
        entry = {"type": "file", "oid": self.sha1, "size": self.content.size, "path": path}
        if self.large:
            entry["lfs"] = {"oid": self.sha256, "size": self.content.size, "pointerSize": 135}
            entry["xetHash"] = self.xet
        return entry


class Repository:
    """gated, private, disabled: what is answered to those without a token that may."""

    def __init__(self, hub, name, kind="models"):
        self.hub, self.name, self.kind = hub, name, kind
        self.commits, self.refs = {}, {}
        self.gated = self.private = self.disabled = False
        self.signed = {}

    def push(self, files, ref="main", gone=()):
        """A commit on top of a reference. files: {path: bytes or contents}"""
        tree = dict(self.commits.get(self.refs.get(ref, self.refs.get("main")), {}))
        for path, content in files.items():
            if not isinstance(content, File):
                content = content if hasattr(content, "pieces") else Memory(content)
                content = File(content, path.endswith(LARGE))
            tree[path] = content
        for path in gone:
            del tree[path]
        text = "%s %s %s" % (self.name, len(self.commits),
                             sorted((p, f.sha256) for p, f in tree.items()))
        commit = hashlib.sha1(text.encode()).hexdigest()
        self.commits[commit], self.refs[ref] = tree, commit
        return commit

    def commit(self, revision):
        if revision in self.refs:
            return self.refs[revision]
        return revision if revision in self.commits else None

    def link(self, path, file):
        """A signed URL at the other origin."""
        with self.hub.lock:
            return self.signed_at(path, file)

    def signed_at(self, path, file):
        hub = self.hub
        hub.turn += 1
        edge = hub.edges[hub.turn % len(hub.edges)]
        if (file.sha256, edge) not in self.signed:
            signed = Signed(hub.site, edge, "/xet-bridge-us/%s/%s" % (
                hashlib.md5(self.name.encode()).hexdigest(), file.sha256), file.content,
                hub.uses, "X-Xet-Cas-Uid=public&Signature=" + hub.secret)
            etag = '"%s%s"' % (file.xet, edge if len(hub.edges) > 1 else "")
            signed.resource = Resource(file.content, etag, headers=[
                ("Content-Disposition", "inline; filename*=UTF-8''%s; filename=\"%s\";" % (
                    urllib.parse.quote(os.path.basename(path)), os.path.basename(path))),
                ("Cache-Control", "public, max-age=31536000"), ("X-Cache", "Hit from cloudfront")])
            self.signed[file.sha256, edge] = signed
        return self.signed[file.sha256, edge].sign()


class Hub:
    """uses: how often a signed URL may be used; resolve_cache: small files by one more redirect on
    this origin; page: entries of a page of a tree."""

    def __init__(self, site, origin="A", cdn="B", token=TOKEN):
        self.site, self.origin, self.token = site, origin, token
        self.repositories, self.renamed = {}, {}
        self.uses, self.resolve_cache, self.page = None, False, 1000
        self.secret, self.left = "signature~of~the~tests", 2999
        self.lock = threading.Lock()
        self.edges, self.turn = cdn, 0  # origins that are used in turn, each with ETags of its own
        site.beneath(origin, "/", self.answer)
        self.endpoint = site.url(origin)

    def add(self, name, files, kind="models"):
        """files: a folder, or {path: bytes or contents}"""
        repository = Repository(self, name, kind)
        if isinstance(files, str):
            files = {os.path.relpath(os.path.join(here, one), files): Disk(os.path.join(here, one))
                     for here, _, names in os.walk(files) for one in names}
        repository.push(files)
        self.repositories[kind, name] = repository
        return repository

    def rename(self, old, new):
        """Redirects from one name to another, as for repositories that were renamed."""
        self.renamed[old] = new

    # ── Who may ──

    def refusal(self, request, repository):
        given = request.header("Authorization")
        known = given == "Bearer " + self.token
        if given and not known:
            return self.error(401, None, "Invalid credentials in Authorization header")
        if not repository or repository.private and not known:
            return self.error(404 if known else 401, "RepoNotFound",
                              "Repository not found" if known else
                              "Invalid username or password.")
        if repository.disabled:
            return self.error(403, None, "Access to this resource is disabled.")
        if repository.gated and not known:
            return self.error(401, "GatedRepo", "Access to model %s is restricted. You must have "
                              "access to it and be authenticated to access it. Please log in."
                              % repository.name)
        if repository.gated == "ask":
            return self.error(403, "GatedRepo", "Access to model %s is restricted and you are not "
                              "in the authorized list. Visit %s/%s to ask for access."
                              % (repository.name, self.endpoint, repository.name))
        return None

    def error(self, code, name, message):
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("X-Error-Message", message)]
        if name:
            headers.append(("X-Error-Code", name))
        return Reply(code, headers, message.encode())

    def json(self, value, *headers):
        return Reply(200, [("Content-Type", "application/json; charset=utf-8"), *headers],
                     json.dumps(value).encode())

    # ── Pages ──

    def answer(self, request):
        path = urllib.parse.unquote(request.path)
        raw = [urllib.parse.unquote(part) for part in request.path.split("/")[1:]]
        if raw[0] == "api":
            return self.api(request, raw[1:])
        kind = "models"
        if raw[0] in ("datasets", "spaces"):
            kind, raw = raw[0], raw[1:]
        if len(raw) < 5 or raw[2] not in ("resolve", "raw"):
            return self.error(404, None, "no such page: " + path)
        name = "/".join(raw[:2])
        if name in self.renamed:
            return self.redirect(request, name)
        return self.resolve(request, self.repositories.get((kind, name)), raw[3],
                            "/".join(raw[4:]))

    def redirect(self, request, name):
        to = request.target.replace("/" + name, "/" + self.renamed[name], 1)
        return Reply(307, [("Location", to)], b"Temporary Redirect. Redirecting to " + to.encode())

    def resolve(self, request, repository, revision, path):
        refused = self.refusal(request, repository)
        if refused:
            return refused
        commit = repository.commit(revision)
        if not commit:
            return self.error(404, "RevisionNotFound", "Invalid rev id: " + revision)
        file = repository.commits[commit].get(path)
        if not file:
            return self.error(404, "EntryNotFound", "Entry not found")
        headers = [("X-Repo-Commit", commit),
                   ("RateLimit", '"resolvers";r=%d;t=300' % self.left),
                   ("RateLimit-Policy", '"fixed window";"resolvers";q=3000;w=300')]
        if not file.large:
            return self.small(request, repository, commit, path, file, headers)
        headers += [("X-Linked-Size", str(file.content.size)),
                    ("X-Linked-Etag", '"%s"' % file.sha256), ("X-Xet-Hash", file.xet),
                    ("Link", '<%s/api/%s/%s/xet-read-token/%s>; rel="xet-auth"' % (
                        self.endpoint, repository.kind, repository.name, commit)),
                    ("Location", repository.link(path, file)), ("Accept-Ranges", "bytes"),
                    ("Content-Type", "text/plain; charset=utf-8")]
        return Reply(302, headers, b"Found. Redirecting to " + headers[-3][1].encode())

    def small(self, request, repository, commit, path, file, headers):
        cache = "/api/resolve-cache/%s/%s/%s/%s" % (repository.kind, repository.name, commit,
                                                    urllib.parse.quote(path))
        if self.resolve_cache and not request.path.startswith("/api/"):
            headers += [("X-Linked-Size", str(file.content.size)),
                        ("X-Linked-Etag", '"%s"' % file.sha1), ("Location", cache)]
            return Reply(307, headers, b"Temporary Redirect. Redirecting to " + cache.encode())
        kind = "text/plain; charset=utf-8"
        return found(request, Resource(file.content, '"%s"' % file.sha1, None, kind, headers))

    # ── Interface ──

    def api(self, request, parts):
        if parts[0] == "whoami-v2":
            return self.json({"name": "tester", "type": "user"})
        if parts[0] == "resolve-cache":
            return self.resolve(request, self.repositories.get((parts[1], "/".join(parts[2:4]))),
                                parts[4], "/".join(parts[5:]))
        if len(parts) < 3:
            return self.error(404, None, "no such interface")
        name = "/".join(parts[1:3])
        if name in self.renamed:
            return self.redirect(request, name)
        repository = self.repositories.get((parts[0], name))
        refused = self.refusal(request, repository)
        if refused:
            return refused
        what = parts[3] if len(parts) > 3 else "revision"
        if what == "safetensors-metadata":
            return self.metadata(repository, "/".join(parts[4:]))
        revision = parts[4] if len(parts) > 4 else "main"
        commit = repository.commit(revision)
        if not commit:
            return self.error(404, "RevisionNotFound", "Invalid rev id: " + revision)
        files = repository.commits[commit]
        if what == "revision":
            return self.json({"_id": "1", "id": name, "modelId": name, "sha": commit,
                              "author": parts[1], "private": repository.private,
                              "gated": repository.gated, "disabled": False, "tags": [],
                              "lastModified": "2026-11-21T12:00:00.000Z",
                              "createdAt": "2026-11-20T12:00:00.000Z",
                              "siblings": [{"rfilename": path} for path in sorted(files)]})
        if what == "tree":
            return self.tree(request, files, "/".join(parts[5:]))
        if what == "paths-info":
            asked = urllib.parse.parse_qs(request.body.decode()).get("paths", [])
            folders = self.folders(files)
            return self.json([files[path].entry(path) if path in files else folders[path]
                              for path in asked if path in files or path in folders])
        return self.error(404, None, "no such interface")

    @staticmethod
    def folders(files):
        names = {path[:at.start()] for path in files for at in re.finditer("/", path)}
        return {name: {"type": "directory", "size": 0, "path": name,
                       "oid": hashlib.sha1(name.encode()).hexdigest()} for name in names}

    def tree(self, request, files, beneath):
        query = urllib.parse.parse_qs(request.query)
        deep = query.get("recursive", ["false"])[0].lower() in ("1", "true")
        entries = {**self.folders(files), **{p: f.entry(p) for p, f in files.items()}}
        begin = beneath + "/" if beneath else ""
        if begin and not any(path.startswith(begin) for path in entries):
            return self.error(404, "EntryNotFound", "%s does not exist" % beneath)
        chosen = [entry for path, entry in sorted(entries.items()) if path.startswith(begin)
                  and (deep or "/" not in path[len(begin):])]
        at = int(query.get("cursor", ["0"])[0])
        headers = []
        if at + self.page < len(chosen):
            query["cursor"] = [str(at + self.page)]
            headers.append(("Link", '<%s%s?%s>; rel="next"' % (
                self.endpoint, request.path, urllib.parse.urlencode(query, doseq=True))))
        return self.json(chosen[at:at + self.page], *headers)

    def metadata(self, repository, path):
        files = repository.commits[repository.refs["main"]]
        if path not in files:
            return self.error(404, "EntryNotFound", "Entry not found")
        index = json.loads(read(files[path].content))
        headers = {}
        for name in sorted(set(index.pop("weight_map").values())):
            size = int.from_bytes(read(files[name].content, 0, 8), "little")
            headers[name] = json.loads(read(files[name].content, 8, 8 + size))
        return self.json({"index": index, "headers": headers})


def main():
    with Site() as site:
        hub = Hub(site)
        for word in sys.argv[1:]:
            name, _, folder = word.partition("=")
            hub.add(name, folder)
        print("HF_ENDPOINT=" + hub.endpoint, flush=True)
        try:
            site.stopping.wait()
        except KeyboardInterrupt:
            site.dump("/dev/stderr")


if __name__ == "__main__":
    main()
