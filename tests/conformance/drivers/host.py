#!/usr/bin/env python3
"""Runs a reader on files, each in a process of its own, within limits of time and memory.

    host.py MODULE              a Python driver of this folder: read(path) in a forked process
    host.py -- COMMAND ARG...   any other driver: the command, with the path as last argument

Paths come on stdin, one per line; for each a line of JSON goes out:
    {"accept": true, "tensors": [[NAME, DTYPE, SHAPE, DATA], ...], "metadata": {...} or null}
    {"accept": false, "error": CLASS, "text": MESSAGE}
    {"crash": "SIGSEGV" or "time" or "memory" or "exit 1", "text": MESSAGE}
A driver says the first two; this program says the third. "metadata" is left out by a reader
that does not return it. DATA is the SHA-256 of the tensor's bytes, or [begin, end] of a reader
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
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def child(work, path, out, said):
    """Never returns. stdout and stderr of the reader go to `said`."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    limit()
    if callable(work):
        os.dup2(said, 1)
        os.dup2(said, 2)
        found = answer(work, path)
        with os.fdopen(out, "w", encoding="ascii") as f:
            f.write(json.dumps(found, default=str))
        os._exit(0)
    os.dup2(out, 1)
    os.dup2(said, 2)
    os.execvp(work[0], work + [path])


def drain(pid, ends):
    """What comes out of the pipes until both close or time is over, and whether it was over."""
    texts = {end: b"" for end in ends}
    over, open_ends = time.monotonic() + SECONDS, set(ends)
    while open_ends:
        ready, _, _ = select.select(list(open_ends), [], [], max(0, over - time.monotonic()))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            return texts, True
        for end in ready:
            data = os.read(end, 65536)
            texts[end] += data
            if not data:
                open_ends.discard(end)
    return texts, False


def one(work, path):
    out_read, out = os.pipe()
    said_read, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        try:
            child(work, path, out, said)
        finally:
            os._exit(127)
    os.close(out)
    os.close(said)
    texts, late = drain(pid, [out_read, said_read])
    _, status = os.waitpid(pid, 0)
    try:
        os.killpg(pid, signal.SIGKILL)  # whatever it has started
    except ProcessLookupError:
        pass
    os.close(out_read)
    os.close(said_read)
    return verdict(status, late, texts[out_read], texts[said_read].decode("utf-8", "replace"))


def verdict(status, late, out, said):
    said = said.strip()[-300:]
    if late or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return {"crash": "time", "text": said}
    try:
        found = json.loads(out)
    except ValueError:
        found = None
    if isinstance(found, dict) and os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        words = "%s %s" % (found.get("error"), found.get("text"))
        if not found.get("accept", True) and any(word in words for word in OUT_OF_MEMORY):
            return {"crash": "memory", "text": words[:300]}
        return found
    if any(word in said for word in OUT_OF_MEMORY):
        return {"crash": "memory", "text": said}
    if os.WIFSIGNALED(status):
        return {"crash": signal.Signals(os.WTERMSIG(status)).name, "text": said}
    return {"crash": "exit %d" % os.WEXITSTATUS(status), "text": said}


def main(argv):
    if argv[1] == "--":
        work = argv[2:]
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        work = importlib.import_module(argv[1]).read
    for line in sys.stdin:
        sys.stdout.write(json.dumps(one(work, line.rstrip("\n"))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv)
