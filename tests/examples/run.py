#!/usr/bin/env python3
"""Run every program of examples/ and compare what it prints; then the documents: README.md's
```c block is one of them, those of docs/c.md are a program (guide.py, guide.c), and ```console
blocks are sessions (sessions.py)."""
import glob
import gzip
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "remote"))
import ports
import server
import sessions

BUILD = os.environ.get("SFT_BUILD", os.path.join(ROOT, "build"))
PROGRAMS = os.path.join(BUILD, "examples")
MODEL = "examples/models/every-dtype.safetensors"
results = []


def check(ok, what, text=""):
    results.append(bool(ok))
    if not ok:
        print(f"failed: {what}\n{text}")


def program(name, *args, stdin=b"", status=0, errors=False):
    """What it prints, or with errors what it says on standard error."""
    done = subprocess.run([os.path.join(PROGRAMS, name), *args], input=stdin, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said = done.stdout.decode("utf-8", "replace")
    check(done.returncode == status, f"{name} {' '.join(args)}: exit {done.returncode}",
          said + done.stderr.decode("utf-8", "replace"))
    return done.stderr.decode("utf-8", "replace") if errors else said


def expect(said, wanted, what):
    check(said == wanted, what, f"expected {wanted!r}\nfound    {said!r}")


def model(header, data):
    text = header.encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def fnv1a(data):
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


MATRIX = struct.pack("<12f", *range(1, 13))
SMALL = model('{"m":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},'
              '"b":{"dtype":"U8","shape":[2],"data_offsets":[48,50]}}', MATRIX + b"\x07\x08")
START = len(SMALL) - 50


def run_cow(path):
    expect(program("example_cow", path, "m"), "m[0] = -1, in this program only\n", "cow")
    with open(path, "rb") as file:
        check(file.read() == SMALL, "cow left the file alone")
    said = program("example_cow", path, "absent", status=1)
    check(said.startswith("KeyError") or "absent" in said or "expected an F32" in said,
          "cow names the exception", said)
    said = program("example_cow", path + ".not", "m", status=1)
    check(said.startswith("OSError(2, ") or said.startswith("FileNotFoundError"),
          "cow: errno of a missing file", said)


def saved_by(example, path):
    """Header, without padding, and data of what the example writes there."""
    program(example, path)
    with open(path, "rb") as file:
        saved = file.read()
    size, = struct.unpack("<Q", saved[:8])
    return saved[8:8 + size].decode().rstrip(" "), saved[8 + size:]


def run_save(folder):
    written, data = saved_by("example_save", os.path.join(folder, "saved.safetensors"))
    header = ('{"__metadata__":{"format":"pt"},'
              '"step":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},'
              '"weight":{"dtype":"F32","shape":[1000,256],"data_offsets":[8,1024008]}}')
    expect(written, header, "saved header")
    rows = b"".join(struct.pack("<256f", *(r - c for c in range(256))) for r in range(1000))
    check(data == struct.pack("<q", 42) + rows, "saved bytes")
    program("example_save", os.path.join(folder, "no", "such", "folder"), status=1)
    check(os.listdir(folder).count("saved.safetensors") == 1 and
          not [n for n in os.listdir(folder) if n not in ("saved.safetensors", "small")],
          "save leaves nothing else", str(os.listdir(folder)))


def run_arrays(folder):
    path = os.path.join(folder, "arrays.safetensors")
    written, data = saved_by("example_arrays", path)
    header = ('{"__metadata__":{"format":"pt"},'
              '"fc.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},'
              '"fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[12,36]}}')
    expect(written, header, "header of saved arrays")
    check(data == struct.pack("<9f", 7, 8, 9, 1, 2, 3, 4, 5, 6), "saved arrays")
    os.remove(path)
    program("example_arrays", os.path.join(folder, "no", "such", "folder"), status=1)


def run_cancel(path, folder):
    expect(program("example_cancel", path), f"{fnv1a(SMALL[START:]):016x}\n", "checksum")
    big = os.path.join(folder, "saved.safetensors")
    expect(program("example_cancel", big, "0", status=130), "cancelled\n", "cancelled")


def run_slice(path):
    expect(program("example_slice", path, "m", "[1:3]"),
           f"shape 2 4, 32 bytes\n{START + 16}+32\n", "slice of rows")
    expect(program("example_slice", path, "m", "[::2, 1:3]"),
           f"shape 2 2, 16 bytes\n{START + 4}+8\n{START + 36}+8\n", "slice of columns")
    expect(program("example_slice", path, "m", "-1, 0"), f"shape, 4 bytes\n{START + 32}+4\n",
           "one element")
    program("example_slice", path, "m", "[9]", status=1)
    program("example_slice", path, "x", "[0]", status=1)


def run_read(path):
    expect(program("example_read", path),
           f"tensor 0 adds up to {sum(MATRIX)}\ntensor 1 adds up to 15\n2 tensors, 1 copies\n", "through slots")
    program("example_read", path + ".not", status=1)


def run_load(path):
    expect(program("example_load", path, "m", "b", "absent"),
           "m begins at 0 with byte 0\nb begins at 48 with byte 7\n", "one block")
    program("example_load", path + ".not", status=1)


def run_shards(folder):
    index = os.path.join(ROOT, "examples", "models", "sharded", "model.safetensors.index.json")
    out = os.path.join(folder, "shards")
    expect(program("example_shards", index, out, "20000"), "21 tensors in 3 shards\n", "shards")
    again = os.path.join(folder, "one")
    index = os.path.join(out, "model.safetensors.index.json")
    expect(program("example_shards", index, again, "1000000"), "21 tensors in 1 shards\n",
           "one shard")
    check(os.listdir(again) == ["model.safetensors"], "a single shard has no index")
    program("example_shards", index, out, "20000", status=1)
    shutil.rmtree(out)
    shutil.rmtree(again)


def run_pipe():
    listing = "m\tF32\t[3,4]\t48\nb\tU8\t[2]\t2\ndata not looked at\n"
    expect(program("example_pipe", stdin=SMALL[:START]), listing, "pipe without the data")
    expect(program("example_pipe", stdin=SMALL), listing, "pipe with the data")
    program("example_pipe", stdin=SMALL[:START - 1], status=1)


def run_first(path):
    expect(program("example_first", path), "m F32\nb U8\n", "first")
    program("example_first", path + ".not", status=1)


def parsed(path):
    with open(path, "rb") as file:
        saved = file.read()
    size, = struct.unpack("<Q", saved[:8])
    return size, saved[8:8 + size].decode().rstrip(" "), saved[8 + size:]


def run_append(folder):
    path = os.path.join(folder, "added")
    program("example_append", path, "3")
    size, text, data = parsed(path)
    header = ('{"__metadata__":{"format":"pt"},'
              '"step.0":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
              '"step.1":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},'
              '"step.2":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}}')
    expect(text, header, "added header")
    check(size >= 4096, "the spare bytes that were kept", str(size))
    check(data == struct.pack("<6f", 0, 10, 11, 20, 21, 22), "added bytes", str(data))
    program("example_append", path, "1000", status=1)
    check(parsed(path)[1] == header, "too many tensors leave the old file alone")


def run_strided(folder):
    path = os.path.join(folder, "strided")
    program("example_strided", path)
    _, text, data = parsed(path)
    expect(text, '{"matrix":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},'
                 '"some":{"dtype":"F32","shape":[2],"data_offsets":[48,56]}}', "strided header")
    rows = [10 * r + c for r in range(3) for c in range(4)]
    check(data == struct.pack("<14f", *rows, 0, 2), "strided bytes", str(data))
    program("example_strided", os.path.join(folder, "no", "such", "folder"), status=1)


def run_edit(folder):
    path = os.path.join(folder, "edited")
    with open(path, "wb") as file:
        file.write(SMALL)
    said = program("example_edit", path, "title", "Neon City")
    check(re.fullmatch(r"(copy|reflink), header \d+ to \d+ bytes, \d{4,} of them spare\n", said),
          "the first edit grows the header", said)
    check('"__metadata__":{"title":"Neon City"}' in parsed(path)[1], "the key is there")
    said = program("example_edit", path, "title", "Neon City II")
    check(said.startswith("in place, "), "the second edit fits in place", said)
    check('{"title":"Neon City II"}' in parsed(path)[1], "the key is changed")
    program("example_edit", path, "title")
    check("Neon" not in parsed(path)[1], "the key is gone")
    check(parsed(path)[2] == SMALL[START:], "edits leave the data alone")
    program("example_edit", path + ".not", "title", "x", status=1)


def run_convert(folder):
    path, out = os.path.join(folder, "edited"), os.path.join(folder, "converted")
    expect(program("example_convert", path, out, "BF16"), "1 tensors cast, 50 to 26 bytes\n",
           "converted")
    _, text, data = parsed(out)
    check('"m":{"dtype":"BF16","shape":[3,4],"data_offsets":[0,24]}' in text, "new dtype", text)
    upper = b"".join(MATRIX[i + 2:i + 4] for i in range(0, 48, 4))
    check(data == upper + b"\x07\x08", "new bytes", str(data))
    program("example_convert", path + ".not", out, "F16", status=1)
    program("example_convert", path, out, "bf16", status=2)


def run_adapter(folder):
    model, lora, out = (os.path.join(folder, n + ".safetensors") for n in ("base", "lora", "both"))
    numbers = struct.pack("<4f", 1, 2, 3, 4)
    for path, tensors in ((model, {"a.weight": ([2, 2], numbers)}),
                          (lora, {"a.lora_down.weight": ([1, 2], struct.pack("<2f", 10, 20)),
                                  "a.lora_up.weight": ([2, 1], struct.pack("<2f", 1, 2))})):
        header, at = {}, 0
        for name, (shape, data) in tensors.items():
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
            at += len(data)
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text
                       + b"".join(data for _, data in tensors.values()))
    expect(program("example_adapter", model, lora, "0.5", out),
           "a: lora, rank 1, scale 1\n1 tensors changed\n", "an adapter merged")
    check(parsed(out)[2] == struct.pack("<4f", 6, 12, 13, 24), "the sums", str(parsed(out)[2]))
    program("example_adapter", model, model, "1", out, status=1)
    program("example_adapter", model, lora, status=2)


def run_merge(folder):
    paths = [os.path.join(folder, n + ".safetensors") for n in ("one", "two", "merged")]
    for path, numbers in zip(paths, ((0, 4, 8, 1), (4, 0, 0, 3))):
        text = json.dumps({"a.weight": {"dtype": "F32", "shape": [2, 2],
                                        "data_offsets": [0, 16]}}).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + struct.pack("<4f", *numbers))
    expect(program("example_merge", paths[0], paths[1], "0.25", paths[2]),
           "1 tensors merged\n0.750 and 0.250\n", "two models merged")
    check(parsed(paths[2])[2] == struct.pack("<4f", 1, 3, 6, 1.5), "the sums",
          str(parsed(paths[2])[2]))
    program("example_merge", paths[0], paths[1], "x", folder, status=1)
    program("example_merge", paths[0], status=2)


def run_resize(folder):
    lora, out = (os.path.join(folder, n + ".safetensors") for n in ("wide", "small"))
    header = {"a.lora_down.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
              "a.lora_up.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [16, 32]}}
    text = json.dumps(header).encode()
    with open(lora, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack("<8f", 1, 0, 0, 1, 4, 0, 0, 3))
    expect(program("example_resize", lora, "1", out), "a: rank 2 to 1, error 60.0 %\n",
           "a LoRA of a lower rank")
    tensors = json.loads(parsed(out)[1])
    check([tensors[name]["shape"] for name in header] == [[1, 2], [2, 1]], "its tensors", str(tensors))
    program("example_resize", lora, "0", out, status=1)
    program("example_resize", lora, status=2)


def run_layout(folder):
    """A tiny Chroma, whose fused layers are cut."""
    with gzip.open(os.path.join(ROOT, "tests", "layout", "cases.json.gz")) as file:
        case = json.load(file)["models"]["chroma"]
    whole, out = os.path.join(folder, "chroma.safetensors"), os.path.join(folder, "chroma")
    header, size = {}, 0
    for name, shape in case["single"].items():
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [size, size + 4 * math.prod(shape)]}
        size = header[name]["data_offsets"][1]
    with open(whole, "wb") as file:
        file.write(model(json.dumps(header), struct.pack(f"<{size // 4}f", *range(size // 4))))
    part = "transformer/diffusion_pytorch_model.safetensors"
    said = program("example_layout", whole, out, "chroma")
    check(said.startswith("transformer: 100 tensors, 72 before\n"
                          f"{part}: {size} bytes\nneeded: no model_index.json"),
          "a model in another layout", said)
    _, names, data = parsed(os.path.join(out, part))
    check(sorted(k for k in json.loads(names) if k != "__metadata__") == sorted(case["diffusers"]),
          "its names", names)
    check(sorted(struct.unpack(f"<{size // 4}f", data)) == list(range(size // 4)), "its numbers")
    program("example_layout", whole, out, status=1)
    program("example_layout", whole, out + "2", "no-such", status=1)
    program("example_layout", whole, status=2)


def readme():
    path = os.path.join(ROOT, "README.md")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", file.read(), re.M | re.S)
    kinds = [kind for kind, _ in blocks]
    check("c" in kinds and "console" in kinds, "README has a C and a console block")
    for kind, text in blocks:
        if kind == "c":
            readme_c(text)
    sessions.play_all(check)


def run_import(folder):
    path, out = os.path.join(folder, "x.pkl"), os.path.join(folder, "x.safetensors")
    said = program("example_import", path + ".not", out, status=1)
    check(said == "", "import: nothing of a missing file", said)
    path = os.path.join(folder, "m.npy")
    header = b"{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }"
    header += b" " * (117 - len(header)) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
                   + struct.pack(">6f", *range(6)))
    expect(program("example_import", path, out), "NumPy array, 1 tensors\n", "import")
    with open(out, "rb") as file:
        check(file.read().endswith(struct.pack("<6f", 0, 2, 4, 1, 3, 5)), "import: row-major")


def run_remote():
    with server.Site() as site:
        for url in ("nosuch://host/x", site.url("A", "/none")):  # what is refused is tried for long
            expect(program("example_remote", url, status=1), "", f"remote: {url}")
        del site.log[:]
        site.put("A", "/m.safetensors", server.Memory(SMALL))
        said = program("example_remote", site.url("A", "/m.safetensors"))
        expect(said, "m F32 48\nb U8 2\n", "remote: the list")
        check(len(site.log) == 1, "remote: one request", repr(site.log))


def run_guide(folder):
    """What docs/c.md shows."""
    index = os.path.join(ROOT, "examples", "models", "sharded", "model.safetensors.index.json")
    said = program("guide/guide", folder, os.path.join(ROOT, MODEL), index, "lm_head.weight")
    check(re.search(r"^[1-9][0-9]+ passed, 0 failed$", said, re.M), "docs/c.md", said)


def readme_c(text):
    with open(os.path.join(ROOT, "examples", "example_first.c"), encoding="utf-8") as file:
        check(file.read() == text, "README's C block is examples/example_first.c")
    check(len(text.splitlines()) <= 25, "README's C block has 25 lines at most")
    said = program("example_first", os.path.join(ROOT, MODEL))
    check(len(said.splitlines()) == 22, "README's C block lists the example", said)


def run_demo():
    """What `make demo` runs: its last line says where the page is."""
    done = subprocess.run([os.path.join(ROOT, "tools", "demo.sh")], check=False,
                          env=dict(os.environ, SFT_BUILD=BUILD), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    said = done.stdout.decode("utf-8", "replace")
    check(done.returncode == 0, "tools/demo.sh", said)
    told = said.rstrip("\n").rpartition(": file://")[2]
    check(os.path.isabs(told) and os.path.isfile(told), "the last line names the page", said[-200:])
    with open(told, encoding="utf-8") as file:
        page = file.read()
    check('"Neon City"' in page, "the example models are in the page")
    check('"Moonlit Harbor"' in page and "moonlit_harbor.preview.png" in page,
          "and those with pictures")


def main():
    with tempfile.TemporaryDirectory(prefix="sft-examples-") as folder:
        path = os.path.join(folder, "small")
        with open(path, "wb") as file:
            file.write(SMALL)
        run_cow(path)
        run_save(folder)
        run_cancel(path, folder)
        run_slice(path)
        run_read(path)
        run_load(path)
        run_shards(folder)
        run_arrays(folder)
        run_pipe()
        run_first(path)
        run_append(folder)
        run_strided(folder)
        run_edit(folder)
        run_convert(folder)
        run_adapter(folder)
        run_merge(folder)
        run_resize(folder)
        run_layout(folder)
        run_import(folder)
        run_remote()
        run_guide(folder)
        ports.run(program, check, folder)
    run_demo()
    tried = {"example_cow", "example_save", "example_arrays", "example_cancel", "example_slice", "example_pipe",
             "example_first", "example_append", "example_strided", "example_edit",
             "example_adapter", "example_merge", "example_layout", "example_resize", "example_convert", "example_import", "example_read", "example_load",
             "example_shards", "example_remote", "port_stable_diffusion", "port_flux2"}
    with open(os.path.join(ROOT, "examples", "README.md"), encoding="utf-8") as file:
        index = file.read()
    for source in sorted(glob.glob(os.path.join(ROOT, "examples", "**", "*.c"),
                                   recursive=True)):
        name = os.path.basename(source)[:-2]
        place = os.path.relpath(source, os.path.join(ROOT, "examples"))
        check(name in tried, f"{name} is run here")
        with open(source, encoding="utf-8") as file:
            check(file.read().count("\n") <= (90 if place == name + ".c" else 240),
                  f"{name} has ninety lines at most, or 240 if it is a port")
        check(f"]({place}) |" in index, f"examples/README.md has a line for {name}")
    readme()
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
