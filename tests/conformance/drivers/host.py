#!/usr/bin/env python3
"""Runs a reader on files, within limits of time and memory.

    host.py MODULE              a Python driver of this folder: read(path), in a forked process
    host.py -- COMMAND ARG...   any other driver: a program that takes paths on stdin, one per
                                line, and answers each with a line

The process is started again after whatever ends it, and after every hundredth file; a file that
ended it is asked again in a process of its own, for the fault may be of a file before it.

Paths come on stdin, one per line; for each a line of JSON goes out:
    {"accept": true, "tensors": [[NAME, DTYPE, SHAPE, DATA], ...], "metadata": {...} or null}
    {"accept": false, "error": CLASS, "text": MESSAGE}
    {"crash": "SIGSEGV" or "time" or "memory" or "panic" or "exit 1", "text": MESSAGE}
A driver says the first two; this program says the third. What a reader does not return, "tensors"
or "metadata", is left out. DATA is the SHA-256 of the tensor's bytes, or [begin, end] of a reader
that returns offsets only, or null.
"""
import hashlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import time

SECONDS = 60
MEMORY = 2 << 30  # more than the process has when it begins
OUT_OF_MEMORY = ("MemoryError", "OutOfMemory", "bad_alloc", "Array buffer allocation failed",
                 "Invalid array buffer length", "DefaultCPUAllocator")


def digest(data):
    return hashlib.sha256(data).hexdigest() if isinstance(data, (bytes, memoryview)) else data


def answer(read, path):
    """What read(path) says. A panic of Rust arrives as a BaseException."""
    try:
        found = read(path)
        if "tensors" in found:
            found["tensors"] = [[n, d, list(s), digest(b)] for n, d, s, b in found["tensors"]]
        found["accept"] = True
        return found
    except BaseException as error:
        name, text = type(error).__name__, str(error)[:300]
        if name == "PanicException":
            return {"crash": "panic", "text": text}
        return {"accept": False, "error": name, "text": text}


def limit():
    with open("/proc/self/status", encoding="ascii") as f:
        used = next(int(line.split()[1]) << 10 for line in f if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def begin(work, out, said, paths):
    """In the child; never returns. What the reader prints goes to `said`."""
    os.dup2(paths, 0)
    os.dup2(said, 2)
    limit()
    if not callable(work):
        os.dup2(out, 1)
        os.execvp(work[0], work)
    os.dup2(said, 1)
    with os.fdopen(out, "w", encoding="ascii") as f, os.fdopen(0, encoding="utf-8") as lines:
        for line in lines:
            f.write(json.dumps(answer(work, line.rstrip("\n")), default=str) + "\n")
            f.flush()
    os._exit(0)


class Child:
    """A process that answers until something ends it."""

    def __init__(self, work):
        ends = [os.pipe() for _ in range(3)]
        (self.out, out), (self.said, said), (paths, self.paths) = ends
        self.pid = os.fork()
        if self.pid == 0:
            os.setpgid(0, 0)
            for end in (self.out, self.said, self.paths):
                os.close(end)
            try:
                begin(work, out, said, paths)
            finally:
                os._exit(127)
        for end in (out, said, paths):
            os.close(end)

    def line(self):
        """The next line that it writes, what it says on stderr, and whether time was over."""
        over = time.monotonic() + SECONDS
        texts, ends = {self.out: b"", self.said: b""}, {self.out, self.said}
        while self.out in ends and not texts[self.out].endswith(b"\n"):
            ready, _, _ = select.select(list(ends), [], [], max(0, over - time.monotonic()))
            if not ready:
                return b"", texts[self.said], True
            for end in ready:
                data = os.read(end, 65536)
                texts[end] += data
                if not data:
                    ends.discard(end)
        return texts[self.out], texts[self.said], False

    def ask(self, path):
        try:
            os.write(self.paths, path.encode() + b"\n")
        except BrokenPipeError:
            pass
        return self.line()

    def end(self, late):
        """Its status: that of its own end, unless it is late. Ends what it has started, too."""
        if late:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        for end in (self.out, self.said, self.paths):
            os.close(end)
        return status


def verdict(status, late, out, said):
    """What to say of an answer, or of its absence. status: None of a process that goes on."""
    said = said.decode("utf-8", "replace").strip()[-300:]
    if late:
        return {"crash": "time", "text": said}
    try:
        found = json.loads(out)
    except ValueError:
        found = None
    if isinstance(found, dict):
        words = "%s %s" % (found.get("error"), found.get("text"))
        if not found.get("accept", True) and any(word in words for word in OUT_OF_MEMORY):
            return {"crash": "memory", "text": words[:300]}
        return found
    if any(word in said for word in OUT_OF_MEMORY):
        return {"crash": "memory", "text": said}
    if status is not None and os.WIFSIGNALED(status):
        return {"crash": signal.Signals(os.WTERMSIG(status)).name, "text": said}
    return {"crash": "exit %d" % (os.WEXITSTATUS(status or 0)), "text": said}


class Reader:
    def __init__(self, work):
        self.work, self.child, self.asked = work, None, 0

    def __call__(self, path):
        fresh = self.child is None
        self.child = self.child or Child(self.work)
        out, said, late = self.child.ask(path)
        self.asked += 1
        if out.endswith(b"\n"):
            if self.asked % 100 == 0:
                self.end(True)
            return verdict(None, late, out, said)
        status = self.end(late)
        return verdict(status, late, out, said) if fresh else self(path)

    def end(self, late):
        status = self.child.end(late)
        self.child = None
        return status


def main(argv):
    if argv[1] == "--":
        work = argv[2:]
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        work = importlib.import_module(argv[1]).read
    reader = Reader(work)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(reader(line.rstrip("\n"))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv)
