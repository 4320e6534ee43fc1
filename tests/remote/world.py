"""What a case gets: a folder, servers, the command in a clean environment full of secrets, and
what must hold after every case, whatever it was about."""
import json
import os
import re
import shlex
import signal
import subprocess
import threading
import time

import models
from hub import TOKEN, Hub
from server import Memory

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIMIT = 120
HEAD = 128 << 10  # bytes that the first request asks for

# All of them are in the environment of every run; none may be shown, or sent to whom it is not of.
SECRETS = {"HF_TOKEN": TOKEN, "AWS_SECRET_ACCESS_KEY": "TheSecretKeyOfTheTests/+",
           "AWS_SESSION_TOKEN": "TheSessionOfTheTests",
           "CIVITAI_API_TOKEN": "civTheTokenOfTheTests",
           "GOOGLE_OAUTH_ACCESS_TOKEN": "ya29.TheTokenOfTheTests"}
QUERY, PASSWORD = "TheQueryOfTheTests", "ThePasswordOfTheTests"
HIDDEN = [*SECRETS.values(), QUERY, PASSWORD, "signature~of~the~tests", "Signature=xyzzy"]


class Wrong(Exception):
    pass


def same(found, wanted, what=""):
    if found != wanted:
        raise Wrong("%sexpected %.300r, found %.300r" % (what and what + ": ", wanted, found))


def holds(ok, what):
    if not ok:
        raise Wrong(what)


def at_most(found, most, what):
    holds(found <= most, "%s: expected at most %d, found %d" % (what, most, found))


def command():
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    return shlex.split(os.environ.get("SFT_COMMAND", os.path.join(build, "safetensors")))


CASES = []  # (function, whether `check` runs it)


def case(function):
    CASES.append((function, False))
    return function


def quick(function):
    CASES.append((function, True))
    return function


def drain(pipe):
    while pipe.read(1 << 20):
        pass
    pipe.close()


SCHEMAS = {}


def schema_errors(answer):
    """What is not as docs/schema says; nothing where jsonschema is not installed."""
    try:
        import jsonschema
    except ImportError:
        return
    name = answer["command"]
    path = os.path.join(ROOT, "docs", "schema", name + ".json")
    if name not in SCHEMAS and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            SCHEMAS[name] = jsonschema.Draft202012Validator(json.load(file))
    for error in SCHEMAS[name].iter_errors(answer) if name in SCHEMAS else ():
        best = jsonschema.exceptions.best_match([error])
        yield "schema of %s: %s: %s" % (name, best.json_path, best.message[:200])


ALONE = []  # cases that run in a network of their own, as its root


def alone(function):
    ALONE.append(function)
    return case(function)


class Run:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def text(self):
        return self.out.decode("utf-8", "replace")

    def errors(self):
        return self.err.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)

    def result(self):
        results = self.json()["results"]
        same(len(results), 1, "results")
        return results[0]


class World:
    def __init__(self, folder, site):
        self.folder, self.site, self.runs = folder, site, []
        self.lock = threading.Lock()
        self.here = os.path.join(folder, "work")  # where the command runs, and may write
        os.makedirs(self.here)
        os.makedirs(os.path.join(folder, "home"))
        self.authorized = {}   # origin: secrets that may be sent there
        self.any_header = False  # the case is not about what is sent
        self.hub = None

    # ── Setting up ──

    def put(self, data, path="/m.safetensors", origin="A", **more):
        """The URL of a file that is also kept as it is: self.local."""
        self.url = self.site.put(origin, path, data, **more)
        if isinstance(data, bytes):
            data = Memory(data)
        if isinstance(data, Memory):
            self.local = models.write(os.path.join(self.folder, "local"),
                                      os.path.basename(path), bytes(data.data))
        return self.url

    def make_hub(self):
        self.hub = Hub(self.site)
        self.authorized["A"] = {TOKEN}
        return self.hub

    def environment(self, more):
        env = {"PATH": os.environ["PATH"], "HOME": os.path.join(self.folder, "home"),
               "LC_ALL": "C.UTF-8", **SECRETS, "AWS_ACCESS_KEY_ID": "AKIAOFTHETESTS"}
        for name in ("LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        if self.hub:
            env["HF_ENDPOINT"] = self.hub.endpoint
        env.update(more)
        return {name: value for name, value in env.items() if value is not None}

    # ── Running ──

    def start(self, *words, env=None, **more):
        return subprocess.Popen(command() + [str(word) for word in words], cwd=self.here,
                                env=self.environment(env or {}), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def run(self, *words, wanted=0, env=None):
        begin = time.monotonic()
        child = self.start(*words, env=env)
        return self.end(child, words, wanted, begin)

    def memory(self, *words):
        """MiB that a run took at most."""
        child, most = self.start(*words), 0
        threads = [threading.Thread(target=drain, args=(pipe,)) for pipe in (child.stdout,
                                                                             child.stderr)]
        for thread in threads:
            thread.start()
        while child.poll() is None:
            with open("/proc/%d/status" % child.pid, encoding="utf-8") as file:
                found = re.search(r"VmHWM:\s*(\d+)", file.read())
            most = max(most, int(found[1]) >> 10 if found else 0)
            time.sleep(0.01)
        for thread in threads:
            thread.join()
        same(child.returncode, 0, "exit status of %s" % " ".join(map(str, words)))
        return most

    def end(self, child, words, wanted, begin=0):
        try:
            out, err = child.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
            raise Wrong("%s: still running after %d s" % (" ".join(map(str, words)), LIMIT))
        made = Run(child.returncode, out, err, time.monotonic() - begin)
        with self.lock:
            self.runs.append(made)
        if wanted is not None:
            same(made.status, wanted, "exit status of %s (%s)" % (
                " ".join(map(str, words)), (made.errors() or made.text()[:600]).strip()))
        return made

    # ── What the three columns of the matrix do ──

    def info(self, *words, **more):
        """The result of `info` of the URL."""
        return self.run("info", "--json", *words, self.url, **more).result()

    def info_works(self, *words, **more):
        """info tells of the URL what it tells of the local file."""
        found = self.info(*words, **more)
        wanted = self.run("info", "--json", self.local).result()
        for part in ("file", "metadata"):
            same(found[part], wanted[part], part)
        return found

    def cat_works(self, what, *words, local=None, **more):
        """cat gives of the URL what it gives of the local file, raw."""
        found = self.run("cat", *words, "--as", "raw", self.url, what, **more).out
        same(found, self.run("cat", "--as", "raw", local or self.local, what).out, "cat " + what)

    def select_works(self, keep, *words, local=None, **more):
        """select makes of the URL the same bytes as of the local file."""
        for name, path in (("remote", self.url), ("local", local or self.local)):
            extra = words if name == "remote" else ()
            self.run("select", *extra, path, "--keep", keep, "-o", name + ".safetensors",
                     "--force", **more)
        found = self.read("remote.safetensors")
        same(found == self.read("local.safetensors"), True, "the selections are equal")
        for name in ("remote", "local"):
            os.unlink(os.path.join(self.here, name + ".safetensors"))

    def read(self, name):
        with open(os.path.join(self.here, name), "rb") as file:
            return file.read()

    def info_fails(self, code, *says, words=(), env=None, command="info", hint=None):
        """The error of a command with --json: its code, words of its message or hint, and that
        it says what to do."""
        made = self.run(command, "--json", *words, self.url, wanted=None, env=env)
        holds(made.status in (1, 2), "%s: exit status %d (%s)" % (command, made.status,
                                                                  made.text()[:300]))
        error = made.result().get("error")
        holds(error, "%s: expected %s, found no error" % (command, code))
        same(error["code"], code, "%s: %s" % (command, error["message"]))
        text = "%s; %s" % (error["message"], error["hint"])
        self.says(text, says)
        if code.startswith("remote_") and hint is not False:
            holds(error["hint"], "no hint: " + text)
        return text

    def cat_fails(self, what, *says, words=(), env=None):
        made = self.run("cat", *words, "--as", "raw", self.url, what, wanted=2, env=env)
        same(made.out, b"", "what was written before the failure")
        self.says(made.errors(), says)
        return made.errors()

    def select_fails(self, keep, *says, words=(), env=None):
        """And leaves nothing."""
        before = models.snapshot(self.here)
        made = self.run("select", *words, self.url, "--keep", keep, "-o", "out.safetensors",
                        wanted=2, env=env)
        self.says(made.errors(), [*says, re.escape(self.url)])
        same(models.snapshot(self.here), before, "what is in the folder")
        return made.errors()

    @staticmethod
    def says(text, wanted):
        for pattern in wanted:
            holds(re.search(pattern, text, re.I), "expected /%s/ in %r" % (pattern, text))

    # ── What holds after every case ──

    def judge(self):
        for request in self.site.log:
            self.judge_request(request)
        for made in self.runs:
            if made.out.startswith(b'{"schema"'):
                for line in schema_errors(made.json()):
                    raise Wrong(line)
            for secret in HIDDEN:
                for name, text in (("output", made.out), ("errors", made.err)):
                    holds(secret.encode() not in text, "%s shows the secret %s: %r" % (
                        name, secret, text[-400:]))
        for here, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(here, name)
                for secret in HIDDEN:
                    holds(secret not in path, "a file's name has the secret " + secret)
                    if here.startswith(os.path.join(self.folder, "cache")) and \
                            os.path.isfile(path):
                        with open(path, "rb") as file:
                            holds(secret.encode() not in file.read(),
                                  "%s has the secret %s" % (name, secret))

    def judge_request(self, request):
        line = request.line()
        for name, value in request.headers:
            for secret in SECRETS.values():
                if secret in value:
                    holds(name.lower() == "authorization"
                          and secret in self.authorized.get(request.origin, ()),
                          "%s was sent to %s as %s" % (secret, line, name))
        for secret in SECRETS.values():
            holds(secret not in request.target, "%s was sent to %s" % (secret, line))
        if self.any_header:
            return
        holds(request.method in ("GET", "POST"), "%s: only GET" % line)
        asked = request.header("Range")
        if asked is not None:
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked)
            holds(found and int(found[1]) <= int(found[2]), "%s: Range: %s" % (line, asked))
        same(request.header("Accept-Encoding"), "identity", line + ": Accept-Encoding")
        for name in ("Cookie", "Referer", "If-Range", "Transfer-Encoding", "Expect"):
            same(request.header(name), None, "%s: %s" % (line, name))
        holds("libsafetensors" in (request.header("User-Agent") or "")
              or "safetensors/" in (request.header("User-Agent") or ""), line + ": User-Agent")
