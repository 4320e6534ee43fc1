#!/usr/bin/env python3
"""What commands ask of the disk, or of a server of files, in folders of models: bytes that they
bring into the page cache, calls a model, and how long reads are announced.

  tests/cold.py [-v] [CASE]…

The command is $SFT_COMMAND, else build/safetensors."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import cold  # noqa: E402

SFT = os.path.abspath(os.environ.get("SFT_COMMAND") or
                      os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")),
                                   "safetensors"))
# Not a round trip to a server of files: memory, threads, the terminal.
LOCAL = {"brk", "clone", "clone3", "madvise", "mmap", "mprotect", "munmap", "rseq", "futex",
         "rt_sigprocmask", "rt_sigaction", "set_robust_list", "getrandom", "exit", "exit_group",
         "sched_yield", "restart_syscall"}
LONG = 128 << 10


class Wrong(Exception):
    pass


class Skip(Exception):
    pass


def strace(words, *options):
    if not shutil.which("strace"):
        raise Skip("strace is missing")
    with tempfile.NamedTemporaryFile("r") as log:
        done = subprocess.run(["strace", "-f", "-o", log.name, *options, SFT, *words],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        lines = log.read().splitlines()
    if not any("exited with" in line for line in lines):
        raise Skip("strace cannot look at programs here: %r" % done.stderr[:200])
    return lines


def calls_of(lines):
    """Calls by name; one that another thread's calls interrupt stands in two lines."""
    names = re.findall(r"^\d+ +(\w+)\(", "\n".join(lines), re.M)
    return collections.Counter(name for name in names if name not in LOCAL)


def calls_a_model(words, make):
    """The difference that more models make."""
    counted = []
    for models in (4, 24):
        with tempfile.TemporaryDirectory() as folder:
            make(folder, models)
            counted.append(calls_of(strace([*words, folder])))
    grown = counted[1] - counted[0]
    return sum(grown.values()) / 20, {name: n / 20 for name, n in grown.items()}


def at_most(what, words, make, most):
    calls, by_name = calls_a_model(words, make)
    print("%s: %.2f calls a model" % (what, calls))
    if calls > most:
        raise Wrong("%s: expected %g calls a model at most, found %g: %r"
                    % (what, most, calls, by_name))


def loras(folder, models):
    for i in range(models):
        cold.write_lora(os.path.join(folder, "m%02d.safetensors" % i), 60, 400, lambda n: 16, i)


def loras_with_sidecars(folder, models):
    cold.make(folder, models)
    for i in range(2, models, 3): # equal alphas alone: the others are read at each
        shutil.copy(os.path.join(folder, "model0.safetensors"),
                    os.path.join(folder, "model%d.safetensors" % i))


def test_calls():
    at_most("ls", ["ls", "-r"], loras, 8)
    at_most("check", ["check", "-r"], loras, 9)
    at_most("info", ["info", "-r"], loras, 16) # eight of them for alphas
    at_most("find", ["find", "none", "-r"], loras, 16)
    # a JSON file is opened, looked at, read and closed; of a picture the beginning is
    at_most("info with sidecars", ["info", "-r"], loras_with_sidecars, 16 + 4 + 5)


def test_gathered():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "m.safetensors")
        cold.write_lora(path, 732, 600, lambda n: 1 + n % 40)
        made = calls_of(strace(["info", path]))
        one = calls_of(strace(["ls", path]))
        print("732 alphas that differ: %d calls more than ls" % (made - one).total())
        if (made - one).total() > 40:
            raise Wrong("expected 40 calls at most, found %r" % (made - one))
        shown = subprocess.run([SFT, "info", "--json", "--deep", path], capture_output=True,
                               check=True).stdout
        if shown.replace(b"false", b"true") != subprocess.run(
                [SFT, "info", "--json", path], capture_output=True,
                check=True).stdout.replace(b"false", b"true"):
            raise Wrong("other alphas are shown than with --deep")


def test_bytes():
    with tempfile.TemporaryDirectory(dir=os.environ.get("SFT_COLD")) as folder:
        cold.make(folder)
        for name, words in cold.COMMANDS.items():
            try:
                got = cold.brought_in(folder, [SFT, *words, folder])
            except cold.NoCache as why:
                raise Skip(str(why)) from why
            ratio = got / cold.wanted(folder, name)
            print("%s: %.2f times the bytes that it needs" % (name, ratio))
            if not 0.9 < ratio <= cold.FLOOR_COLD:
                raise Wrong("%s: expected 0.9 to %g times the bytes that it needs, found %.2f"
                            % (name, cold.FLOOR_COLD, ratio))


def test_long_reads():
    """What reads long pieces lets the system read ahead, as it does by itself."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = (os.path.join(folder, name) for name in ("m.safetensors", "out.safetensors"))
        cold.write_lora(path, 4, 400000, lambda n: 16)
        for words in (["hash", path], ["check", "--deep", path],
                      ["convert", path, "-o", out, "--dtype", "f32", "--force"],
                      ["select", path, "-o", out, "--force", "--drop", "*_1_attn1*"]):
            apart, reads = {}, 0
            for line in strace(words, "-e", "trace=openat,fadvise64,pread64,read,copy_file_range"):
                call = re.match(r"\d+ +(\w+)\((\d+), (.*)", line)
                opened = re.match(r"\d+ +openat\(.*= (\d+)$", line)
                if opened:
                    apart[opened.group(1)] = False
                if not call:
                    continue
                name, fd, rest = call.groups()
                if name == "fadvise64":
                    apart[fd] = "POSIX_FADV_RANDOM" in rest
                if name == "copy_file_range":
                    reads += 1
                    if apart.get(fd):
                        raise Wrong("%s: a copy that nothing is read ahead for" % words[0])
                read = re.search(r", (\d+)(?:, (\d+))?\) += (\d+)$", rest)
                if name in ("pread64", "read") and read and int(read.group(1)) >= LONG:
                    reads += 1
                    if apart.get(fd) and int(read.group(2) or 0) >= cold.PAGE:
                        raise Wrong("%s: a long read that nothing is read ahead for: %s"
                                    % (words[0], line[:200]))
            print("%s: %d long reads" % (words[0], reads))


CASES = [test_calls, test_gathered, test_bytes, test_long_reads]


def main():
    verbose, wanted = "-v" in sys.argv, [a for a in sys.argv[1:] if a != "-v"]
    tally = collections.Counter()
    for case in CASES:
        name = case.__name__[len("test_"):]
        if wanted and name not in wanted:
            continue
        try:
            case()
            verdict, why = "passed", ""
        except Skip as reason:
            verdict, why = "skipped", str(reason)
        except (Wrong, subprocess.CalledProcessError) as wrong:
            verdict, why = "failed", str(wrong)
        tally[verdict] += 1
        if verbose or verdict != "passed":
            print("%s: %s %s" % (verdict, name, why))
    print("%d passed, %d failed, %d skipped" % (tally["passed"], tally["failed"], tally["skipped"]))
    return 1 if tally["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
