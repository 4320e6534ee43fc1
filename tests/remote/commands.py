"""Every command that reads, of a URL as of the local file; and those that write, which refuse."""
import gzip
import json
import os
import re
import struct
import subprocess
import sys

import models
import server
from faults import status
from matrix import usual
from world import HEAD, PASSWORD, QUERY, ROOT, Wrong, at_most, case, holds, quick, same


def both(w, *words, wanted=0, status=True):
    """What is printed for the URL is what is printed for the file, apart from its name."""
    texts = []
    for path in (w.url, w.local):
        made = w.run(*[path if word == "PATH" else word for word in words],
                     wanted=wanted if status else None)
        errors = re.sub("safetensors: (note: only|[0-9]+ requests?,).*\n", "", made.errors())
        texts.append((made.text() + errors).replace(path, "PATH"))
    same(texts[0], texts[1], " ".join(words))


@quick
def commands_that_read(w):
    usual(w)
    for words in ("ls PATH", "ls -v --tree PATH", "ls --match *7* PATH", "ls --tsv PATH",
                  "meta list PATH", "meta header PATH", "check PATH",
                  "check --level strict PATH", "diff PATH PATH", "dup PATH",
                  "hash --algo autov3,sha256 --read PATH", "check --deep PATH",
                  "cat --as json PATH layer.3.weight[:4]", "cat --as npy PATH layer.3.weight"):
        both(w, *words.split(), status=not words.startswith("hash"))


@case
def commands_that_write_elsewhere(w):
    w.put(models.model({"layer.%d.weight" % i: ("BF16", [8 << 10]) for i in range(64)}))
    other = models.write(w.folder, "other.safetensors",
                         models.model({"z": ("F32", [4])}, seed=3))
    for words in ("convert PATH --dtype F32 -o OUT", "select PATH --drop layer.1* -o OUT",
                  "rename PATH --map layer.1.weight=x -o OUT", "merge PATH OTHER -o OUT",
                  "meta set PATH key value -o OUT", "rm-tensor PATH layer.1.weight -o OUT"):
        found = []
        for i, path in enumerate((w.url, w.local)):
            out = os.path.join(w.here, "%d.safetensors" % i)
            w.run(*[{"PATH": path, "OUT": out, "OTHER": other}.get(word, word)
                    for word in words.split()])
            with open(out, "rb") as file:
                found.append(file.read())
        # A copy of a file keeps the spare bytes of its header; what is made of a URL has none.
        if words.startswith(("convert", "select", "merge")):
            same(found[0], found[1], words)
        w.run("diff", os.path.join(w.here, "0.safetensors"),
              os.path.join(w.here, "1.safetensors"))
        for i in (0, 1):
            os.unlink(os.path.join(w.here, "%d.safetensors" % i))
    for i, path in enumerate((w.url, w.local)):
        w.run("split", path, "-o", "split%d" % i, "--max-size", "200KB")
    left, right = (models.snapshot(os.path.join(w.here, "split%d" % i)) for i in (0, 1))
    same(left, right, "split")


@case
def copies_without_a_change(w):
    """Nothing would change: of a file nothing is written, of a URL the copy is."""
    w.put(models.model({"a": ("BF16", [8]), "b": ("BF16", [8])}, {"k": "v"}))
    for words in ("select PATH --keep * -o out", "convert PATH --dtype BF16 -o out",
                  "rename PATH --regex s/zzz/y/ -o out", "meta set PATH k v -o out"):
        words = words.replace("out", "out.safetensors")
        w.run(*words.replace("PATH", w.local).split())
        same(os.listdir(w.here), [], words + ": of the file")
        made = w.run(*words.replace("PATH", w.url).split(), "--json").result()
        same(made["output"], "out.safetensors", words)
        same(w.run("diff", w.local, "out.safetensors").errors(), "", words)
        os.unlink(os.path.join(w.here, "out.safetensors"))
        w.run(*words.replace("PATH", w.url).split(), "--dry-run")
        same(os.listdir(w.here), [], words + ": --dry-run")
    w.run("select", w.url, w.local, "--keep", "*", "-o", "both/", wanted=2)
    os.rename(w.local, w.local[:-len("m.safetensors")] + "l.safetensors")
    w.run("select", w.url, w.local[:-len("m.safetensors")] + "l.safetensors", "--keep", "*",
          "-o", "all/")
    same(os.listdir(os.path.join(w.here, "all")), ["m.safetensors"], "what is written of two")


@quick
def commands_that_write_there(w):
    """A URL cannot be changed: said before anything is sent."""
    usual(w)
    for words in ("meta set PATH key value", "meta rm PATH key", "meta scrub PATH",
                  "rename PATH --map a=b", "put PATH layer.1.weight", "add PATH x=y.npy",
                  "rm-tensor PATH layer.1.weight", "repair PATH --in-place",
                  "convert LOCAL --dtype F16 -o PATH", "select LOCAL --keep * -o PATH",
                  "split LOCAL -o PATH", "merge LOCAL LOCAL -o PATH", "dataset info PATH"):
        made = w.run(*[{"PATH": w.url, "LOCAL": w.local}.get(word, word)
                       for word in words.split()], wanted=2)
        try:
            w.says(made.errors(), ["URL"])
        except Wrong as error:
            raise Wrong("%s: %s" % (words, error)) from error
    same(w.site.count(), 0, "requests")
    same(os.listdir(w.here), [], "what is left")


@case
def several_inputs(w):
    """URLs and files, good and bad, in one call: as for files alone."""
    usual(w)
    bad = w.site.url("A", "/none.safetensors")
    made = w.run("ls", "--json", w.url, w.local, bad, wanted=2)
    same([r["ok"] for r in made.json()["results"]], [True, True, False])
    same([r["path"] for r in made.json()["results"]], [w.url, w.local, bad])
    for word in ("check", "info"):
        made = w.run(word, "--json", bad, w.url, wanted=2)
        same([r["ok"] for r in made.json()["results"]], [False, True], word)


@quick
def bad_urls_among_others(w):
    """What is no URL fails as an input does: the others are read, and it has a result."""
    usual(w)
    bad = ["ftp://user:%s@host/f.safetensors?%s" % (PASSWORD, QUERY), "https://ho%20st/h",
           "s3://user:%s@bucket/k" % PASSWORD]
    shown = ["ftp://host/f.safetensors?[...]", "a URL that cannot be shown", "s3://bucket/k"]
    for word in ("info", "ls", "check", "hash --read", "meta list"):
        made = w.run(*word.split(), "--json", w.url, *bad, w.local, wanted=2)
        found = made.json()["results"]
        same(sorted(r["path"] for r in found), sorted([w.url, *shown, w.local]), word)
        same({r["path"] for r in found if r["ok"]}, {w.url, w.local}, word)
        same({r["error"]["code"] for r in found if not r["ok"]}, {"remote_url"}, word)
        for name in shown:
            w.says(made.errors(), ["safetensors: %s: " % re.escape(name)])
    made = w.run("ls", *bad[:1], w.local, wanted=2)
    same(made.text(), w.run("ls", w.local).text(), "of the file")
    w.run("select", *bad, w.url, "--keep", "layer.1*", "-o", "out/", wanted=2)
    same(os.listdir(os.path.join(w.here, "out")), ["m.safetensors"], "what is written")


@case
def merge_names_what_fails(w):
    """Of several inputs the one whose server fails while data are copied."""
    w.put(models.model({"a": ("BF16", [1 << 20])}))
    other = w.site.put("B", "/other.safetensors", models.model({"b": ("BF16", [1 << 20])}))
    w.run("ls", w.url, other)
    w.site.fault("B GET", None, *[status(500)] * 40)
    made = w.run("merge", w.url, other, "-o", "out.safetensors", "--retries", "0", wanted=2)
    w.says(made.errors(), ["^safetensors: %s: .*500" % re.escape(other)])
    same(os.listdir(w.here), [], "what is left")


@quick
def refused_as_the_file(w):
    """Other formats, which these commands change nowhere: as locally, and nothing is written."""
    foreign = os.path.join(ROOT, "tests", "cli", "foreign.py")
    folder = os.path.join(w.folder, "local")
    os.makedirs(folder)
    for kind, name in (("gguf", "m.gguf"), ("npz", "m.npz"), ("onnx", "m.onnx"),
                       ("state_dict", "m.pt")):
        w.local = os.path.join(folder, name)
        subprocess.run([sys.executable, foreign, kind, w.local], check=True)
        w.url = w.site.put("A", "/" + name, server.Disk(w.local))
        for words in ("rename PATH --add-prefix x. -o out.safetensors",
                      "meta set PATH key value -o out.safetensors"):
            both(w, *words.split(), wanted=2)
            same(os.listdir(w.here), [], words)


@case
def indexes_as_the_folder(w):
    """rename of an index writes a folder; meta set says why not."""
    w.local = models.sharded(os.path.join(w.folder, "local", "m"), 3)
    w.make_hub().add("ns/m", w.local)
    index = "/model.safetensors.index.json"
    for path, out in (("hf://ns/m" + index, "a"), (w.local + index, "b")):
        w.run("rename", path, "--map", "lm_head.weight=head", "-o", out)
    left, right = (models.snapshot(os.path.join(w.here, name)) for name in "ab")
    same(sorted(left), sorted(right), "files")
    w.run("diff", "a", "b")
    made = w.run("meta", "set", "hf://ns/m" + index, "k", "v", "-o", "c", wanted=2)
    w.says(made.errors(), ["an index names the files beside it", "download"])


@case
def log_of_requests(w):
    """--log-requests and -v: what was asked, without secrets."""
    usual(w)
    w.url += "?token=" + QUERY
    made = w.run("cat", "--as", "raw", "--log-requests", w.url, "layer.55.weight[:10]")
    lines = made.errors().splitlines()
    same(len([line for line in lines if "GET http" in line]), w.site.count(), "lines")
    w.says(made.errors(), ["206", "%d requests?" % w.site.count()])
    w.run("info", "-v", "--log-requests", w.url)


@case
def data_not_read(w):
    usual(w)
    found = w.run("check", "--json", w.url).result()
    same(found["remote"]["data_read"], False, "data_read")
    at_most(w.site.sent(), 128 << 10, "bytes")


# ── Other formats ──

@case
def query_of_a_checkpoint(w):
    """The data lies beside the index, whatever the index' URL has behind its path."""
    w.local = os.path.join(w.folder, "local")
    subprocess.run([sys.executable, os.path.join(ROOT, "tests", "cli", "foreign.py"),
                    "saved_model", w.local], check=True)
    folder = os.path.join(w.local, "variables")
    for name in os.listdir(folder):
        w.site.put("A", "/m/" + name, server.Disk(os.path.join(folder, name)))
    w.run("diff", w.site.url("A", "/m/variables.index") + "?download=true&token=" + QUERY, w.local)


@case
def other_formats(w):
    folder = os.path.join(w.folder, "local")
    os.makedirs(folder)
    torch = models.torch_file(os.path.join(folder, "pytorch_model.bin"), {
        "layer.%d.weight" % i: [float(i + k) for k in range(3000)] for i in range(40)})
    gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sI", 1, b"w", 2)
    gguf += struct.pack("<QQIQ", 64, 32, 0, 0)
    gguf = models.write(folder, "w.gguf", gguf + bytes(-len(gguf) % 32)
                        + struct.pack("<2048f", *range(2048)))
    npy = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5000,), }".ljust(117) + "\n").encode()
    npy = models.write(folder, "a.npy", npy + struct.pack("<5000f", *range(5000)))
    for path, tensor in ((torch, "layer.7.weight"), (gguf, "w"), (npy, None)):
        w.local = path
        w.url = w.site.put("A", "/" + os.path.basename(path), server.Disk(path))
        try:
            both(w, "ls", "PATH")
            if tensor:
                both(w, "cat", "--as", "json", "PATH", tensor + "[:9]")
            w.run("convert", w.url, "-o", "a.safetensors", "--force")
            w.run("convert", w.local, "-o", "b.safetensors", "--force")
            same(w.read("a.safetensors") == w.read("b.safetensors"), True, "converted")
        except Wrong as error:
            raise Wrong("%s: %s" % (os.path.basename(path), error)) from error
    w.make_hub().add("ns/m", {"pytorch_model.bin": server.Disk(torch)})
    w.url, w.local = "hf://ns/m/pytorch_model.bin", torch
    both(w, "ls", "PATH")


@case
def other_formats_parts(w):
    """Of a large archive only its directory, the pickle and what is asked for is fetched."""
    path = os.path.join(w.folder, "large.pt")
    models.torch_file(path, {"layer.%d" % i: [float(i)] * (1 << 20) for i in range(10)})
    w.url = w.site.put("A", "/large.pt", server.Disk(path))
    w.run("ls", w.url)
    at_most(w.site.sent(), 3 << 20, "bytes of 40 MB for ls")


@case
def other_formats_long_header(w):
    """The names of a large vocabulary are read ahead, not one window at a time."""
    words = b"".join(struct.pack("<Q11s", 11, b"token%06d" % i) for i in range(200000))
    gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    gguf += struct.pack("<Q6sIIQ", 6, b"tokens", 9, 8, 200000) + words
    gguf += struct.pack("<Q1sI", 1, b"w", 2) + struct.pack("<QQIQ", 64, 32, 0, 0)
    w.local = models.write(w.folder, "w.gguf", gguf + bytes(-len(gguf) % 32) + bytes(8192))
    w.url = w.site.put("A", "/w.gguf", server.Disk(w.local))
    both(w, "ls", "PATH")
    at_most(w.site.count(), 9, "requests for a header of 4 MB")


@case
def other_formats_one_request(w):
    """A model whose name says its format is opened once; it may be safetensors all the same."""
    gguf = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q1sI", 1, b"w", 2)
    gguf += struct.pack("<QQIQ", 64, 32, 0, 0)
    w.put(gguf + bytes(-len(gguf) % 32) + bytes(8192), path="/w.gguf")
    both(w, "ls", "PATH")
    same(w.site.count(), 1, "requests")
    w.put(models.small(), path="/pytorch_model.bin")
    both(w, "ls", "PATH")
    w.put(b"MZ" + bytes(300), path="/bad.gguf")
    both(w, "ls", "PATH", wanted=2)


@case
def selection_with_few_bytes(w):
    """select of a twelfth of a file fetches hardly more."""
    head, size = models.header({"t%02d" % i: ("U8", [4 << 20]) for i in range(12)})
    w.put(server.Repeated(head, bytes(range(251)), len(head) + size))
    w.run("select", w.url, "--keep", "t05", "-o", "out.safetensors")
    at_most(w.site.sent(), (5 << 20) + (1 << 18), "bytes for 4 MiB")


@case
def standard_output_closes(w):
    """`cat URL t | head -c 10`: it ends, and soon."""
    w.put(models.large())
    child = w.start("cat", "--as", "raw", w.url, "t")
    child.stdout.read(10)
    child.stdout.close()
    child.stderr.close()
    child.stdout = child.stderr = None
    holds(child.wait(20) is not None, "it ends")
    at_most(w.site.sent(), 400 << 20, "bytes of 10 GB")


@case
def url_like_files(w):
    """A file that is called as a URL begins, and a folder `http:`."""
    models.write(w.here, "http:/x.safetensors", models.small())
    w.run("ls", "http:/x.safetensors")
    w.run("ls", "./http:/x.safetensors")
    same(w.site.count(), 0, "requests")
    w.put(models.small())
    w.run("ls", w.url.replace("http", "HTTP", 1))


# ── Layouts ──

def checkpoint():
    """A U-Net and a VAE of few bytes, as one file has them (tests/layout)."""
    with gzip.open(os.path.join(ROOT, "tests", "layout", "cases.json.gz"), "rt") as file:
        cases = json.load(file)["models"]
    parts = (("sd1", "model.diffusion_model."), ("vae", "first_stage_model."))
    return models.model({prefix + key: ("BF16", shape) for name, prefix in parts
                         for key, shape in cases[name]["single"].items()})


@case
def layouts(w):
    """convert --layout and select --part of URLs make what they make of files, and read it once."""
    data = checkpoint()
    w.put(data)
    of = ("--architecture", "sd-1")
    w.run("convert", w.local, "-o", "local", "--layout", "diffusers", *of)
    w.run("convert", w.url, "-o", "remote", "--layout", "diffusers", *of, "--dry-run")
    at_most(w.site.sent("A"), HEAD + (64 << 10), "bytes of --dry-run")
    sent = w.site.sent("A")
    w.run("convert", w.url, "-o", "remote", "--layout", "diffusers", *of)
    at_most(w.site.sent("A") - sent, len(data) + HEAD + (64 << 10), "bytes of convert")
    same(models.snapshot(os.path.join(w.here, "remote")),
         models.snapshot(os.path.join(w.here, "local")), "convert --layout diffusers")
    sent = w.site.sent("A")
    for name, path in (("local", w.local), ("remote", w.url)):
        w.run("select", path, "-o", name + ".safetensors", "--part", "vae", *of)
    same(w.read("remote.safetensors") == w.read("local.safetensors"), True, "select --part")
    at_most(w.site.sent("A") - sent, len(w.read("local.safetensors")) + HEAD, "bytes of select --part")
    w.make_hub().add("ns/m", os.path.join(w.here, "local"))
    for name, path in (("back", os.path.join(w.here, "local")), ("hub", "hf://ns/m")):
        w.run("convert", path, "-o", name + ".safetensors", "--layout", "single", *of)
    same(w.read("hub.safetensors") == w.read("back.safetensors"), True, "convert of a repository")


def floats(shapes, values):
    """A model of F32: its tensors' shapes, and the values of all of them, in order."""
    tensors = {name: ("F32", shape) for name, shape in shapes.items()}
    return models.header(tensors)[0] + struct.pack("<%df" % len(values), *values)


@case
def adapters(w):
    """The verbs of lora, of URLs and of a repository with its configuration, as of files."""
    layer, name = "model.diffusion_model.double_blocks.0.img_mlp.0", "lora_unet_double_blocks_0_img_mlp_0"
    factors = [i % 7 - 3 for i in range(28)]
    plain = floats({name + ".lora_up.weight": [8, 2], name + ".lora_down.weight": [2, 6]}, factors)
    peft = floats({"base_model.model.x.lora_B.weight": [8, 2],
                   "base_model.model.x.lora_A.weight": [2, 6]}, factors)
    whole = floats({name + ".diff": [8, 6]}, [i % 5 - 2 for i in range(48)])
    config = b'{"r": 2, "lora_alpha": 6}'
    model = floats({layer + ".weight": [8, 6]}, range(48))
    urls, files = {}, {}
    for key, data in (("M", model), ("A", plain), ("W", whole)):
        urls[key], files[key] = w.put(data, "/%s.safetensors" % key), w.local
    files["P"] = models.write(w.folder, "adapter_model.safetensors", peft)
    models.write(w.folder, "adapter_config.json", config)
    w.make_hub().add("ns/p", {"adapter_model.safetensors": peft, "adapter_config.json": config})
    urls["P"] = "hf://ns/p"
    for words in ("info A", "info P", "merge M A:0.5", "resize P --rank 1", "stack P:2 P",
                  "simplify W --rank 1 --model M", "extract M MERGED --rank 2",
                  "convert A --to comfy --architecture flux.1"):
        found = []
        for paths in (urls, files):
            out = [] if words.startswith("info") else ["-o", "out.safetensors", "--force"]
            given = [paths[word[0]] + word[1:] if word[0] in paths and word[1:2] in ("", ":") else word
                     for word in words.replace("MERGED", "merged.safetensors").split()]
            told = w.run("lora", *given, *out)
            found.append(w.read("out.safetensors") if out else told.text().partition(".safetensors")[2])
        same(found[0], found[1], words)
        if words.startswith("merge"):
            os.rename(os.path.join(w.here, "out.safetensors"),
                      os.path.join(w.here, "merged.safetensors"))
