"""What the tests of interrupted and failing writing share: a folder of models, the commands
that write there, and the verdict on what they left."""
import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
LIMIT = 120
FRESH = re.compile(rb"-[0-9a-f]{8}\.safetensors")
LONG = "longer than what the header has to spare " * 4


class Wrong(Exception):
    pass


def command():
    build = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
    return shlex.split(os.environ.get("SFT_COMMAND", os.path.join(build, "safetensors")))


def run(words, folder, stdin=b"", before=(), **more):
    env = dict(os.environ, LC_ALL="C.UTF-8", HOME=folder)
    return subprocess.run([*before, *command(), *words], cwd=folder, input=stdin, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
                          check=False, **more)


# ── The folder ──

def model(tensors, metadata=None, spare=0):
    """A file's bytes; tensors: name -> (dtype, shape, bytes)."""
    header, begin = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + len(data)]}
        begin += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (spare + -(len(text) + spare) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values())


def floats(count, seed):
    """Bits of ordinary F32s: no NaN."""
    bits = bytearray(random.Random(seed).randbytes(4 * count))
    bits[3::4] = bytes(b & 0x80 | 0x3c + (b & 3) for b in bits[3::4])
    return bytes(bits)


def npy(rows):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 3), }" % rows
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + floats(3 * rows, 5)


def make_models(scale):
    """path -> bytes; about `scale` bytes in m.safetensors, a quarter in each of the others."""
    n = scale // 4
    whole = {"a": ("F32", [n], floats(n, 1)), "b": ("F16", [64], bytes(128)),
             "c": ("U8", [100000], bytes(100000))}
    files = {"m.safetensors": model(whole, {"k": "v", "path": "/home/me/x"}, 64),
             "x.npy": npy(n // 12), "out/old.safetensors": model({"o": ("U8", [9], b"old bytes")})}
    files["l.safetensors"] = model({
        "lora_unet_x.lora_down.weight": ("F32", [8, n // 64], floats(n // 8, 6)),
        "lora_unet_x.lora_up.weight": ("F32", [n // 64, 8], floats(n // 8, 7)),
        "lora_unet_x.alpha": ("F32", [], floats(1, 8))})
    files["page.html"] = b"<!DOCTYPE html>old"
    part = {"a": ("F32", [n // 4], floats(n // 4, 2))}
    files["bad.safetensors"] = model(part) + b"trailing"
    shards = ["set/m-0000%d-of-00003.safetensors" % i for i in (1, 2, 3)]
    for name, path in zip("abc", shards):
        files[path] = model({name: ("F32", [n // 12], floats(n // 12, 3))}, None, 64)
    index = {"metadata": {"total_size": n // 12 * 12},
             "weight_map": {n: os.path.basename(p) for n, p in zip("abc", shards)}}
    files["set/m.safetensors.index.json"] = json.dumps(index).encode()
    return files


def make_folder(folder, files, wanted):
    """Those of the files whose path begins with one of the wanted words."""
    os.makedirs(os.path.join(folder, "out", "empty"))
    for path, content in files.items():
        if path.startswith(tuple(wanted.split())):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
            with open(os.path.join(folder, path), "wb") as file:
                file.write(content)


# ── The commands ──

M, INDEX, OLD = "m.safetensors", "set/m.safetensors.index.json", "out/old.safetensors"
# name, files it needs, words, bytes of standard input
SCENES = [
    ("place", "m.", ["meta", "set", M, "k", "another value"], b""),
    ("grow", "m.", ["meta", "set", M, "k", LONG], b""),
    ("safe", "m.", ["meta", "set", M, "k", "another value", "--safe"], b""),
    ("scrub", "m.", ["meta", "scrub", M], b""),
    ("copy", "m.", ["meta", "set", M, "k", LONG, "-o", "out/new.safetensors"], b""),
    ("index", "set", ["meta", "set", INDEX, "k", "v"], b""),
    ("shards", "set", ["meta", "set", INDEX, "k", "v", "--each-shard"], b""),
    ("rename", "m.", ["rename", M, "--map", "a=first"], b""),
    ("rename-set", "set", ["rename", INDEX, "--add-prefix", "y."], b""),
    ("rename-out", "set", ["rename", INDEX, "--add-prefix", "y.", "-o", "out/new"], b""),
    ("convert", "m.", ["convert", M, "--dtype", "BF16", "-o", "out/new.safetensors"], b""),
    ("convert-over", "m.", ["convert", M, "--dtype", "F16", "-o", M, "--force"], b""),
    ("convert-set", "set", ["convert", INDEX, "--dtype", "F64", "-o", "out/new"], b""),
    ("split", "m.", ["split", M, "--count", "3", "-o", "out/empty"], b""),
    ("catalog", "m. page", ["catalog", M, "-o", "page.html", "--force"], b""),
    ("catalog-new", "m.", ["catalog", M, "-o", "out/new.html"], b""),
    ("merge", "set out", ["merge", INDEX, "-o", OLD, "--force"], b""),
    ("select", "m.", ["select", M, "--drop", "b", "-o", "out/new.safetensors"], b""),
    ("repair", "bad", ["repair", "bad.safetensors", "-o", "out/new.safetensors"], b""),
    ("add", "m. x.npy", ["add", M, "n=x.npy"], b""),
    ("add-set", "set x.npy", ["add", INDEX, "n=x.npy"], b""),
    ("select-set", "set", ["select", INDEX, "--in-place", "--drop", "b"], b""),
    ("convert-here", "set", ["convert", INDEX, "--in-place", "--dtype", "F64"], b""),
    ("rm-tensor", "m.", ["rm-tensor", M, "b"], b""),
    ("repair-set", "set", ["repair", INDEX, "-o", "out/new", "--copy"], b""),
    ("resize", "l.", ["lora", "resize", "l.safetensors", "--rank", "2", "-o", "out/new.safetensors"],
     b""),
    ("export", "m.", ["convert", M, "-o", "out/new.npz"], b""),
    ("import", "x.npy", ["convert", "x.npy", "-o", "out/new.safetensors"], b""),
    ("put", "m.", ["put", M, "c"], bytes(range(250)) * 400),
]


# ── What there is ──

def plain(text):
    """The name without the random digits of a rewritten shard."""
    return FRESH.sub(b"-fresh000.safetensors", text)


def look(folder):
    """path -> bytes of every file, None for a folder."""
    found = {}
    for at, folders, names in os.walk(folder):
        below = os.path.relpath(at, folder)
        for name in folders:
            found[os.path.normpath(os.path.join(below, name))] = None
        for name in names:
            path = os.path.normpath(os.path.join(below, name))
            with open(os.path.join(at, name), "rb") as file:
                content = file.read()
            if path.endswith(".json"):
                content = plain(content)
            found[plain(path.encode()).decode()] = content
    return found


def is_hidden(path):
    return os.path.basename(path).startswith(".")


class Scene:
    """A command and the folder before and after it."""

    def __init__(self, row, files, scratch):
        self.name, self.wanted, self.words, self.stdin = row
        self.files, self.scratch = files, scratch
        folder = self.fresh_folder()
        self.old = look(folder)
        done = run(self.words, folder, self.stdin)
        if done.returncode:
            raise Wrong("exit %d: %s" % (done.returncode, done.stderr.decode()))
        self.new = look(folder)
        if self.new == self.old:
            raise Wrong("the command changes nothing: %s" % done.stderr.decode())
        if any(map(is_hidden, self.new)):
            raise Wrong("the command leaves %s" % " ".join(filter(is_hidden, self.new)))

    def fresh_folder(self):
        folder = os.path.join(self.scratch, "work")
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder, self.files, self.wanted)
        return folder

    def whole(self, path, content):
        return any(path in shot and shot[path] == content for shot in (self.old, self.new))

    # ── After a death without warning ──

    def recover(self, folder):
        """Files that are neither old nor new say so, and are recovered."""
        now = look(folder)
        for path, content in now.items():
            journal = os.path.join(os.path.dirname(path),
                                   ".%s.sft-journal" % os.path.basename(path))
            if content is None or is_hidden(path):
                continue
            torn = not self.whole(path, content)
            if torn:
                said = run(["check", path], folder)
                if said.returncode == 0 or b"meta recover" not in said.stdout + said.stderr:
                    raise Wrong("%s is torn, and a reader is not told" % path)
            if torn or journal in now:
                done = run(["meta", "recover", path], folder)
                if done.returncode:
                    raise Wrong("recover %s: %s" % (path, done.stderr.decode()))

    def clean(self, folder):
        hidden = [p for p in look(folder) if is_hidden(p)]
        if len(hidden) > 1:
            raise Wrong("hidden files: " + ", ".join(hidden))
        for path in hidden:
            done = run(["repair", "--clean", os.path.dirname(path) or "."], folder)
            if done.returncode or path in look(folder):
                raise Wrong("%s stays: %s" % (path, done.stderr.decode()))

    def judge(self, folder, done):
        self.recover(folder)
        self.clean(folder)
        now = look(folder)
        for path, content in now.items():
            if content is not None and not self.whole(path, content):
                raise Wrong("%s is neither old nor new" % path)
        for path in self.old.keys() & self.new.keys():
            if path not in now:
                raise Wrong("%s is gone" % path)
        for path, content in self.new.items():
            if done and now.get(path) != content:
                raise Wrong("exit 0, and %s is not there" % path)
        self.judge_indexes(now)

    def judge_indexes(self, now):
        for path, content in now.items():
            if not path.endswith(".index.json"):
                continue
            shot = self.new if content == self.new.get(path) else self.old
            for other, wanted in shot.items():
                if os.path.dirname(other) != os.path.dirname(path) or wanted is None:
                    continue
                both = content == self.old.get(path) == self.new.get(path)
                if now.get(other) != wanted and not (both and self.whole(other, now.get(other))):
                    raise Wrong("%s names %s, which is not there" % (path, other))

    # ── After an end of its own choice ──

    def judge_exact(self, folder, may_be_old, may_be_new):
        now = look(folder)
        if may_be_old and now == self.old or may_be_new and now == self.new:
            return
        wanted = self.old if may_be_old else self.new
        odd = {p for p in now.keys() | wanted.keys() if now.get(p, 0) != wanted.get(p, 0)}
        raise Wrong("left: " + ", ".join(sorted(odd)))
