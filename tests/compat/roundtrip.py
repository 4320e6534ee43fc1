#!/usr/bin/env python3
"""Random dictionaries of tensors through us and the official package, which must be 0.8.0.

    roundtrip.py [--count N] [--seed S]        needs build/tests/rewrite (SFT_BUILD)

Each of N dictionaries (4,000 unless told) is written twice: by the official package, and by
hand in another order with other white space. build/tests/rewrite reads both and writes them
anew, through sources whose elements lie in another order, with gaps (all but F4 and F6). What
comes out must be the same for both, the official bytes where there is one metadata pair at most
(the official order of more is random), and read back by the official package as the dictionary
it was.

Then every file of the corpus and of the shared samples that is accepted at a level is written
anew at that level, opened again and compared; and through the command's select and merge.
"""
import argparse
import ctypes
import glob
import json
import os
import random
import shlex
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    import safetensors
    from safetensors import TensorSpec, deserialize, safe_open, serialize
except ImportError as error:
    print("roundtrip: %s: see tests/requirements.txt" % error)
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

OFFICIAL = "0.8.0"
BATCH = 250
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
REWRITE = shlex.split(os.environ.get("SFT_EMULATE", "")) + [os.path.join(BUILD, "tests", "rewrite")]

COMMAND = shlex.split(os.environ.get("SFT_COMMAND") or os.path.join(BUILD, "safetensors"))

# Header name: (bits, name for TensorSpec).
DTYPES = {"BOOL": (8, "bool"), "U8": (8, "uint8"), "I8": (8, "int8"), "I16": (16, "int16"),
          "U16": (16, "uint16"), "F16": (16, "float16"), "BF16": (16, "bfloat16"),
          "I32": (32, "int32"), "U32": (32, "uint32"), "F32": (32, "float32"),
          "F64": (64, "float64"), "I64": (64, "int64"), "U64": (64, "uint64"),
          "C64": (64, "complex64"), "F8_E4M3": (8, "float8_e4m3fn"),
          "F8_E5M2": (8, "float8_e5m2"), "F8_E8M0": (8, "float8_e8m0fnu"),
          "F8_E4M3FNUZ": (8, "float8_e4m3fnuz"), "F8_E5M2FNUZ": (8, "float8_e5m2fnuz")}
ALPHABET = "abcXYZ019._-/ \"\\\n\t\0\x1b\x7féß漢🎈\u2028"


def known_dtypes():
    """Those the package can be told to write."""
    known = []
    for name, (_, spelled) in DTYPES.items():
        try:
            TensorSpec(dtype=spelled, shape=[0], data_ptr=0, data_len=0)
            known.append(name)
        except Exception:
            pass
    return known


def random_name(rng):
    kind = rng.randrange(8)
    if kind < 5:
        return "model.layers.%d.%s.weight" % (rng.randrange(120), rng.choice("abcdefgh"))
    length = rng.choice((0, 1, 2, 5, 30, 300))
    return "".join(rng.choice(ALPHABET) for _ in range(length))


def random_tensor(rng, dtypes):
    dtype = rng.choice(dtypes)
    shape = [rng.choice((0, 1, 1, 2, 3, 5, 17)) for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 5)))]
    if rng.randrange(200) == 0:
        shape = [1 << 18]
    count = 1
    for dim in shape:
        count *= dim
    return dtype, shape, rng.randbytes(count * DTYPES[dtype][0] // 8)


def random_dict(rng, dtypes):
    tensors = {}
    for _ in range(rng.choice((0, 1, 2, 3, 8, 20, 60))):
        name = random_name(rng)
        if name != "__metadata__":
            tensors[name] = random_tensor(rng, dtypes)
    pairs = rng.choice((None, None, 0, 1, 1, 1, 2, 7))
    metadata = None if pairs is None else {random_name(rng): random_name(rng) for _ in range(pairs)}
    return tensors, metadata


def official(tensors, metadata):
    if not tensors and metadata == {}:  # which the package writes as {},"__metadata__":{}}
        return struct.pack("<Q", 24) + b'{"__metadata__":{}}'.ljust(24)
    keep = {name: ctypes.create_string_buffer(data, len(data) or 1)
            for name, (_, _, data) in tensors.items()}
    specs = {name: TensorSpec(dtype=DTYPES[dtype][1], shape=shape,
                              data_ptr=ctypes.addressof(keep[name]), data_len=len(data))
             for name, (dtype, shape, data) in tensors.items()}
    return bytes(serialize(specs, metadata=metadata))


def by_hand(rng, tensors, metadata):
    """The same in any order of data and header, with any white space."""
    names, at, entries, data = list(tensors), 0, [], b""
    rng.shuffle(names)
    for name in names:
        dtype, shape, part = tensors[name]
        entry = [("dtype", dtype), ("shape", shape), ("data_offsets", [at, at + len(part)])]
        if rng.randrange(4) == 0:
            rng.shuffle(entry)
        entries.append((name, dict(entry)))
        data += part
        at += len(part)
    if metadata is not None:
        entries.append(("__metadata__", metadata))
    rng.shuffle(entries)
    separators = rng.choice(((",", ":"), (", ", ": "), (",\n", "\t:")))
    header = json.dumps(dict(entries), separators=separators, ensure_ascii=rng.randrange(2) == 0)
    header = header.encode() + b" " * rng.choice((0, 3, 8, 64))
    return struct.pack("<Q", len(header)) + header + data


def read_back(path, data):
    """(tensors, metadata) as the official package sees them."""
    tensors = {name: (t["dtype"], list(t["shape"]), bytes(t["data"]))
               for name, t in deserialize(data)}
    with safe_open(path, framework="np") as opened:
        return tensors, opened.metadata()


def rewrite(rows):
    """What build/tests/rewrite says of each (level, from, to)."""
    done = subprocess.run(REWRITE, input="".join("%d\t%s\t%s\n" % row for row in rows),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False)
    return done.stdout.split() if done.returncode == 0 else ["status %d" % done.returncode]


class Batch:
    def __init__(self, folder, rng, dtypes, count):
        self.folder, self.problems = folder, []
        self.dicts = [random_dict(rng, dtypes) for _ in range(count)]
        self.officials = [official(*d) for d in self.dicts]
        for i, d in enumerate(self.dicts):
            self.write("official-%d" % i, self.officials[i])
            self.write("hand-%d" % i, by_hand(rng, *d))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def rewrite(self):
        rows = [(1, self.path("%s-%d" % (kind, i)), self.path("new-%s-%d" % (kind, i)))
                for i in range(len(self.dicts)) for kind in ("official", "hand")]
        said = rewrite(rows)
        if said != ["same"] * len(rows):
            self.problems.append("rewrite: %s" % set(said))
        return not self.problems

    def judge(self, i):
        tensors, metadata = self.dicts[i]
        one, two = self.read("new-official-%d" % i), self.read("new-hand-%d" % i)
        if one != two:
            return "two results of one dictionary"
        if len(metadata or {}) <= 1 and one != self.officials[i]:
            return "not the official bytes"
        if len(one) != len(self.officials[i]):
            return "not of the official length"
        found, found_metadata = read_back(self.path("new-hand-%d" % i), two)
        if found != tensors:
            return "other tensors"
        return None if found_metadata == metadata else "metadata %r" % found_metadata

    def run(self):
        if self.rewrite():
            for i in range(len(self.dicts)):
                what = self.judge(i)
                if what:
                    self.problems.append("%s: %r" % (what, sorted(self.dicts[i][0])[:5]))
        return self.problems


# At level compat a name may stand twice, which no writer writes.
TWICE = {"tensor_duplicate", "metadata_key_duplicate"}
LEVELS = ("compat", "default", "strict")


def accepted():
    """(level, path) of all that is there to be read."""
    corpus = os.path.join(ROOT, "tests", "corpus")
    with open(os.path.join(corpus, "manifest.json"), encoding="utf-8") as f:
        rows = json.load(f)["files"]
    found = [(level, os.path.join(corpus, row["file"])) for row in rows
             for level in range(3) if row["verdict"][LEVELS[level]] == "accept"]
    shared = os.environ.get("SFT_SHARED", os.path.join(ROOT, "..", "shared"))
    found += [(1, path) for path in sorted(glob.glob(shared + "/samples/**/*.safetensors",
                                                     recursive=True))]
    return [(level, path) for level, path in found
            if os.path.isfile(path) and command("check", "--level", LEVELS[level], path) == 0]


def command(*words):
    return subprocess.run(COMMAND + list(words), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode


def by_command(level, path, out):
    """None, or what is wrong with the file once select, then merge, have written it."""
    level = LEVELS[level]
    for words in (["select", path, "--keep", "*", "--copy"], ["merge", path]):
        if os.path.exists(out):
            os.remove(out)
        if command(*words, "-o", out, "--no-sync", "--level", level):
            if words[0] == "select" and command("ls", "--level", level, "--match", "*", path):
                continue  # no tensors
            return "%s does not write %s" % (words[0], path)
        if command("diff", "--level", level, path, out):
            return "%s writes another %s" % (words[0], path)
        if level != "compat":
            with open(out, "rb") as f:
                deserialize(f.read())
    return None


def corpus(folder):
    """(files, problems)."""
    files = accepted()
    rows = [(level, path, os.path.join(folder, str(i))) for i, (level, path) in enumerate(files)]
    said, problems = rewrite(rows), []
    if len(said) != len(rows):
        return len(rows), ["rewrite: %s" % said]
    for (level, path, out), word in zip(rows, said):
        twice = level == 0 and word in TWICE
        wrong = None if word == "same" or twice else "%s at %s: %s" % (path, LEVELS[level], word)
        if not wrong and not twice:
            wrong = by_command(level, path, out + ".safetensors")
        if wrong:
            problems.append(wrong)
    return len(rows), problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20261120)
    args = parser.parse_args()
    if safetensors.__version__ != OFFICIAL:
        print("roundtrip: safetensors %s is installed" % safetensors.__version__)
        print("0 passed, 0 failed, 1 skipped")
        return 0
    rng, dtypes, problems, done = random.Random(args.seed), known_dtypes(), [], 0
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    while done < args.count and len(problems) < 10:
        with tempfile.TemporaryDirectory(prefix="sft-roundtrip-", dir=shm) as folder:
            count = min(BATCH, args.count - done)
            problems += Batch(folder, rng, dtypes, count).run()
            done += count
    with tempfile.TemporaryDirectory(prefix="sft-roundtrip-", dir=shm) as folder:
        files, wrong = corpus(folder)
    problems += wrong
    for what in problems:
        print("FAIL", what)
    print("%d accepted files rewritten" % files)
    print("%d dictionaries of %d dtypes: %s" % (done, len(dtypes), " ".join(dtypes)))
    print("%d passed, %d failed" % (done + files - len(problems), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
