"""Contestants, their turns, and how results are printed: for compare.py and writing.py."""
import json
import os
import platform
import random
import re
import resource
import shutil
import statistics
import subprocess
import time


class Worker:
    """A process that runs one operation per line it is sent (worker.h)."""

    def __init__(self, command):
        self.samples, self.sums = [], set()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, bufsize=1)
        first = self.process.stdout.readline().split()
        if len(first) != 3:
            error = self.process.stderr.read().strip().splitlines()
            self.process.wait()
            raise RuntimeError(error[-1] if error else "no answer")
        self.before, self.after = int(first[1]), int(first[2])  # KiB

    def run(self, mode):
        self.process.stdin.write(mode + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError("%s: %s" % (mode, self.process.stderr.read().strip()))
        return float(answer[0]) / 1e6, int(answer[1])

    def sample(self):
        milliseconds, total = self.run("go")
        self.samples.append(milliseconds)
        self.sums.add(total)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Result:
    def __init__(self, samples, sums=(), memory=0):
        self.samples, self.sums, self.memory = samples, set(sums), memory

    @property
    def median(self):
        return statistics.median(self.samples)

    def cell(self):
        return "%s (%s)" % (short(self.median), short(min(self.samples)))


def short(milliseconds):
    digits = 3 if milliseconds < 0.1 else 2 if milliseconds < 10 else 1 if milliseconds < 100 else 0
    return "%.*f" % (digits, milliseconds)


def compete(commands, repeats):
    """{name: command} to {name: Result or the reason there is none}."""
    workers, out = {}, {}
    for name, command in commands.items():
        try:
            workers[name] = Worker(command)
        except (RuntimeError, FileNotFoundError) as error:
            out[name] = str(error)
    for _ in range(repeats):
        for worker in workers.values():
            worker.sample()
    for name, worker in workers.items():
        worker.close()
        out[name] = Result(worker.samples, worker.sums, worker.after - worker.before)
    return {name: out[name] for name in commands}


def ratio(result, ours):
    """Of the medians, and in brackets of the best."""
    if not isinstance(result, Result) or not isinstance(ours, Result):
        return "–"
    return "%s× (%s×)" % (few(result.median / ours.median),
                          few(min(result.samples) / min(ours.samples)))


def few(number):
    return "%.*f" % (0 if number >= 100 else 1 if number >= 2 else 2, number)


def cell(result):
    return result.cell() if isinstance(result, Result) else "–"


def header_bytes(path):
    with open(path, "rb") as f:
        return int.from_bytes(f.read(8), "little")


def tensor_names(path):
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    return [name for name in header if name != "__metadata__"]


def has_program(name):
    return os.path.isabs(name) or shutil.which(name) is not None


def run_process(command):
    used, start = children_seconds(), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    if os.environ.get("BENCH_CPU"):
        return (children_seconds() - used) * 1e3
    return (time.perf_counter() - start) * 1e3


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"


def machine():
    model = "unknown processor"
    try:
        with open("/proc/cpuinfo") as f:
            model = next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return "%d × %s, Linux %s" % (os.cpu_count() or 1, model, platform.release().split("-")[0])


def put(path, name, text):
    """Replace what stands between the markers of a section."""
    begin, end = "<!-- bench %s -->" % name, "<!-- end %s -->" % name
    with open(path) as f:
        page = f.read()
    found = re.search(re.escape(begin) + ".*?" + re.escape(end), page, re.S)
    if not found:
        raise SystemExit("%s: no markers for %s" % (path, name))
    page = page[:found.start()] + begin + "\n" + text + end + page[found.end():]
    with open(path + ".part", "w") as f:
        f.write(page)
    os.rename(path + ".part", path)




def take_turns(commands, repeats, before=None):
    """{name: (wall, processor time)} of whole processes; before(name) comes first each time.
    Each round has an order of its own."""
    got = {name: (Result([]), Result([])) for name in commands}
    for name in shuffled(commands, repeats):
        if before:
            before(name)
        used, start = children_seconds(), time.perf_counter()
        subprocess.run(commands[name], stdout=subprocess.DEVNULL, check=True)
        got[name][0].samples.append((time.perf_counter() - start) * 1e3)
        got[name][1].samples.append((children_seconds() - used) * 1e3)
    return got


def take_modes(workers, repeats):
    """{name: (Worker, mode)} to {name: Result}: modes of workers in turns."""
    got = {name: Result([]) for name in workers}
    for name in shuffled(workers, repeats):
        worker, mode = workers[name]
        milliseconds, total = worker.run(mode)
        got[name].samples.append(milliseconds)
        got[name].sums.add(total)
    return got


def shuffled(names, rounds):
    """All of them in each round, in an order of its own: so that none always comes after the
    same one. Every run has the same orders."""
    chance = random.Random(rounds)
    for _ in range(rounds):
        yield from chance.sample(list(names), len(names))
