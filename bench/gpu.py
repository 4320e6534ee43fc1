#!/usr/bin/env python3
"""Loading to a GPU: ceilings of the machine, loaders against one another, and correctness.

Three commands, each of at most 8 minutes, need nothing of one another:

    python bench/gpu.py ceilings load --files A,B,C
    python bench/gpu.py load --files D,E load --files A,C --cold
    python bench/gpu.py correct

libsafetensors must be installed; rivals take part if they can be imported: safetensors (load_file,
and prefetch from 0.9 on), instanttensor, fastsafetensors, runai_model_streamer, flashpack. Each
measurement is one fresh process, loaders take turns, and every line has the ceiling of its own
run. --out appends all figures as lines of JSON. Without a GPU it says so and loads small files
over the fake device of the tests.

Files, of random bytes: A, a LoRA of 120 MB; B, 6.9 GB of F16 in 2,515 tensors; C, 16 GB of BF16 in
291; D, 16 GB in 18,867; E, as C in four shards with mixed dtypes and headers that align nothing.
"""
import argparse
import ctypes
import importlib
import importlib.util
import json
import os
import pathlib
import random
import resource
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
GB, MIB = 1e9, 1 << 20


# ── Files ──

def sizes_of(kind):
    """(dtype, bytes) of each tensor."""
    if kind == "A":
        return [("F16", 16 * 2 * (3072 if i % 2 else 7400)) for i in range(722)]
    if kind == "B":
        return [("F16", 2 * 1280 * (5120 if i % 8 == 0 else 720 if i % 3 else 1))
                for i in range(2515)]
    if kind == "C":
        rows = [("BF16", 2 * 128256 * 4096)] * 2
        for _ in range(32):
            rows += [("BF16", 2 * 4096 * n) for n in (4096, 1024, 1024, 4096, 14336, 14336, 14336,
                                                      1, 1)]
        return rows + [("BF16", 2 * 4096)]
    if kind == "D":
        return [("BF16", 2 * 512 * 1280 if i % 3 else 2 * 4096) if i % 50 else ("F32", 4 * 4096)
                for i in range(18867)]
    mixed = ("BF16", "F32", "U8", "F8_E4M3", "I64")
    return [(mixed[i % 5], size) for i, (_, size) in enumerate(sizes_of("C"))]


WIDTH = {"F16": 2, "BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1, "I64": 8}


def write(path, rows, odd):
    """A file of random bytes; odd: its header ends at no multiple of 8."""
    header, at = {}, 0
    for i, (dtype, size) in rows:
        header["layers.%d.weight" % i] = {"dtype": dtype, "shape": [size // WIDTH[dtype]],
                                          "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + (3 if odd else 0))
    noise = os.urandom(8 * MIB)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            # Another rotation each time: equal blocks would hide some mistakes.
            turn = at // (8 * MIB) % 4093
            file.write((noise[turn:] + noise[:turn])[:at])
            at -= 8 * MIB


def make(kind, folder, scale=1):
    """Paths of a kind's files, which are written unless they are there."""
    rows = [(i, (dtype, max(8, size // scale // 8 * 8)))
            for i, (dtype, size) in enumerate(sizes_of(kind))]
    shards = 4 if kind == "E" else 1
    paths = []
    for shard in range(shards):
        path = folder / ("%s%d-%d.safetensors" % (kind, scale, shard))
        if not path.exists():
            write(path.with_suffix(".new"), rows[shard::shards], kind == "E")
            path.with_suffix(".new").rename(path)
        paths.append(path)
    return paths


def total(paths):
    return sum(path.stat().st_size for path in paths)


# ── Loaders: paths -> dict of tensors on the device ──

def load_files(package, paths):
    load_file = importlib.import_module(package + ".torch").load_file
    return {name: one for path in paths for name, one in load_file(path, device="cuda").items()}


def prefetch_files(package, paths):
    safe_open = importlib.import_module(package).safe_open
    found = {}
    for path in paths:
        with safe_open(path, "pt", device="cuda:0") as file, file.prefetch() as loader:
            found.update(iter(loader))
    return found


def ours(paths):
    return load_files("libsafetensors", paths)


def ours_prefetch(paths):
    return prefetch_files("libsafetensors", paths)


def official(paths):
    return load_files("safetensors", paths)


def official_prefetch(paths):
    return prefetch_files("safetensors", paths)


def instanttensor(paths):
    from instanttensor import safe_open
    with safe_open([os.fspath(path) for path in paths], framework="pt", device=0) as file:
        return dict(file.tensors())


def fastsafetensors(paths):
    from fastsafetensors import SafeTensorsFileLoader, SingleGroup
    loader = SafeTensorsFileLoader(SingleGroup(), "cuda:0", nogds=True)
    loader.add_filenames({0: [os.fspath(path) for path in paths]})
    files = loader.copy_files_to_device()
    found = {name: files.get_tensor(name).clone() for name in loader.get_keys()}
    files.close()
    loader.close()
    return found


def runai(paths):
    from runai_model_streamer import SafetensorsStreamer
    found = {}
    with SafetensorsStreamer() as streamer:
        for path in paths:
            streamer.stream_file(os.fspath(path))
            found.update((name, one.to("cuda")) for name, one in streamer.get_tensors())
    return found


def flashpack(paths):
    import flashpack as package
    storage, facts = package.read_flashpack_file(os.fspath(packed(paths)), device="cuda")
    return dict(package.iterate_from_flash_tensor(storage, facts))


def packed(paths):
    """The same in flashpack's format."""
    path = paths[0].with_suffix(".flashpack")
    if not path.exists():
        import flashpack as package
        from libsafetensors.torch import load_file
        state = {name: one for one_path in paths for name, one in load_file(one_path).items()}
        package.pack_to_file(state, os.fspath(path), silent=True)
    return path


def has_prefetch():
    try:
        from safetensors import safe_open
    except ImportError:
        return False
    return hasattr(safe_open, "prefetch")


def there(module):
    return importlib.util.find_spec(module) is not None


LOADERS = {"libsafetensors": (ours, lambda: True),
           "libsafetensors prefetch": (ours_prefetch, lambda: True),
           "safetensors": (official, lambda: there("safetensors")),
           "safetensors prefetch": (official_prefetch, has_prefetch),
           "instanttensor": (instanttensor, lambda: there("instanttensor")),
           "fastsafetensors": (fastsafetensors, lambda: there("fastsafetensors")),
           "runai": (runai, lambda: there("runai_model_streamer")),
           "flashpack": (flashpack, lambda: there("flashpack"))}


# ── One measurement ──

def timed(function, *arguments):
    import torch
    torch.cuda.synchronize()
    start = time.perf_counter()
    found = function(*arguments)
    torch.cuda.synchronize()
    return time.perf_counter() - start, found


def worker(name, paths, check):
    """Loads twice in this process; prints figures as JSON."""
    import torch
    torch.cuda.init()
    torch.empty(MIB, dtype=torch.uint8).cuda()
    load = LOADERS[name][0]
    if name == "flashpack":
        packed(paths)
    first, found = timed(load, paths)
    facts = {"first": first, "tensors": len(found),
             "reserved": torch.cuda.max_memory_reserved(),
             "aligned": sum(one.data_ptr() % 512 == 0 for one in found.values())}
    if check:
        facts["wrong"] = compare(found, paths)
    del found
    facts["kept"] = torch.cuda.memory_allocated()
    facts["second"], found = timed(load, paths)
    facts["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(facts))


def compare(found, paths):
    """Names of tensors whose bytes are not those of the file."""
    import torch
    from libsafetensors import open as open_file
    wrong, seen = [], 0
    for path in paths:
        with open_file(path, mode="read") as file:
            for tensor in file.values():
                seen += 1
                one = found.get(tensor.name)
                expected = tensor.torch(copy=True).view(-1).view(torch.uint8)
                if one is None or not one.is_cuda or not torch.equal(
                        one.contiguous().view(-1).view(torch.uint8), expected.cuda()):
                    wrong.append(tensor.name)
    return wrong + ["%d more" % (len(found) - seen)] * (len(found) != seen)


def measure(name, paths, *more):
    done = subprocess.run([sys.executable, __file__, "worker", name, *map(str, paths), *more],
                          capture_output=True, text=True, timeout=300)
    if done.returncode:
        return {"error": (done.stderr.strip() or "status %d" % done.returncode).splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def drop(paths):
    """Out of the page cache; False if some of them stay."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    resident = 0
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            size = path.stat().st_size
            pages = (size + 4095) // 4096
            at = libc.mmap(None, size, 1, 1, file.fileno(), 0)
            marks = (ctypes.c_ubyte * pages)()
            libc.mincore(at, size, marks)
            resident += sum(mark & 1 for mark in marks)
            libc.munmap(at, size)
    return resident * 4096 < total(paths) / 20


# ── Ceilings ──

def to_device(times=50):
    """Bytes a second of copies from pinned memory."""
    import torch
    host = torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True)
    device = torch.empty_like(host, device="cuda")
    device.copy_(host)
    seconds, _ = timed(lambda: [device.copy_(host, non_blocking=True) for _ in range(times)])
    return times * host.nbytes / seconds


def from_files(paths, threads, direct=False, most=8 * GB):
    """Bytes a second of reads into pinned memory by threads, 8 MiB each."""
    import torch
    size = 8 * MIB
    memory = torch.empty(threads * size, dtype=torch.uint8, pin_memory=True).numpy()
    files = [os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0)) for path in paths]
    places = [(file, at) for file, path in zip(files, paths)
              for at in range(0, path.stat().st_size // size * size, size)][:int(most // size)]
    left = iter(places)
    lock = threading.Lock()

    def run(slot):
        view = memoryview(memory[slot * size:(slot + 1) * size])
        while True:
            with lock:
                place = next(left, None)
            if place is None:
                return
            os.preadv(place[0], [view], place[1])
    workers = [threading.Thread(target=run, args=(slot,)) for slot in range(threads)]
    start = time.perf_counter()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    seconds = time.perf_counter() - start
    for file in files:
        os.close(file)
    return len(places) * size / seconds


def ceilings(options):
    import torch
    start = time.perf_counter()
    torch.cuda.init()
    torch.empty(1, device="cuda")
    report(options, "ceiling", what="context", seconds=time.perf_counter() - start)
    report(options, "ceiling", what="copies from pinned memory", rate=to_device())
    for size in (8, 64, 512):
        seconds, _ = timed(lambda: torch.empty(size * MIB, dtype=torch.uint8, pin_memory=True))
        report(options, "ceiling", what="pin %d MiB" % size, seconds=seconds)
    for where in (options.memory, options.disk):
        paths = make("B", where)
        for threads in (1, 2, 4, 8, 12, 16):
            report(options, "ceiling", what="pread, %s, %d threads" % (where, threads),
                   rate=from_files(paths, threads))
        if where == options.disk:
            for threads in (1, 4, 8, 16, 32):
                report(options, "ceiling", what="O_DIRECT, %s, %d threads" % (where, threads),
                       rate=from_files(paths, threads, direct=True, most=2 * GB))


# ── Loads ──

def load(options):
    where = options.disk if options.cold else options.memory
    names = [name for name, (_, able) in LOADERS.items()
             if able() and (not options.loaders or name in options.loaders.split(","))]
    for kind in options.files.split(","):
        paths = make(kind, where)
        if options.cold:
            ceiling = from_files(paths, 16, direct=True)
        else:
            ceiling = min(to_device(), max(from_files(paths, n) for n in (8, 12, 16)))
        found = {name: [] for name in names}
        for turn in range(3 if options.cold else 5):
            order = names[turn % len(names):] + names[:turn % len(names)]
            for name in order:
                if options.cold and not drop(paths):
                    report(options, "note", what="the page cache was not dropped")
                found[name].append(measure(name, paths))
        for name, rows in found.items():
            summary(options, kind, name, rows, total(paths), ceiling)
        if where == options.memory:
            for path in where.glob(kind + "1-*"):
                path.unlink()


def summary(options, kind, name, rows, size, ceiling):
    errors = [row["error"] for row in rows if "error" in row]
    if errors:
        report(options, "load", file=kind, loader=name, error=errors[0])
        return
    for which in ("first", "second"):
        times = [row[which] for row in rows]
        middle = statistics.median(times)
        report(options, "load", file=kind, loader=name, which=which, cold=options.cold,
               seconds=middle, least=min(times), most=max(times), rate=size / middle,
               of_ceiling=size / middle / ceiling, tensors=rows[0]["tensors"],
               aligned=rows[0]["aligned"], reserved=rows[0]["reserved"], rss=rows[0]["rss"])


def report(options, kind, **facts):
    if kind == "load" and "error" not in facts:
        text = "%s %-24s %-6s %8.3f s (%.3f–%.3f) %6.1f GB/s, %.2f of the ceiling" % (
            facts["file"], facts["loader"], facts["which"], facts["seconds"], facts["least"],
            facts["most"], facts["rate"] / GB, facts["of_ceiling"])
    elif "rate" in facts:
        text = "%-44s %6.1f GB/s" % (facts["what"], facts["rate"] / GB)
    elif "seconds" in facts:
        text = "%-44s %8.1f ms" % (facts["what"], facts["seconds"] * 1000)
    else:
        text = " ".join("%s: %s" % pair for pair in facts.items())
    print(text, flush=True)
    if options.out:
        with open(options.out, "a") as file:
            file.write(json.dumps({"kind": kind, **facts}) + "\n")


# ── Correctness ──

def correct(options):
    failures = []

    def expect(what, right):
        report(options, "check", what=what, right=bool(right))
        if not right:
            failures.append(what)
    for kind in ("A", "E"):
        paths = make(kind, options.memory)
        for name, (_, able) in LOADERS.items():
            if able() and (kind == "E" or name.startswith("libsafetensors")):
                facts = measure(name, paths, "--check")
                right = not facts.get("wrong", ["error"])
                report(options, "check", what="%s, %s" % (kind, name), right=right,
                       **{key: facts[key] for key in ("wrong", "error", "kept") if key in facts})
                if name.startswith("libsafetensors"):
                    expect("%s, %s: bytes, addresses, memory" % (kind, name), right
                           and facts["aligned"] == facts["tensors"] and facts["kept"] <= 2 * MIB)
        if kind == "E":
            for path in paths:
                path.unlink()
    paths = make("B", options.memory)
    expect("Ctrl-C in the middle, 20 times", all(interrupted(paths) for _ in range(20)))
    small = make("A", options.memory)
    expect("a file that is cut short", truncated(small[0]))
    expect("two loads at once", at_once(small))
    expect("memory that another stream still writes, 50 times", poisoned(small))
    return failures


def interrupted(paths):
    """A process that loads until SIGINT comes, then loads again and compares."""
    program = ("import sys, torch; sys.path.insert(0, %r); import gpu, pathlib\n"
               "paths = [pathlib.Path(p) for p in sys.argv[1:]]\n"
               "torch.cuda.init(); print('go', flush=True)\n"
               "try:\n    while True: gpu.ours(paths)\n"
               "except KeyboardInterrupt: pass\n"
               "torch.cuda.synchronize(); found = gpu.ours(paths)\n"
               "sys.exit(len(gpu.compare(found, paths)))" % os.path.dirname(__file__))
    child = subprocess.Popen([sys.executable, "-c", program, *map(str, paths)],
                             stdout=subprocess.PIPE)
    child.stdout.readline()
    time.sleep(random.random())
    child.send_signal(signal.SIGINT)
    return child.wait(120) == 0


def truncated(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "cut"
        copy.write_bytes(path.read_bytes())
        from libsafetensors import open as open_file
        with open_file(copy, mode="read") as file:
            os.truncate(copy, path.stat().st_size // 2)
            try:
                file.torch(device="cuda")
            except Exception as error:
                return getattr(error, "tensor", None) is not None
    return False


def at_once(paths):
    results = []
    threads = [threading.Thread(target=lambda: results.append(compare(ours(paths), paths)))
               for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return results == [[]] * 4


def poisoned(paths):
    """Memory that was freed while kernels still write to it is handed to the load."""
    import torch
    for _ in range(50):
        junk = [torch.empty(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(100)]
        torch.cuda._sleep(20_000_000)
        for one in junk:
            one.fill_(0xEE)
        del junk, one
        if compare(ours(paths), paths):
            return False
    return True


def self_test():
    """Without a GPU: the engine, over the fake device of the tests."""
    sys.path.insert(0, str(ROOT / "tests/python"))
    import torch
    from fake_device import FakeDevice
    from libsafetensors import _device
    from libsafetensors import open as open_file
    with tempfile.TemporaryDirectory() as folder:
        for kind in "ABCDE":
            for seed, path in enumerate(make(kind, pathlib.Path(folder), scale=1000)):
                with open_file(path, mode="read") as file:
                    tensors = list(file.values())
                    found = _device.load(FakeDevice(seed), tensors)
                    for tensor, one in zip(tensors, found):
                        if not torch.equal(one.view(-1).view(torch.uint8),
                                           torch.frombuffer(bytearray(tensor.tobytes()),
                                                            dtype=torch.uint8)):
                            sys.exit("%s: %s was not loaded as it is" % (path, tensor.name))
    print("no CUDA device here; self-test over the fake device: the files A to E, scaled by "
          "1/1000, were loaded as they are")


# ── Arguments ──

def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["ceilings", "load", "correct"])
    parser.add_argument("--files", default="A,B,C")
    parser.add_argument("--loaders", help="names, with commas")
    parser.add_argument("--cold", action="store_true", help="from the disk, not from memory")
    parser.add_argument("--memory", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--disk", type=pathlib.Path, default=pathlib.Path("/var/tmp"))
    parser.add_argument("--out")
    return parser.parse_args(words)


def steps_of(words):
    """The words of each step: "ceilings load --files A" are two."""
    found = []
    for word in words:
        if word in ("ceilings", "load", "correct"):
            found.append([])
        if found:
            found[-1].append(word)
    return found or [words]


def main():
    words = sys.argv[1:]
    if words[:1] == ["worker"]:
        paths = [pathlib.Path(word) for word in words[2:] if not word.startswith("--")]
        return worker(words[1], paths, "--check" in words)
    steps = [options_of(one) for one in steps_of(words)] if words else []
    import torch
    if not torch.cuda.is_available():
        return self_test()
    if not steps:
        sys.exit("which step? see --help")
    failures = []
    for options in steps:
        failures += {"ceilings": ceilings, "load": load, "correct": correct}[options.step](
            options) or []
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
