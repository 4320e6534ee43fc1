"""What the tests under wine share: both commands, folders of models, and files that others hold."""
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "faults", "kill"))
import scenes  # noqa: E402
from scenes import Wrong, model  # noqa: E402,F401

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build", "mingw"))
EMULATE = shlex.split(os.environ.get("SFT_EMULATE", ""))
WINDOWS = scenes.command()
DIRECT = [word for word in WINDOWS if not word.endswith("start.exe")]  # to be killed
LINUX = [os.environ.get("SFT_NATIVE", os.path.join(ROOT, "build", "safetensors"))]
SHARED = os.environ.get("SFT_SHARED", os.path.join(os.path.dirname(ROOT), "shared"))
LIMIT = 120


class Skip(Exception):
    pass


CASES = []


def case(function):
    """Add a case: it is called with a folder of its own."""
    CASES.append((function.__module__.removesuffix("_cases"), function))
    return function


def demand(ok, *what):
    if not ok:
        raise Wrong(" ".join(map(str, what)))


def run(command, words, folder, stdin=b"", **more):
    env = dict(os.environ, LC_ALL="C.UTF-8", HOME=folder, USERPROFILE=folder, **more)
    return subprocess.run([*command, *words], cwd=folder, input=stdin, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                          check=False)


def sft(words, folder, status=0, stdin=b"", **more):
    """Our command under wine; what it says, if it ends as expected (None: in any way)."""
    done = run(WINDOWS, words, folder, stdin, **more)
    demand(status is None or done.returncode == status, " ".join(words)[:200], "exit",
           done.returncode, "expected", status, done.stdout[-600:], done.stderr[-600:])
    return done


def linux(words, folder, stdin=b""):
    return run(LINUX, words, folder, stdin)


def write(path, content):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def small(seed=1, metadata=None):
    """A model of two tensors."""
    return model({"a": ("F32", [64], scenes.floats(64, seed)), "b": ("U8", [300], bytes(300))},
                 metadata or {"k": "v"}, 64)


def hidden(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith("."))


def holder(how, path):
    """The process that has the file. Now and then, on a busy machine, wine does not start one."""
    for _ in range(5):
        child = subprocess.Popen([*EMULATE, os.path.join(BUILD, "tests", "hold.exe"), how, path],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if child.stdout.readline().strip() == b"held":
            return child
        child.communicate()
    raise Wrong("hold %s does not hold %s" % (how, path))


@contextlib.contextmanager
def held(how, path):
    """Another process under wine has the file; yields a list that gets what it saw last."""
    seen = []
    with holder(how, path) as child:
        try:
            yield seen
        finally:
            try:
                seen.append(bytes.fromhex(child.communicate(b"\n", timeout=LIMIT)[0].decode()))
            except BrokenPipeError:
                seen.append(b"")


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="sft-windows-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
