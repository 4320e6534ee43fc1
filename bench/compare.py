#!/usr/bin/env python3
"""Compare the library with others, in turns, and print tables.

    compare.py [--only header,memory,hostile,process,bytes,slices,info,cold,hash,convert,quantised,
               quantising,adapters,gguf,torch,remote,read,save,edit,reshape] [--repeats 9]
               [--data DIR] [--build DIR] [--cpu] [--write [FILE]]

Contestants of one row run in turns (A B C A B C …); a cell is the median and, in brackets,
the best; so for ratios. All contestants of bytes and slices return a checksum of
every byte, and must agree. Floors (exit status 1 when missed), by the best: header ten times
as fast as the official package at 92,000 tensors; memory at most twice the header; sha256
and autov3 together as fast as OpenSSL's sha256 alone, but for a twentieth of noise; sha256 of
many files twice as fast as OpenSSL for the same processor time where there is AVX-512, 1.3 times
elsewhere; blake3 as fast as b3sum, but for a twentieth; casts to
BF16 twice as fast as torch on one core, or within three tenths of memcpy; values of FP8 and
INT8 in 1.2, of NVFP4 and ConvRot in 2 times the time of a durable copy of them; GGUF's Q8_0 and
Q4_0 as F16 1.0, Q4_K and Q6_K 0.6 G elements a second; 20,000 tensors of PyTorch listed in
25 ms of processor time; a durable save 1.5 times as fast as the official one with fsync; an
edit in place 1,000 times as fast as a rewrite by the official package, a growing one of a file
that is not cached 100 times; headers of 72 shards at 50 ms a request in 1.3 s; 1 GiB from nginx
0.9 times as fast as curl with 8 ranges at once, for 1.5 times its processor time; of a folder
that is not cached 1.3 times the bytes that are needed. Torch and
huggingface_hub are compared with where Python has them.
--cpu takes processor time instead of wall time: for busy machines.
--write puts each table between its markers in FILE (default docs/measured.md).
"""
import json
import os
import statistics
import subprocess
import sys

from adapters import Adapters
from cold import Cold
from contest import (Result, cell, compete, few, has_program, header_bytes, ratio, run_process,
                     table, take_turns, tensor_names)
from imports import Imports
from quantised import Quantised
from remote import Remote
from sections import ROOT, count_processor_time, load_since, options, publish, status_of
from writing import Writing

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = (300, 1200, 18867, 92000, 700000)
FLOOR_COUNT, FLOOR_RATIO, FLOOR_MEMORY, FLOOR_HASH = 92000, 10.0, 2.0, 0.95
FLOOR_CAST, FLOOR_COPY = 2.0, 1.3
FLOOR_LANES, FLOOR_STREAMS, FLOOR_BLAKE3 = 2.0, 1.3, 0.95

UNCHECKED = [
    ("this library, level default", "nothing that docs/format.md lists for its level"),
    ("official package", "accepts two tensors of one name and two metadata keys of one name "
     "(the last counts), entries that are arrays, any rank"),
    ("Python json", "everything about tensors; also accepts NaN, Infinity, equal keys"),
    ("jansson", "everything about tensors; equal keys overwrite each other; integers over "
     "2^63 are refused, a NUL in a name too"),
    ("cJSON", "everything about tensors; UTF-8; bytes after the object; control characters in "
     "strings; numbers become double (exact to 2^53); cuts names at NUL"),
    ("json-c", "everything about tensors; UTF-8; bytes after the object; comments, NaN, single "
     "quotes, trailing commas and leading zeros pass; integers are clamped; cuts names at NUL"),
]


class Bench(Adapters, Cold, Imports, Quantised, Remote, Writing):
    def __init__(self, args):
        self.args = args
        self.missed, self.held, self.notes = [], [], []
        self.official = self.has_official()

    def has_official(self):
        try:
            import numpy  # noqa: F401
            import safetensors
            return safetensors.__version__
        except ImportError:
            return None

    def tool(self, name):
        return os.path.join(self.args.build, "bench", name)

    def data(self, name):
        return os.path.join(self.args.data, name + ".safetensors")

    def python(self, *arguments):
        return [sys.executable, os.path.join(HERE, "worker.py"), *arguments]

    # ── header ──

    def header(self):
        names = ["ours", "ours, in memory", "official", "Python json", "jansson", "cJSON", "json-c"]
        rows = []
        for count in COUNTS:
            path = self.data("headers-%d" % count)
            got = compete(dict(zip(names, [
                [self.tool("bench_open"), "path", path],
                [self.tool("bench_open"), "memory", path],
                self.python("open", path), self.python("json", path),
                [self.tool("rival_jansson"), path], [self.tool("rival_cjson"), path],
                [self.tool("rival_json_c"), path]])), self.args.repeats)
            ours, others = got["ours"], [got[name] for name in names]
            rows.append([format(count, ","), *map(cell, others)])
            rows.append(["÷ ours", "1", *[ratio(o, ours) for o in others[1:]]])
            if count == FLOOR_COUNT and isinstance(got["official"], Result):
                self.floor("header, %d tensors" % count,
                           min(got["official"].samples) / min(ours.samples), FLOOR_RATIO, True)
        text = table(["tensors", *[n + ", ms" for n in names]], rows)
        note = ("`ours`: `sft_open` of the path at level default, that is open, read, parse, "
                "validate, index and close. `official`: `safe_open(path, \"np\")`, without the "
                "import. The JSON parsers only build their tree of header text already in "
                "memory.\n\nWhat each leaves unchecked:\n\n")
        return text + "\n" + note + table(["reader", "unchecked"], UNCHECKED)

    # ── memory ──

    def memory(self):
        rows = []
        for count in COUNTS:
            path = self.data("headers-%d" % count)
            size = header_bytes(path)
            counted = json.loads(subprocess.check_output(
                [self.tool("bench_open"), "count", path], text=True))
            if counted["left"]:
                self.missed.append("memory, %d tensors: %d bytes never released"
                                   % (count, counted["left"]))
            rss = compete({"ours": [self.tool("bench_open"), "path", path],
                           "official": self.python("open", path),
                           "json": self.python("json", path)}, 0)
            rows.append([format(count, ","), "%.2f MB" % (size / 1e6),
                         "%.2f×" % (counted["peak"] / size), str(counted["calls"]),
                         *[self.rss(rss[name], size) for name in ("ours", "official", "json")]])
            if size > 1e6:
                self.floor("memory, %d tensors" % count, counted["peak"] / size, FLOOR_MEMORY,
                           False)
        return table(["tensors", "header", "ours, counted", "allocations", "ours, RSS",
                      "official, RSS", "Python json, RSS"], rows) + (
            "\nCounted: peak of all memory got from the allocator, the copy of the header "
            "included, over the header's size. RSS: how much the first open raises the process's "
            "high-water mark (Python json: with the text already in memory); it means little for "
            "small headers.\n")

    def rss(self, result, size):
        if not isinstance(result, Result):
            return "–"
        return "%.1f MB (%.1f×)" % (result.memory / 1e3, result.memory * 1024 / size)

    # ── hostile ──

    def hostile(self):
        what = {"field": "an ignored field of 50 M zeros", "dims": "a shape of 50 M dimensions",
                "empty": "1.7 M tensors without elements", "nested": "arrays nested to 127",
                "arrays": "3.6 M tensors as arrays", "pairs": "7.7 M metadata pairs"}
        rows = []
        for name, title in what.items():
            path = self.data("hostile-" + name)
            size = header_bytes(path)
            got = compete({"ours": [self.tool("bench_open"), "path", path, "compat"],
                           "official": self.python("open", path)}, max(3, self.args.repeats // 3))
            rows.append([title, "%.0f MB" % (size / 1e6), cell(got["ours"]),
                         cell(got["official"]), ratio(got["official"], got["ours"]),
                         self.rss(got["ours"], size), self.rss(got["official"], size)])
        return table(["header", "size", "ours, ms", "official, ms", "official ÷ ours",
                      "ours, RSS", "official, RSS"], rows) + (
            "\nAt level compat, because the official package accepts them all.\n")

    # ── process ──

    def process(self):
        script = ("import sys\nfrom safetensors import safe_open\n"
                  "with safe_open(sys.argv[1], 'np') as f:\n"
                  "    for k in f.keys():\n"
                  "        s = f.get_slice(k)\n"
                  "        print(k, s.get_dtype(), s.get_shape())\n")
        rows = []
        if not os.access(os.path.join(self.args.build, "safetensors"), os.X_OK):
            return "The command is not built.\n"
        for count in COUNTS[:4]:
            path = self.data("headers-%d" % count)
            commands = {"floor": ["/bin/true"],
                        "ours": [os.path.join(self.args.build, "safetensors"), "ls", path],
                        "official": [sys.executable, "-c", script, path],
                        "bare": [sys.executable, "-c", "pass"]}
            got = {name: Result([]) for name in commands}
            for _ in range(self.args.repeats):
                for name, command in commands.items():
                    got[name].samples.append(run_process(command))
            rows.append([format(count, ","), *[cell(got[n]) for n in commands],
                         ratio(got["official"], got["ours"])])
        return table(["tensors", "`/bin/true`, ms", "`safetensors ls`, ms",
                      "Python and `safe_open`, ms", "Python alone, ms", "official ÷ ours"],
                     rows) + ("\nWhole processes, output discarded: open the file and print "
                              "name, dtype and shape of every tensor.\n")

    # ── bytes ──

    def bytes(self):
        rows = []
        for name, title in (("large", "536 MB in 291 tensors"), ("small", "77 MB in 18,867")):
            path = self.data(name)
            modes = ("map-sum", "view-sum", "pread", "read-into")
            commands = {mode: [self.tool("bench_bytes"), mode, path] for mode in modes}
            commands["official"] = self.python("get", path)
            got = compete(commands, self.args.repeats)
            self.agree("bytes of " + name, got.values())
            size = os.path.getsize(path) / 1e6
            rows.append([title, *[self.speed(got[m], size) for m in commands]])
            rows.append(["time ÷ plain", "1", ratio(got["view-sum"], got["map-sum"]), "1",
                         ratio(got["read-into"], got["pread"]),
                         ratio(got["official"], got["map-sum"])])
        return table(["file", "plain map", "`sft_view`", "plain `pread`", "`sft_read_into`",
                      "official `get_tensor`"], rows) + (
            "\nWarm cache, one thread, GB/s at the median; every byte is summed as 64-bit words "
            "in all of them, and the sums agree. official: numpy arrays over its map, summed by "
            "numpy.\n")

    def speed(self, result, megabytes):
        if not isinstance(result, Result):
            return "–"
        return "%.1f" % (megabytes / result.median)

    # ── slices ──

    def slices(self):
        cases = [("matrix", "1000:1200"), ("matrix", ":, 100:164"),
                 ("matrix", "1000:3000, 1000:3000"), ("matrix", "17"), ("matrix", "::8, 0:64"),
                 ("cube", ":, 100:200, 4:8"), ("cube", "3, ..., 0:256"), ("cube", "::-1")]
        rows = []
        for name, text in cases:
            path = self.data(name)
            got = compete({"read": [self.tool("bench_bytes"), "slice", path, text],
                           "map": [self.tool("bench_bytes"), "slice-map", path, text],
                           "official": self.python("slice", path, text)}, self.args.repeats)
            self.agree("slice [%s]" % text, got.values())
            refused = not isinstance(got["official"], Result)
            rows.append(["%s `[%s]`" % (name, text), cell(got["read"]), cell(got["map"]),
                         "refused" if refused else cell(got["official"]),
                         ratio(got["official"], got["read"]), ratio(got["official"], got["map"])])
        return table(["slice", "`sft_slice_read`, by read, ms", "by map, ms",
                      "official `get_slice`, ms", "official ÷ read", "official ÷ map"], rows) + (
            "\nF32, matrix 4096 × 4096 and cube 64 × 512 × 512, warm cache, file open already; "
            "every byte of the result is summed, and the sums agree.\n")

    # ── convert ──

    def convert(self):
        pairs = [("cast-f32", "F32", "BF16"), ("cast-f32", "F32", "F16"),
                 ("cast-f32", "F32", "F8_E4M3"), ("cast-f32", "F32", "F8_E5M2"),
                 ("cast-f8", "F8_E4M3", "BF16")]
        rows, files = [], []
        for name, before, after in pairs:
            path, title = self.data(name), "%s → %s" % (before, after)
            out = os.path.join(self.args.data, "converted")
            got = compete({"copy": [self.tool("bench_convert"), "copy", path, after],
                           "ours": [self.tool("bench_convert"), "cast", path, after],
                           "numpy": self.python("cast", path, after),
                           "torch": self.python("torch", path, after)}, self.args.repeats)
            rows.append([title, *map(cell, got.values()), ratio(got["ours"], got["copy"]),
                         ratio(got["numpy"], got["ours"]), ratio(got["torch"], got["ours"])])
            if after == "BF16" and isinstance(got["torch"], Result):
                fast = min(got["torch"].samples) / min(got["ours"].samples)
                slow = min(got["ours"].samples) / min(got["copy"].samples)
                if fast >= FLOOR_CAST or slow > FLOOR_COPY:
                    self.floor("convert, %s, against torch" % title, fast, FLOOR_CAST, True)
                else:
                    self.floor("convert, %s, time against memcpy" % title, slow, FLOOR_COPY,
                               False)
            got = compete({"ours": [self.tool("bench_convert"), "convert", path, after, out],
                           "two": [self.tool("bench_convert"), "convert-2", path, after, out],
                           "numpy": self.python("cast", path, after, out + ".numpy"),
                           "torch": self.python("torch", path, after, out + ".torch")},
                          max(3, self.args.repeats // 2))
            files.append([title, *map(cell, got.values()), ratio(got["numpy"], got["ours"]),
                          ratio(got["torch"], got["ours"])])
            for end in ("", ".numpy", ".torch"):
                if os.path.exists(out + end):
                    os.unlink(out + end)
        return table(["in memory", "memcpy, ms", "`sft_cast`, ms", "numpy, ms", "torch, ms",
                      "ours ÷ memcpy", "numpy ÷ ours", "torch ÷ ours"], rows) + (
            "\n64 Mi elements, one thread. memcpy moves as many bytes in and out. numpy with "
            "ml_dtypes where the dtype is not its own.\n\n") + table(
            ["file to file", "one thread, ms", "two threads, ms", "numpy, ms",
             "torch, ms", "numpy ÷ ours", "torch ÷ ours"], files) + (
            "\nWarm cache, no fsync. numpy: a map, `astype`, `tofile`. torch: `load_file`, `to`, "
            "`save_file` of the official package, one thread.\n")

    # ── info ──

    def info(self):
        folder, command = os.path.join(self.args.data, "loras"), self.command()
        files = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        script = ("import json, os, struct, sys\n"
                  "for name in sorted(os.listdir(sys.argv[1])):\n"
                  "    with open(os.path.join(sys.argv[1], name), 'rb') as f:\n"
                  "        header = json.loads(f.read(struct.unpack('<Q', f.read(8))[0]))\n"
                  "    m = header['__metadata__']\n"
                  "    tags = json.loads(m['ss_tag_frequency'])\n"
                  "    best = max(next(iter(tags.values())).items(), key=lambda t: t[1])\n"
                  "    print(name, m['ss_output_name'], m['ss_network_dim'], best[0])\n")
        commands = {"`safetensors info`, a line each": [command, "info", folder],
                    "`safetensors info --jsonl`, everything": [command, "info", "--jsonl", folder],
                    "`safetensors ls --tsv`, only the tensors": [command, "ls", "--tsv", folder],
                    "Python: json of the header and of the tags": [sys.executable, "-c", script,
                                                                   folder]}
        got = take_turns(commands, self.args.repeats)
        ours = got["`safetensors info`, a line each"]
        rows = [[name, cell(wall), cell(cpu), ratio(wall, ours[0]), ratio(cpu, ours[1])]
                for name, (wall, cpu) in got.items()]
        size = statistics.mean(header_bytes(path) for path in files) / 1e3
        return table(["1,000 models", "wall, ms", "processor, ms", "wall ÷ first",
                      "processor ÷ first"], rows) + (
            "\nWhole processes, output discarded, warm cache. LoRAs of %d tensors as kohya's "
            "scripts write them, headers of %.0f KB, most of it 6,800 tags.\n"
            % (len(tensor_names(files[0])), size))

    # ── hash ──

    def hash(self):
        huge, many = self.data("huge"), os.path.join(self.args.data, "many")
        parts = sorted(os.path.join(many, name) for name in os.listdir(many))
        ours, one = [self.command(), "hash"], "--threads=1"
        two, five = "sha256,autov3", "sha256,autov2,autov3,crc32,blake3"
        commands = {
            "`hash --algo %s`" % five: [*ours, "--algo", five, huge],
            "the same, one thread": [*ours, one, "--algo", five, huge],
            "`hash --algo sha256,autov3`": [*ours, "--algo", two, huge],
            "the same two, one thread": [*ours, one, "--algo", two, huge],
            "`hash`": [*ours, huge],
            "`sha256sum`": ["sha256sum", huge],
            "`openssl sha256`": ["openssl", "dgst", "-sha256", huge],
            "`hash --algo blake3`": [*ours, "--algo", "blake3", huge],
            "BLAKE3, one thread": [*ours, one, "--algo", "blake3", huge],
            "`b3sum`": ["b3sum", huge],
            "`b3sum`, one thread": ["b3sum", "--num-threads", "1", huge],
            "`hash` of many": [*ours, many], "`hash` of many, one thread": [*ours, one, many],
            "`sha256sum` of many": ["sha256sum", *parts],
            "`openssl sha256` of many": ["openssl", "dgst", "-sha256", *parts]}
        got = take_turns({n: c for n, c in commands.items() if has_program(c[0])},
                              max(3, self.args.repeats // 3))
        rows = []
        for name in commands:
            if name not in got:
                rows.append([name, "–", "–", "–"])
                continue
            size = os.path.getsize(parts[0]) * 64 if "of many" in name else os.path.getsize(huge)
            wall, cpu = got[name]
            rows.append([name, *[cell(r) for r in (wall, cpu)],
                         "%.2f GB/s" % (size / 1e6 / min(cpu.samples))])  # by the best
        three = ("`sha256sum`", "`openssl sha256`", "`b3sum`")
        if all(name in got for name in three):
            rows.append(["%s, %s and %s one after the other" % three,
                         *[cell(Result([sum(x) for x in zip(*[got[n][i].samples for n in three])]))
                           for i in (0, 1)], ""])
        self.hash_floors(got)
        return self.hash_kernels() + table(["", "wall, ms", "processor, ms", "per processor"],
                                           rows) + (
            "\nWhole processes, warm cache. One file of 2.1 GB, and 64 files of 67 MB (holes: "
            "no disk is measured). `hash` and `b3sum` share the work between all processors.\n")

    def hash_floors(self, got):
        def faster(name, other, which):
            return min(got[other][which].samples) / min(got[name][which].samples)
        if "`openssl sha256`" in got:
            self.floor("sha256 and autov3 against OpenSSL's sha256, wall time",
                       faster("`hash --algo sha256,autov3`", "`openssl sha256`", 0), FLOOR_HASH,
                       True)
            self.floor("sha256 of many files against OpenSSL's, processor time",
                       faster("`hash` of many, one thread", "`openssl sha256` of many", 1),
                       FLOOR_LANES if self.has_avx512() else FLOOR_STREAMS, True)
        if "`b3sum`" in got:
            self.floor("blake3 against b3sum, processor time",
                       faster("BLAKE3, one thread", "`b3sum`, one thread", 1), FLOOR_BLAKE3, True)

    @staticmethod
    def has_avx512():
        try:
            with open("/proc/cpuinfo") as info:
                return "avx512bw" in info.read()
        except OSError:
            return False

    def hash_kernels(self):
        """SHA-256 in memory, by each kernel, in processor time."""
        tool, before = self.tool("bench_hash"), os.environ.get("BENCH_CPU")
        titles = {"one": "one stream", "two": "two streams", "four": "four streams",
                  "eight": "eight lanes (AVX2)", "sixteen": "sixteen lanes (AVX-512)",
                  "chosen": "as the trial chooses"}
        older = "OpenSSL without SHA instructions"
        os.environ["BENCH_CPU"] = "1"
        got = compete({**{name: [tool, name] for name in titles},
                       "openssl": self.python("sha256"),
                       older: ["env", "OPENSSL_ia32cap=:~0x20000000", *self.python("sha256")]},
                      self.args.repeats)
        if not before:
            del os.environ["BENCH_CPU"]
        self.agree("hash kernels", got.values())
        rows = []
        for name, title in {**titles, "openssl": "OpenSSL (Python's hashlib)",
                            older: older}.items():
            result = got[name]
            speed = "%.2f GB/s" % (16 * 16 * 65.536e-3 / min(result.samples)) \
                if isinstance(result, Result) else "–"
            rows.append([title, cell(result), speed, ratio(got["openssl"], result),
                         ratio(got[older], result)])
        return table(["SHA-256 of 16 streams in memory", "processor, ms", "speed",
                      "OpenSSL ÷ ours", older + " ÷ ours"], rows) + "\n"

    def command(self):
        return os.path.join(self.args.build, "safetensors")

    # ── judging ──

    def agree(self, what, results):
        sums = set().union(*[r.sums for r in results if isinstance(r, Result)])
        if len(sums) > 1:
            self.missed.append(what + ": the checksums differ")

    def floor(self, what, value, floor, least):
        missed = value < floor if least else value > floor
        line = "%s: %s, the %s is %s" % (what, few(value), "least" if least else "most",
                                         few(floor))
        (self.missed if missed else self.held).append(line)


SECTIONS = ("header", "memory", "hostile", "process", "bytes", "slices", "info", "cold",
            "hash", "convert", "quantised", "quantising", "adapters", "gguf", "torch", "remote",
            "read", "save", "edit", "reshape")
BUSY = SECTIONS[-5:]  # of these the load of the machine is told


def main():
    args = options(__doc__, SECTIONS, "data", 9, cpu=True,
                   more=[("--build", os.path.join(ROOT, "build"))])
    count_processor_time(args.cpu)
    if set(args.chosen) - {"quantised", "quantising"}:  # which have files of their own
        subprocess.run([sys.executable, os.path.join(HERE, "gen.py"), args.data], check=True)
    bench = Bench(args)
    if not bench.official:
        print("the official package and numpy are missing: no comparison with them")
    for name in args.chosen:
        before = os.getloadavg()[0]
        text = getattr(bench, name)()
        if name in BUSY:
            text += load_since(before)
        publish(args, "compare", name, text, args.cpu)
    for line in bench.notes:
        print("left out: " + line)
    for line in bench.held:
        print("held: " + line)
    return status_of(bench.missed)


if __name__ == "__main__":
    sys.exit(main())
