"""The section cold of compare.py: what commands bring into the page cache from a folder of models
that is not in it, against what they need. tests/cold.py has the bounds."""
import ctypes
import json
import mmap
import os
import random
import shutil
import struct
import subprocess
import tempfile

from contest import table

PAGE, TAIL, PICTURE, SAMPLES = 4096, 65536, 65536, 8
MODELS = 6
PAGE_OUT = os.path.join(tempfile.gettempdir(), "cold-%d.html" % os.getpid())
COMMANDS = {"info": ["info", "-r"], "find": ["find", "no such word", "-r"], "ls": ["ls", "-r"],
            "check": ["check", "-r"], "catalog": ["catalog", "--force", "-o", PAGE_OUT]}
FLOOR_COLD = 1.3


class NoCache(Exception):
    """Nothing can be told of the page cache here."""


def write_lora(path, modules, width, alpha, seed=0):
    """Alphas that lie apart, as where they have the dtype of the weights. alpha: of a module."""
    header, parts, at = {"__metadata__": {"ss_network_dim": "4"}}, [], 0
    weights = random.Random(seed).randbytes(8 * width)
    for i in range(modules):
        name = "lora_unet_down_blocks_%d_attentions_0_transformer_blocks_%d_attn1_to_q" % (i % 3, i)
        for key, shape, data in (("alpha", [], struct.pack("<e", alpha(i))),
                                 ("lora_down.weight", [4, width], weights),
                                 ("lora_up.weight", [width, 4], weights)):
            header["%s.%s" % (name, key)] = {"dtype": "F16", "shape": shape,
                                             "data_offsets": [at, at + len(data)]}
            parts.append(data)
            at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def make(folder, models=MODELS):
    """LoRAs of equal and of differing alphas, each with a JSON file and a picture."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    picture = b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(10) + b"\xff\xc0\0\x11\x08\1\0\2\0" + bytes(300000)
    for i in range(models):
        stem = os.path.join(folder, "model%d" % i)
        differ = i % 3 == 2
        write_lora(stem + ".safetensors", 120, 2000, (lambda n: 1 + n % 9) if differ else
                   (lambda n: 16), i)
        with open(stem + ".civitai.info", "w", encoding="utf-8") as file:
            json.dump({"id": i + 1, "modelId": 5, "trainedWords": ["word"], "text": "x" * 9000}, file)
        with open(stem + ".preview.jpg", "wb") as file:
            file.write(picture)
    os.sync()


def files(folder):
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]


def drop(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def resident(path):
    """Which pages of a file are in memory: mincore over a map of it."""
    libc = ctypes.CDLL(None, use_errno=True)
    size = os.path.getsize(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as view:
        at = (ctypes.c_char * size).from_buffer(view)
        pages = (ctypes.c_ubyte * ((size + PAGE - 1) // PAGE))()
        failed = libc.mincore(ctypes.byref(at), ctypes.c_size_t(size), pages)
        del at
    if failed:
        raise NoCache("mincore failed with errno %d" % ctypes.get_errno())
    return [i for i, page in enumerate(pages) if page & 1]


def brought_in(folder, command):
    """Bytes in the page cache after a command, none before."""
    for path in files(folder):
        drop(path)
    if any(resident(path) for path in files(folder)):
        raise NoCache("the pages of %s cannot be dropped" % folder)
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if os.path.exists(PAGE_OUT):
        os.remove(PAGE_OUT)
    return sum(len(resident(path)) for path in files(folder)) * PAGE


def wanted_of(path, command):
    """Pages of one file that a command cannot do without."""
    size, labels = os.path.getsize(path), command in ("info", "find", "catalog")
    runs = []
    if path.endswith(".safetensors"):
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
            alphas = [8 + length + entry["data_offsets"][0] for name, entry in header.items()
                      if name.endswith(".alpha")]
            values = set()
            for at in alphas:
                file.seek(at)
                values.add(file.read(2))
        if len(values) == 1:
            alphas = [alphas[i * (len(alphas) - 1) // (SAMPLES - 1)] for i in range(SAMPLES)]
        runs = [(0, 8 + length)] + [(at, at + 2) for at in alphas if labels]
        if command == "check":
            runs.append((max(0, size - TAIL), size))
    elif labels:
        runs = [(0, min(size, PICTURE) if path.endswith(".jpg") else size)]
    return {page for begin, end in runs for page in range(begin // PAGE, (end - 1) // PAGE + 1)}


def wanted(folder, command):
    return sum(len(wanted_of(path, command)) for path in files(folder)) * PAGE


class Cold:
    """What Bench is given besides its own sections."""

    def cold(self):
        folder = os.path.join(self.args.data, "cold")
        make(folder, 60)
        rows = []
        for name, words in COMMANDS.items():
            command = [os.path.join(self.args.build, "safetensors"), *words, folder]
            try:
                got, least = brought_in(folder, command), wanted(folder, name)
            except NoCache as why:
                return "left out: %s.\n" % why
            self.floor("cold, " + name, got / least, FLOOR_COLD, False)
            rows.append(["`%s`" % name, "%.1f" % (least / 60e3), "%.1f" % (got / 60e3),
                         "%.2f×" % (got / least)])
        shutil.rmtree(folder)
        return table(["command", "needed, KB a model", "brought in, KB a model",
                      "brought in ÷ needed"], rows) + (
            "\n60 LoRAs of 120 modules (3.9 MB, a header of 50 KB), each with a JSON file of 9 KB and "
            "a picture of 300 KB; before each command no page of them is in memory. Needed are the "
            "pages of headers, of alphas (eight, or all where these differ), of JSON files, of the "
            "first 64 KB of a picture and, for `check`, of the last 64 KB of a model.\n")
