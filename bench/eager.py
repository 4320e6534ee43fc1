#!/usr/bin/env python3
"""Loading a file of 2 GB into memory of the CPU: loaders in turns, and the memory of processes that
share one file.

    eager.py [--only load,share] [--repeats 7] [--data DIR] [--write [FILE]]

Run it by build/venv/bin/python (make bench-eager), with the packages of requirements-eager.txt in
PYTHONPATH; who cannot be imported does not take part. Each load is one fresh process, so that no
memory is left from the load before. Cold: the file is dropped from the page cache before the
process starts, which mincore confirms. Ceilings are plain preads by the same number of threads,
of 4, 8 and 16 MiB each, into memory that they use again: past the page cache, what the disk can;
through it, what copying costs.

Floors, by the median (exit status 1 when missed): warm, twice as fast as the faster way of the
official package into memory of the process; cold, 0.95 of the disk.
"""
import ctypes
import importlib.util
import itertools
import json
import mmap
import os
import resource
import subprocess
import sys
import threading
import time

import gen
from contest import Result, cell, few, ratio, shuffled, table
from sections import options, publish, status_of

SIZE, MIB = 2 << 30, 1 << 20
KINDS = {"few": (16, "16 tensors of 128 MiB"), "many": (16384, "16,384 tensors of 128 KiB")}
FLOOR_WARM, FLOOR_COLD = 2.0, 0.95
THREADS = {"warm": os.cpu_count() or 1, "cold": max(4, os.cpu_count() or 1)}
PROCESSES = 4


# ── Loaders: path -> tensors, and what must stay for them ──

def ours(path):
    from libsafetensors.torch import load_file
    return load_file(path, copy=True), None


def ours_numpy(path):
    from libsafetensors.numpy import load_file
    return load_file(path), None


def ours_mapped(path):
    from libsafetensors.torch import load_file
    return load_file(path), None


def official_clone(path):
    from safetensors.torch import load_file
    return {name: one.clone() for name, one in load_file(path).items()}, None


def official_pread(path):
    from safetensors.torch import load_file
    return load_file(path, backend="pread"), None


def official_numpy(path):
    from safetensors.numpy import load_file
    return load_file(path), None


def official_mapped(path):
    from safetensors.torch import load_file
    return load_file(path), None


def torch_load(path):
    import torch
    return torch.load(path + ".pt", weights_only=True), None


def fastsafetensors(path):
    """Its tensors stay views of the buffers that it fills: nothing is copied."""
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup
    loader = SafeTensorsFileLoader(SingleGroup(), "cpu", nogds=True)
    loader.add_filenames({0: [path]})
    files = loader.copy_files_to_device()
    return {name: files.get_tensor(name) for name in loader.get_keys()}, (loader, files)


def flashpack(path):
    os.environ["FLASHPACK_CPU_PARALLEL_READ"] = "1"  # else it maps the file
    from flashpack.deserialization import iterate_from_flash_tensor, read_flashpack_file
    storage, facts = read_flashpack_file(path + ".flashpack", device="cpu")
    return dict(iterate_from_flash_tensor(storage, facts)), storage


LOADERS = {"libsafetensors, `copy=True`": (ours, "torch"),
           "libsafetensors, numpy": (ours_numpy, "numpy"),
           "official, and `clone()`": (official_clone, "torch"),
           "official, `backend=\"pread\"`": (official_pread, "torch"),
           "official, numpy": (official_numpy, "numpy"),
           "`torch.load`": (torch_load, "torch"),
           "fastsafetensors": (fastsafetensors, "fastsafetensors"),
           "flashpack": (flashpack, "flashpack")}
OURS, OFFICIAL = list(LOADERS)[0], list(LOADERS)[2:4]
SHARERS = {"libsafetensors, mapped": ours_mapped, "official, mapped": official_mapped,
           "libsafetensors, `copy=True`": ours}


# ── Processes: eager.py work|share LOADER PATH ──

def words(tensors):
    """The sum of all bytes as 64-bit words."""
    import numpy
    total = 0
    for one in tensors.values():
        array = one if isinstance(one, numpy.ndarray) else one.numpy()
        total += int(array.reshape(-1).view(numpy.uint64).sum(dtype=numpy.uint64))
    return total & (2**64 - 1)


def imported(name):
    """The loader, with numpy and torch imported."""
    load = LOADERS.get(name, (SHARERS.get(name),))[0]
    import numpy  # noqa: F401
    import torch
    torch.set_num_threads(1)
    _ = torch.zeros(1).numpy()
    return load


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def work(name, path, small):
    load = imported(name)
    kept = load(small)
    used, start = processor_seconds(), time.perf_counter()
    kept = load(path)
    wall, used = time.perf_counter() - start, processor_seconds() - used
    print(json.dumps({"wall": wall, "cpu": used, "sum": words(kept[0])}))


def share(name, path, small):
    load = imported(name)
    kept = load(small)
    words(kept[0])
    for _ in range(2):
        print("ready", flush=True)
        sys.stdin.readline()
        kept = load(path)
        words(kept[0])
    sys.exit(0 if kept else 1)


# ── Files ──

def convert(path):
    """The same for torch.load and for flashpack, in a process of its own."""
    import torch
    from libsafetensors.torch import load_file
    tensors = load_file(path, copy=True)
    torch.save(tensors, path + ".pt.part")
    os.rename(path + ".pt.part", path + ".pt")
    if importlib.util.find_spec("flashpack"):
        from flashpack import pack_to_file
        pack_to_file(tensors, path + ".flashpack.part", target_dtype=None)
        os.rename(path + ".flashpack.part", path + ".flashpack")


def make(folder, kind, size):
    """A file of so many bytes, unless it is there."""
    path = os.path.join(folder, "%s-%d.safetensors" % (kind, size >> 20))
    count = max(1, KINDS[kind][0] * size // SIZE)
    if not os.path.exists(path):
        gen.write(path, *gen.entries(gen.rows(count, size // count)), gen.pattern())
    made = [path + ".pt"] + [path + ".flashpack"] * bool(importlib.util.find_spec("flashpack"))
    if not all(map(os.path.exists, made)):
        subprocess.run([sys.executable, __file__, "convert", path], check=True)
    return path


def file_of(name, path):
    """What the loader reads in place of the file."""
    return path + {"`torch.load`": ".pt", "flashpack": ".flashpack"}.get(name, "")


def cached(path):
    """Which part of a file is in the page cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = os.path.getsize(path)
    marks = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    with open(path, "rb") as file:
        at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), marks):
        raise OSError(ctypes.get_errno(), "mincore")
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    return sum(mark & 1 for mark in marks) / len(marks)


def set_state(path, state):
    """Warm: all of the file is in the page cache; cold: nothing of it."""
    with open(path, "rb") as file:
        if state == "warm":
            while file.read(8 * MIB):
                pass
        else:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    found = cached(path)
    if abs(found - (state == "warm")) > 0.05:
        raise SystemExit("%s: %.0f %% of it is in the page cache, and it should be %s"
                         % (path, 100 * found, state))


# ── Ceilings ──

def plain(path, threads, piece, direct):
    """Seconds of reading the file by threads, each into memory of its own, used again."""
    file = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    places = iter(range(0, os.path.getsize(path), piece))
    lock = threading.Lock()

    def read(memory):
        for _ in itertools.count():
            with lock:
                at = next(places, None)
            if at is None:
                return
            os.preadv(file, [memory], at)
    memory = [mmap.mmap(-1, piece) for _ in range(threads)]
    for one in memory:
        one.write(bytes(piece))
    workers = [threading.Thread(target=read, args=(one,)) for one in memory]
    start = time.perf_counter()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    seconds = time.perf_counter() - start
    os.close(file)
    return seconds


# ── Tables ──

class Bench:
    def __init__(self, args):
        self.args, self.missed = args, []
        self.small = os.path.join(args.data, "small.safetensors")
        if not os.path.exists(self.small):
            gen.write(self.small, *gen.entries(gen.rows(4, 1 << 16)), gen.pattern())
        if not os.path.exists(self.small + ".pt"):
            subprocess.run([sys.executable, __file__, "convert", self.small], check=True)
        self.there = [name for name, (_, module) in LOADERS.items()
                      if importlib.util.find_spec(module)]

    def floor(self, title, got, floor):
        if got < floor:
            self.missed.append("%s: %s times, the floor is %s" % (title, few(got), few(floor)))

    def one(self, name, path):
        """(wall, processor time, sum) of a load in a fresh process; milliseconds."""
        done = subprocess.run([sys.executable, __file__, "work", name, path, self.small],
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit("%s: %s" % (name, done.stderr.strip().splitlines()[-1]))
        facts = json.loads(done.stdout.splitlines()[-1])
        return facts["wall"] * 1e3, facts["cpu"] * 1e3, facts["sum"]

    def turns(self, path, state):
        """({name: Result}, the same of processor time, {piece: Result of plain reads})."""
        wall = {name: Result([]) for name in self.there}
        used = {name: Result([]) for name in self.there}
        plains = {piece: Result([]) for piece in (4, 8, 16)}
        for name in shuffled([*self.there, *plains], self.args.repeats):
            set_state(path if name in plains else file_of(name, path), state)
            if name in plains:
                seconds = plain(path, THREADS[state], name * MIB, state == "cold")
                plains[name].samples.append(seconds * 1e3)
                continue
            milliseconds, processor, total = self.one(name, path)
            wall[name].samples.append(milliseconds)
            wall[name].sums.add(total)
            used[name].samples.append(processor)
        return wall, used, plains

    def judge(self, title, state, wall, ceiling):
        if len(set().union(*(result.sums for result in wall.values()))) > 1:
            self.missed.append("%s: the loaders do not agree on the bytes" % title)
        mine = wall[OURS].median
        if state == "warm":
            fastest = min(wall[name].median for name in OFFICIAL)
            self.floor(title + ", against the official package", fastest / mine, FLOOR_WARM)
        else:
            self.floor(title + ", against the disk", ceiling.median / mine, FLOOR_COLD)

    def load(self):
        rows = []
        for kind, (_, title) in KINDS.items():
            path = make(self.args.data, kind, self.args.size)
            for state in ("warm", "cold"):
                wall, used, plains = self.turns(path, state)
                ceiling = min(plains.values(), key=lambda result: result.median)
                self.judge("%s, %s" % (title, state), state, wall, ceiling)
                for name, result in wall.items():
                    rows.append([title, state, name, cell(result), cell(used[name]),
                                 ratio(result, wall[OURS]), few(ceiling.median / result.median)])
                rows.append([title, state, "plain reads" + ", `O_DIRECT`" * (state == "cold"),
                             cell(ceiling), "–", ratio(ceiling, wall[OURS]), "1"])
        return table(["file", "page cache", "", "wall, ms", "CPU, ms", "÷ ours",
                      "of the ceiling"], rows) + (
            "\n%.1f GB of F32, in fresh processes; imports are not counted. torch itself is given "
            "one thread. fastsafetensors and `torch.load` give views of one buffer or a storage "
            "each, flashpack (`FLASHPACK_CPU_PARALLEL_READ=1`) views of a few; `torch.load` and "
            "flashpack read files of their own formats. Plain reads: %d threads warm, %d cold, the "
            "best of 4, 8 and 16 MiB a read, into memory that is used again.\n"
            % (self.args.size / 1e9, THREADS["warm"], THREADS["cold"]))

    # ── Memory of processes that share a file ──

    def share(self):
        path = make(self.args.data, "few", self.args.size)
        set_state(path, "warm")
        rows = []
        for name in SHARERS:
            before, after = self.sharers(name, path)
            grown = {key: after[key] - before[key] for key in after}
            rows.append([name, *["%.2f" % (grown[key] / 1e6) for key in
                                 ("Pss", "Pss_Anon", "Pss_File", "Rss")]])
        return table(["", "PSS, GB", "of it, memory of their own, GB", "of it, the file's, GB",
                      "RSS, GB"], rows) + (
            "\nSums over %d processes, each of which has loaded the file of %.1f GB and read every "
            "byte; what they had before is subtracted. /proc/PID/smaps_rollup.\n"
            % (PROCESSES, self.args.size / 1e9))

    def sharers(self, name, path):
        """(sums of smaps_rollup before the load, after it), in kB."""
        all_of_them = [subprocess.Popen([sys.executable, __file__, "share", name, path, self.small],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                       for _ in range(PROCESSES)]
        sums = []
        for _ in range(2):
            for one in all_of_them:
                if one.stdout.readline() != "ready\n":
                    raise SystemExit("%s: a process ended early" % name)
            sums.append(rollup(one.pid for one in all_of_them))
            for one in all_of_them:
                if len(sums) < 2:
                    one.stdin.write("\n")
                    one.stdin.flush()
        for one in all_of_them:
            one.kill()
            one.communicate()
        return sums


def rollup(pids):
    total = {}
    for pid in pids:
        with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as file:
            for line in file:
                words_of = line.split()
                if len(words_of) == 3 and words_of[2] == "kB":
                    key = words_of[0][:-1]
                    total[key] = total.get(key, 0) + int(words_of[1])
    return total


SECTIONS = ("load", "share")


def main():
    args = options(__doc__, SECTIONS, "eager", 7, more=[("--size", SIZE)])
    bench = Bench(args)
    for name in args.chosen:
        publish(args, "eager", name, getattr(bench, name)())
    return status_of(bench.missed)


if __name__ == "__main__":
    # Without a GPU, and before anything asks for one.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    RUN = {"work": work, "share": share, "convert": convert}
    if sys.argv[1:2] and sys.argv[1] in RUN:
        RUN[sys.argv[1]](*sys.argv[2:])
    else:
        sys.exit(main())
