#!/usr/bin/env python3
"""Compare the Python package with the official one, in turns, and print tables.

    python.py [--only small,large,again,slices,save,import] [--repeats 9] [--cpu]
              [--data DIR] [--write [FILE]]

Run it by build/venv/bin/python (make bench-python), which has both packages. Cells, ratios and
--write as in compare.py; --cpu takes processor time for all but saving. Floors, by the best
(exit status 1 when missed): many small tensors 5 times as fast with torch, which borrows a map,
and 2.5 times with numpy, whose arrays own their memory; a slice 10 times where the official
package reads the whole tensor, nothing slower than 0.9 times.

numpy's floor is half of torch's for a reason: a file that is cut short or overwritten must not
take the program down with it, as a map does (SIGBUS), so that load_file of numpy copies, as the
official one does. torch's maps there, and so does ours.
"""
import array
import json
import os
import struct
import sys
import zlib

from contest import Result, cell, compete, few, ratio, run_process, table
from sections import count_processor_time, options, publish, status_of
from worker import serve

COUNTS = (1000, 20000, 100000)
LARGE = 2 << 30
FLOORS = {"torch": 5.0, "numpy": 2.5}  # numpy copies, see above
FLOOR_SLICE, FLOOR_ANY = 10.0, 0.9
PACKAGES = {"ours": "libsafetensors", "official": "safetensors"}


# ── Files ──

def write(path, tensors):
    """tensors: (name, shape) of F32; the values are no two pages the same."""
    if os.path.exists(path):
        return
    entries, at = {}, 0
    for name, shape in tensors:
        size = 4
        for dim in shape:
            size *= dim
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    # Bytes whose floats are small numbers: NaN and subnormals would be slow to add.
    block = array.array("f", (i % 8191 * 0.001 for i in range(1 << 20))).tobytes()
    with open(path + ".part", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for begin in range(0, at, len(block)):
            f.write(block[:min(len(block), at - begin)])
    os.rename(path + ".part", path)


def small(folder, count):
    path = os.path.join(folder, "small-%d.safetensors" % count)
    write(path, [("model.layers.%d.mlp.experts.%d.up_proj.weight" % (i // 64, i % 64), [16, 16])
                 for i in range(count)])
    return path


def large(folder):
    path = os.path.join(folder, "checkpoint.safetensors")
    write(path, [("model.layers.%d.weight" % i, [2048, 1024]) for i in range(LARGE >> 23)])
    return path


def lora(folder):
    path = os.path.join(folder, "lora.safetensors")
    write(path, [("lora_unet_%d.lora_%s.weight" % (i // 2, "up" if i % 2 else "down"),
                  [3072, 16] if i % 2 else [16, 3072]) for i in range(528)])
    return path


def matrix(folder):
    path = os.path.join(folder, "rows.safetensors")
    write(path, [("embed.weight", [131072, 1024])])
    return path


# ── Contestants: python.py work WHAT WHO FRAMEWORK PATH [...] ──

def modules(who, framework):
    package = __import__(PACKAGES[who])
    module = __import__(PACKAGES[who] + "." + framework, fromlist=["load_file"])
    if framework == "torch":
        import torch
        torch.set_num_threads(1)
    return package, module


def plain(framework):
    """From a tensor to an object with a buffer."""
    return (lambda t: t.numpy()) if framework == "torch" else (lambda t: t)


def checksum(tensors, framework):
    total, buffer = 1, plain(framework)
    for tensor in tensors.values():
        total = zlib.adler32(buffer(tensor), total)
    return total


def words(tensors, framework):
    import numpy
    total, buffer = 0, plain(framework)
    for tensor in tensors.values():
        total += int(buffer(tensor).reshape(-1).view(numpy.uint64).sum(dtype=numpy.uint64))
    return total & (2**64 - 1)


def make_load(who, framework, path, consume=""):
    module = modules(who, framework)[1]
    eat = {"": lambda tensors, _: len(tensors), "bytes": checksum, "words": words}[consume]
    return lambda: eat(module.load_file(path), framework)


def make_again(who, framework, path, how):
    """Loads as an application does that goes from one LoRA to the next."""
    module = modules(who, framework)[1]
    with open(path, "rb") as file:
        data = file.read()

    def cast():
        import torch
        return {name: t.to(torch.float16) for name, t in module.load_file(path).items()}
    load = {"pread": lambda: module.load_file(path, backend="pread"),
            "bytes": lambda: module.load(data), "cast": cast}[how]
    return lambda: int(1000 * sum(float(t.reshape(-1)[-1]) for t in load().values()))


def make_slice(who, framework, path, expression, backend):
    package = modules(who, framework)[0]
    index = eval("_[%s]" % expression, {"_": Index()})
    buffer = plain(framework)

    def run():
        with package.safe_open(path, framework, backend=backend) as file:
            part = file.get_slice("embed.weight")[index]
        return zlib.adler32(buffer(part).copy(order="C"))
    return run


class Index:
    def __getitem__(self, index):
        return index


def make_save(who, framework, path, out, sync):
    package, module = modules(who, framework)
    tensors = {name: tensor.copy() if framework == "numpy" else tensor.clone()
               for name, tensor in module.load_file(path).items()}
    out += "-%s-%s-%s" % (who, framework, sync)

    def ours():
        module.save_file(tensors, out, sync=bool(sync))
        return os.path.getsize(out)

    def official():
        module.save_file(tensors, out)
        if sync:
            for place, flags in ((out, os.O_RDWR), (os.path.dirname(out), os.O_RDONLY)):
                handle = os.open(place, flags)
                os.fsync(handle)
                os.close(handle)
        return os.path.getsize(out)
    return ours if who == "ours" else official


WORK = {"load": make_load, "again": make_again, "slice": make_slice, "save": make_save}


# ── Tables ──

class Bench:
    def __init__(self, args):
        self.args, self.missed = args, []

    def duel(self, what, title, floor, framework, *rest):
        """(Result of ours, of the official package), which must agree."""
        got = compete({who: [sys.executable, os.path.abspath(__file__), "work", what, who,
                             framework, *map(str, rest)] for who in PACKAGES}, self.args.repeats)
        ours, official = got["ours"], got["official"]
        if not isinstance(ours, Result):
            raise SystemExit("%s: %s" % (title, ours))
        if isinstance(official, Result):
            if ours.sums != official.sums:
                self.missed.append("%s: the results differ" % title)
            self.floor(title, min(official.samples) / min(ours.samples), floor)
        return ours, official

    def floor(self, title, got, floor):
        if got < floor:
            self.missed.append("%s: %s times, the floor is %s" % (title, few(got), few(floor)))

    def small(self):
        rows = []
        for framework, floor in FLOORS.items():
            for count in COUNTS:
                path = small(self.args.data, count)
                title = "load_file of %d tensors, %s" % (count, framework)
                load = self.duel("load", title, floor, framework, path)
                read = self.duel("load", title + ", every byte read", FLOOR_ANY, framework, path,
                                 "bytes")
                rows.append([framework, format(count, ","), *map(cell, load),
                             ratio(load[1], load[0]), *map(cell, read), ratio(read[1], read[0])])
        return table(["", "tensors", "ours, ms", "official, ms", "official ÷ ours",
                      "ours and every byte read, ms", "official, ms", "official ÷ ours"], rows) + (
            "\n`load_file`, tensors of 1 KiB (F32, 16 × 16), warm cache; letting go of the "
            "tensors is counted. Every byte read: by `zlib.adler32` of each tensor, which costs "
            "both the same.\n")

    def large(self):
        rows, path = [], large(self.args.data)
        for framework in FLOORS:
            title = "load_file of 2 GB, " + framework
            view = self.duel("load", title, FLOOR_ANY, framework, path)
            read = self.duel("load", title + ", summed", FLOOR_ANY, framework, path, "words")
            rows.append([framework, *map(cell, view), ratio(view[1], view[0]), *map(cell, read),
                         ratio(read[1], read[0])])
        return table(["", "ours, ms", "official, ms", "official ÷ ours",
                      "ours and every byte summed, ms", "official, ms", "official ÷ ours"],
                     rows) + (
            "\n`load_file` of 2.1 GB in 256 tensors, warm cache, one thread; summed by numpy as "
            "64-bit words.\n")

    def again(self):
        rows, path = [], lora(self.args.data)
        for title, framework, how in (
                ('`load_file(…, backend="pread")`', "torch", "pread"),
                ("`load(bytes)`", "torch", "bytes"), ("`load(bytes)`", "numpy", "bytes"),
                ("`load_file` and `.to(torch.float16)`", "torch", "cast")):
            got = self.duel("again", "%s, %s" % (title, framework), FLOOR_ANY, framework, path,
                            how)
            rows.append([title, framework, *map(cell, got), ratio(got[1], got[0])])
        return table(["", "", "ours, ms", "official, ms", "official ÷ ours"], rows) + (
            "\nA LoRA of 104 MB in 528 tensors (F32), loaded again and again in one process, "
            "warm cache; letting go of the tensors is counted.\n")

    def slices(self):
        rows, path = [], matrix(self.args.data)
        for framework in FLOORS:
            for backend in ("mmap", "pread"):
                for text in ("1000:1100", ":, 512:520", "70000, 10:20"):
                    # The official package takes the whole tensor into memory first.
                    floor = FLOOR_SLICE if backend == "pread" else FLOOR_ANY
                    got = self.duel("slice", "slice [%s], %s by %s" % (text, framework, backend),
                                    floor, framework, path, text, backend)
                    rows.append([framework, backend, "`[%s]`" % text, *map(cell, got),
                                 ratio(got[1], got[0])])
        return table(["", "backend", "slice", "ours, ms", "official, ms", "official ÷ ours"],
                     rows) + (
            "\n`safe_open`, one `get_slice` of F32 [131072, 1024] (537 MB), close; warm cache, "
            "every byte of the result read.\n")

    def save(self):
        out = os.path.join(self.args.data, "saved")
        rows = []
        for title, path in (("1,000 of 1 KiB", small(self.args.data, 1000)),
                            ("20,000 of 1 KiB", small(self.args.data, 20000)),
                            ("one of 537 MB", matrix(self.args.data))):
            for framework in FLOORS:
                durable, fast = (self.duel("save", "save_file of %s, %s, %s" % (title, framework,
                                                                                how),
                                           FLOOR_ANY, framework, path, out, sync)
                                 for how, sync in (("durable", "sync"), ("sync=False", "")))
                rows.append([framework, title, *map(cell, durable), ratio(durable[1], durable[0]),
                             *map(cell, fast), ratio(fast[1], fast[0])])
        return table(["", "tensors", "ours, ms", "official and fsync, ms", "official ÷ ours",
                      "ours, `sync=False`, ms", "official, ms", "official ÷ ours"], rows) + (
            "\nWall time. `save_file` replaces the file of the previous turn. Ours waits for the disk "
            "by default; the official package does not, so it is followed by fsync of the file "
            "and of its folder.\n")

    def import_(self):
        rows, bare, cases = [], Result([]), ("{}", "{}.numpy", "{}.torch")
        got = {(who, what): Result([]) for what in cases for who in PACKAGES}
        for _ in range(self.args.repeats):
            bare.samples.append(run_process([sys.executable, "-c", "pass"]))
            for (who, what), result in got.items():
                program = "import " + what.format(PACKAGES[who])
                result.samples.append(run_process([sys.executable, "-c", program]))
        for what in cases:
            ours, official = got["ours", what], got["official", what]
            self.floor("import " + what.format("…"),
                       min(official.samples) / min(ours.samples), FLOOR_ANY)
            rows.append(["`import %s`" % what.format("…"), cell(ours), cell(official),
                         ratio(official, ours)])
        rows.append(["Python alone", cell(bare), "", ""])
        return table(["", "ours, ms", "official, ms", "official ÷ ours"], rows) + (
            "\nWhole processes; numpy and torch are imported by the modules of that "
            "name only.\n")


SECTIONS = ("small", "large", "again", "slices", "save", "import")


def main():
    args = options(__doc__, SECTIONS, "python", 9, cpu=True)
    bench = Bench(args)
    for name in args.chosen:
        cpu = args.cpu and name != "save"
        count_processor_time(cpu)
        publish(args, "python", name, getattr(bench, name + "_" * (name == "import"))(), cpu)
    return status_of(bench.missed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        serve(WORK[sys.argv[2]](*sys.argv[3:]))
    else:
        sys.exit(main())
