#!/usr/bin/env python3
"""What is made of a private file is private: every command that writes, with every kind of input.

  tests/attack/modes.py [-v] [--full] [NAME-PART...]

A model, or what stands beside it, consists of several files. One of them after the other is made
private (0600, the others 0644), and each command that writes runs with umask 022: no file that it
makes or changes may then be open to anybody else. With no private file at least one is, so that the
table proves something. Started by root, every other run is a user's who owns the files; with --full
each is done twice, by root and by the user.
"""
import json
import multiprocessing
import os
import shlex
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "dataset")]
import foreign  # noqa: E402
import make  # noqa: E402

USER = 12001
BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND")
                      or shlex.quote(os.path.join(BUILD, "safetensors")))
PNG = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0\x1f\x15\xc4\x89"
       b"\0\0\0\rIDATx\x9cc\xf8\xff\xff?\0\5\xfe\2\xfe\xa75\x81\x84\0\0\0\0IEND\xaeB`\x82")
verbose = "-v" in sys.argv[1:]


# ── Inputs: each makes files in a folder, and returns the operand ──

def put(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else json.dumps(data).encode())
    return path


def model(names, first=0, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name in names:
        header[name] = {"dtype": "F32", "shape": [2, 2], "data_offsets": [at, at + 16]}
        at += 16
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    values = struct.pack("<%df" % (at // 4), *(first + i for i in range(at // 4)))
    return struct.pack("<Q", len(text)) + text + values


def npy(folder, name):
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return put(folder, name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text
               + struct.pack("<4f", 1, 2, 3, 4))


def single(folder):
    return put(folder, "model.safetensors",
               model(["a.w", "b.w"], metadata={"notes": "n", "workflow": "{\"nodes\": []}"}))


def shards(folder):
    names = {"a.w": "model-00001-of-00002.safetensors", "b.w": "model-00002-of-00002.safetensors"}
    for name, file in names.items():
        put(folder, file, model([name]))
    return put(folder, "model.safetensors.index.json",
               {"metadata": {"total_size": 32}, "weight_map": names})


def torch_shards(folder):
    inside = os.path.join(folder, "hf")
    foreign.folder(inside)
    return inside


def onnx(folder):
    path = os.path.join(folder, "model.onnx")
    foreign.onnx(path)
    return path


def gguf_parts(folder):
    """Three parts of a tensor each, but for the first, which has none."""
    names = ["model-%05d-of-00003.gguf" % (i + 1) for i in range(3)]
    for i, name in enumerate(names):
        rows = [] if i == 0 else ["blk.%d.w" % i]
        head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), 4)
        head += foreign.gguf_text("general.architecture") + struct.pack("<I", 8) \
            + foreign.gguf_text("llama")
        for key, kind, form, value in (("split.no", 2, "H", i), ("split.count", 2, "H", 3),
                                       ("split.tensors.count", 5, "i", 2)):
            head += foreign.gguf_text(key) + struct.pack("<I" + form, kind, value)
        for row in rows:
            head += foreign.gguf_text(row) + struct.pack("<I2QIQ", 2, 2, 2, 0, 0)
        data = struct.pack("<4f", 1, 2, 3, 4) if rows else b""
        put(folder, name, head + b"\0" * (-len(head) % 32) + data + b"\0" * (-len(data) % 32))
    return os.path.join(folder, names[0])


def bundle(folder):
    """A TensorFlow checkpoint: a table of one entry, and its data."""
    def message(*fields):
        return b"".join(foreign.proto(*field) for field in fields)
    header = message((1, 1), (3, message((1, 1))))
    shape = message((2, message((1, 2))), (2, message((1, 2))))
    data = struct.pack("<4f", 1, 2, 3, 4)
    entry = message((1, 1), (2, shape), (5, 16)) + foreign.varint(6 << 3 | 5) \
        + struct.pack("<I", masked(crc32c(data)))

    def block(*rows):
        out = b"".join(foreign.varint(0) + foreign.varint(len(k)) + foreign.varint(len(v)) + k + v
                       for k, v in rows) + struct.pack("<II", 0, 1)
        return out + b"\0" + struct.pack("<I", masked(crc32c(out + b"\0")))
    rows = block((b"", header), (b"w", entry))
    meta = block()
    where = [foreign.varint(0) + foreign.varint(len(rows) - 5),
             foreign.varint(len(rows)) + foreign.varint(len(meta) - 5)]
    index = block((b"w", where[0]))
    foot = where[1] + foreign.varint(len(rows) + len(meta)) + foreign.varint(len(index) - 5)
    foot += b"\0" * (40 - len(foot)) + struct.pack("<Q", 0xdb4775248b80fb57)
    put(folder, "ck.data-00000-of-00001", data)
    return put(folder, "ck.index", rows + meta + index + foot)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def masked(crc):
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def by_hand(kind, name):
    def make(folder):
        path = os.path.join(folder, name)
        foreign.KINDS[kind](path)
        return path
    make.__name__ = kind
    return make


def pipeline(folder):
    put(folder, "model_index.json", {"_class_name": "StableDiffusionPipeline",
                                     "unet": ["diffusers", "UNet2DConditionModel"],
                                     "vae": ["diffusers", "AutoencoderKL"]})
    for part in ("unet", "vae"):
        put(folder, part + "/config.json", {"_class_name": part})
        put(folder, part + "/diffusion_pytorch_model.safetensors", model([part + ".w"]))
    return folder


def sidecars(folder):
    path = put(folder, "lora.safetensors", model(["lora_unet_x.lora_up.weight"],
                                                 metadata={"ss_output_name": "lora"}))
    put(folder, "lora.civitai.info", {"modelId": 5, "id": 6, "trainedWords": ["secret word"],
                                      "model": {"name": "Name", "type": "LORA"}})
    put(folder, "lora.preview.png", PNG)
    put(folder, "lora.txt", b"secret word")
    put(folder, "README.md", b"---\nlicense: mit\n---\nSecret.\n")
    return path


def dataset(folder):
    """Batches that are not full."""
    shards = []
    for number, rows in enumerate((2, 1)):
        name = make.shard_name(number)
        whole = make.shard(folder, name, [("x", "F32", [rows, 2], 1)], make.marked("batch", rows))
        shards.append((name, whole, rows, rows, 1, 0))
    make.ours(folder, "batch", shards, {"x": {"dtype": "F32", "shape": [2]}},
              {"x": {"dtype": "F32", "shape": [2, 2]}}, batch_size=4, tail_strategy="write")
    return folder


def kv_dataset(folder):
    make.make_kv(folder)
    return folder


# ── Commands: words, of the operand m, the folder for results o, and the folder with more b ──

BESIDE = ["array.npy", "other.safetensors", "words.txt", "tensor.bin", "thumb.png", "pairs.json"]


def make_beside(folder):
    npy(folder, "array.npy")
    put(folder, "other.safetensors", model(["other.w"]))
    put(folder, "words.txt", b"some words")
    put(folder, "tensor.bin", struct.pack("<4f", 9, 9, 9, 9))
    put(folder, "thumb.png", PNG)
    put(folder, "pairs.json", {"key": "value"})


WHOLE = {
    "convert": "convert {m} -o {o}/x.safetensors --dtype BF16",
    "convert to npz": "convert {m} -o {o}/x.npz",
    "convert to pt": "convert {m} -o {o}/x.pt",
    "select": "select {m} -o {o}/x.safetensors --keep * --copy",
    "split": "split {m} -o {o}/x --count 2",
    "merge": "merge {m} {b}/other.safetensors -o {o}/x.safetensors",
    "merge behind": "merge {b}/other.safetensors {m} -o {o}/x.safetensors",
    "catalog": "catalog {m} -o {o}/x.html",
    "catalog --model": "catalog --model {m} -o {o}/x.html",
}
PLAIN = {"convert as it is": "convert {m} -o {o}/x.safetensors"}
CAST = {
    "convert --dtype": "convert {m} -o {o}/x.safetensors --dtype F16",
    "convert --dtype to pt": "convert {m} -o {o}/x.pt --dtype F16",
}
FOLDERS = {"convert to a folder": "convert {m} -o {o}/x --dtype F16"}
EDITS = {
    "meta set": "meta set {m} -o {o}/x.safetensors key value",
    "meta set from a file": "meta set {m} -o {o}/x.safetensors key=@{b}/words.txt",
    "meta set a thumbnail": "meta set {m} -o {o}/x.safetensors --thumbnail {b}/thumb.png",
    "meta from json": "meta --from-json {b}/pairs.json {m} -o {o}/x.safetensors",
    "meta scrub": "meta scrub {m} -o {o}/x.safetensors",
    "rename": "rename {m} -o {o}/x.safetensors --map a.w=c.w",
    "rm-tensor": "rm-tensor {m} -o {o}/x.safetensors a.w",
    "put": "put {m} a.w -o {o}/x.safetensors < {b}/tensor.bin",
    "repair": "repair {m} -o {o}/x.safetensors --copy",
    "add": "add {m} -o {o}/x.safetensors c.w={b}/array.npy",
    "convert from stdin": "convert - -o {o}/x.safetensors --dtype F16 < {m}",
}
HERE_EDITS = {
    "meta set here": "meta set {m} key value",
    "meta set here from a file": "meta set {m} key=@{b}/words.txt",
    "meta set here a thumbnail": "meta set {m} --thumbnail {b}/thumb.png",
    "meta here from json": "meta --from-json {b}/pairs.json {m}",
    "rename here": "rename {m} --map a.w=c.w",
    "rm-tensor here": "rm-tensor {m} a.w",
    "put here": "put {m} a.w < {b}/tensor.bin",
    "add here": "add {m} c.w={b}/array.npy",
    "convert here": "convert {m} --in-place --dtype F16",
    "select here": "select {m} --in-place --keep a.w",
}
INDEX_EDITS = {
    "meta set to a folder": "meta set {m} -o {o}/x key value",
    "rename to a folder": "rename {m} -o {o}/x --map a.w=c.w",
    "repair to a folder": "repair {m} -o {o}/x --copy",
    "select to a folder": "select {m} -o {o}/x --keep *",
    "split again": "split {m} -o {o}/x --count 1",
    "add": "add {m} -o {o}/x c.w={b}/array.npy",
    "add to one file": "add {m} -o {o}/x.safetensors c.w={b}/array.npy",
    "rename here": "rename {m} --map a.w=c.w",
    "meta set here": "meta set {m} key value",
    "add here": "add {m} c.w={b}/array.npy",
    "select here": "select {m} --in-place --keep a.w",
    "convert here": "convert {m} --in-place --dtype F16",
}
FACTS = {
    "info --save-as a1111": "info --save-as a1111 {m}",
    "info --save-as lora-manager": "info --save-as lora-manager {m}",
    "info --save-as modelspec": "info --save-as modelspec {m}",
    "info --export-preview": "info --export-preview {o} {m}",
    "thumbnail": "thumbnail {m} {o}/x.png",
    "catalog": "catalog {f} -o {o}/x.html",
    "catalog --embed": "catalog {f} --embed -o {o}/x.html",
    "catalog --model": "catalog --model {m} -o {o}/x.html",
}

KINDS = [
    (single, {**WHOLE, **CAST, **EDITS, **HERE_EDITS,
              "info --export-workflow": "info --export-workflow {o}/x.json {m}"}),
    (shards, {**WHOLE, **CAST, **FOLDERS, **INDEX_EDITS}),
    (torch_shards, {**PLAIN, **WHOLE, **CAST, "to a folder": "convert {m} -o {o}/x"}),
    (onnx, {**PLAIN, **WHOLE, **CAST}),
    (gguf_parts, {**PLAIN, **WHOLE, **CAST, **FOLDERS}),
    (bundle, {**PLAIN, **WHOLE, **CAST, "split": "split {m} -o {o}/x --count 1"}),
    (by_hand("state_dict", "model.pt"), {**PLAIN, **WHOLE, **CAST}),
    (by_hand("tied", "model.ckpt"), WHOLE),
    (by_hand("npz", "model.npz"), {"convert": PLAIN["convert as it is"] + " --as half=BF16"}),
    (by_hand("gguf", "model.gguf"), {**PLAIN, **WHOLE, **CAST}),
    (by_hand("msgpack", "model.msgpack"), {**PLAIN, **WHOLE, **CAST}),
    (pipeline, {"catalog": FACTS["catalog"]}),
    (sidecars, FACTS),
    (dataset, {"dataset compact": "dataset compact --target 1GB {m}",
               "dataset segments": "dataset compact --manifest segments {m}",
               "catalog": FACTS["catalog"]}),
    (kv_dataset, {"dataset compact": "dataset compact --target 1GB {m}"}),
]
# What a command does not read.
UNREAD = {("dataset", "catalog"): "part-"}
# Files that are changed where they are, or copied one by one: each is for those who could read it,
# and, if something is put there, that. Of a private file only its own successor is judged.
APART = [("shards", " here"), ("shards", "meta set to a folder"), ("shards", "repair to a folder"), ("dataset", "dataset"),
         ("kv_dataset", "dataset")]


# ── Trying ──

def listing(*folders):
    """{path: (mode, bytes)} of every file."""
    found = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                path = os.path.join(folder, name)
                info = os.lstat(path)
                with open(path, "rb") as file:
                    found[path] = (info.st_mode & 0o777, file.read())
    return found


def become(user):
    def switch():
        os.umask(0o022)
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
    return switch


def play(words, user):
    words, _, source = words.partition(" < ")
    done = subprocess.run([*COMMAND, *words.split(" ")], preexec_fn=become(user), timeout=60,
                          stdin=open(source, "rb") if source else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout.decode(errors="replace")


def attempt(maker, words, private, user):
    """Run it where one file, by number, is private (None: no file). The files that the command could
    have read, and what it wrote: {path: mode}."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        places = {name: os.path.join(top, name) for name in ("model", "out", "beside")}
        for place in places.values():
            os.mkdir(place)
        operand = maker(places["model"])
        make_beside(places["beside"])
        files = sorted(listing(places["model"]))
        files += [os.path.join(places["beside"], name) for name in BESIDE if "{b}/" + name in words]
        for path in listing(top):
            os.chmod(path, 0o644)
        for folder, _, _ in os.walk(top):
            os.chown(folder, user or 0, user or 0) if os.geteuid() == 0 else None
        for path in listing(top):
            os.chown(path, user or 0, user or 0) if os.geteuid() == 0 else None
        if private is not None:
            os.chmod(files[private], 0o600)
        before = listing(top)
        status, said = play(words.format(m=operand, o=places["out"], b=places["beside"],
                                         f=places["model"]), user)
        after = listing(top)
        wrote = {path[len(top) + 1:]: mode for path, (mode, data) in after.items()
                 if path not in before or before[path][1] != data}
        return [path[len(top) + 1:] for path in files], wrote, status, said


def successors(name, wrote):
    """Of what was written, what that file has become; a manifest becomes all that is no shard, an
    array a shard: of the index it is not, which has its name."""
    if name == "dataset_manifest.json":
        return {p: m for p, m in wrote.items()
                if not p.endswith((".safetensors", ".dataset.lock"))}
    if name.startswith("part-") or name in BESIDE:
        return {p: m for p, m in wrote.items() if p.endswith(".safetensors")}
    stem = name.split(".")[0] if name.endswith(".safetensors") else name
    return {p: m for p, m in wrote.items() if os.path.basename(p).startswith(stem)}


def judge(task):
    """The faults, and how many attempts there were."""
    number_of_kind, name, full = task
    maker, commands = KINDS[number_of_kind]
    kind, words, is_root = maker.__name__, commands[name], os.geteuid() == 0
    files, wrote, status, said = attempt(maker, words, None, None)
    if status != 0 or not wrote:
        return ["exit %d, wrote %s: %s" % (status, sorted(wrote), said)], 1
    if not any(mode & 0o044 == 0o044 for mode in wrote.values()):
        return ["nothing private, and yet %s" % {p: oct(m) for p, m in wrote.items()}], 1
    faults, tries = [], 1
    apart = any(kind == one and part in name for one, part in APART)
    for number, private in enumerate(files):
        last = os.path.basename(private)
        if last.startswith(UNREAD.get((kind, name), "/")):
            continue
        users = [None, USER] if full and is_root else [USER if is_root and number % 2 else None]
        for user in users:
            _, wrote, status, said = attempt(maker, words, number, user)
            tries += 1
            judged = successors(last, wrote) if apart else wrote
            found = {p: oct(m) for p, m in judged.items() if m & 0o077}
            if status != 0 or not wrote:
                found = "exit %d, wrote %s: %s" % (status, wrote, said)
            if found:
                faults.append("%s private%s: %s" % (private, " (a user)" if user else "", found))
    return faults, tries


def main():
    parts = [word for word in sys.argv[1:] if word not in ("-v", "--full")]
    tasks = [(i, name, "--full" in sys.argv) for i, (maker, commands) in enumerate(KINDS)
             for name in commands
             if not parts or any(part in maker.__name__ + ": " + name for part in parts)]
    passed = failed = tries = 0
    with multiprocessing.Pool(4) as pool:
        for (i, name, _), (faults, count) in zip(tasks, pool.imap(judge, tasks)):
            title = KINDS[i][0].__name__ + ": " + name
            tries += count
            failed += bool(faults)
            passed += not faults
            for fault in faults:
                print("FAIL %s: %s" % (title, fault))
            if verbose and not faults:
                print("ok   %s" % title)
    print("%d runs" % tries)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    if not hasattr(os, "setuid") or os.environ.get("SFT_EMULATE"):
        print("0 passed, 0 failed: skipped, a system without modes")
        sys.exit(0)
    sys.exit(main())
