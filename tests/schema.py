#!/usr/bin/env python3
"""What --json and --jsonl print is what docs/schema and docs/json*.md say.

  tests/schema.py COMMAND [FILE…]     default files: tests/corpus and the shared samples

Every result must satisfy its schema, closed here against fields that the schema does not
name; every field of a schema must have its place in docs/json*.md.
"""
import copy
import glob
import hashlib
import itertools
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ("json.md", "json-info.md", "json-vocabularies.md")
CALLS = {
    "info": [[], ["--full"], ["--hash", "all", "--verify"]],
    "find": [["--where", "ok=true"], ["--compute", "00000000"],
             ["--all", "--fits", os.path.join(ROOT, "examples", "models", "quantised.safetensors")]],
    "ls": [[], ["--sort", "name"], ["--stats"], ["--histogram", "--dtype", "bf16,f32"]],
    "hash": [["--algo", "all"]],
    "check": [[], ["--deep"], ["--level", "strict"], ["--level", "compat"]],
    "diff": [[], ["--atol", "1"]],
}
NOTE = "note: lora/neon-city.safetensors words=a,b weight=0.5 note=mine rating=4 base=Pony tags+=c ; "
# Commands that write or need files made for them, each in a folder with a copy of the example models
# (m: one file, s: the index of another, h: a folder to be cleaned). Of calls with ; between them the
# last is compared; those before it may be of another command, whose name and : they begin with.
WRITES = {
    "info": ["lora m s nosuch --save-as a1111", "lora --save-as lora-manager --dry-run",
             "lora --save-as civitai --force --hash sha256", "lora --save-as modelspec",
             "lora --save-as modelspec --force --dry-run", NOTE + "lora/neon-city.safetensors",
             NOTE + "lora/neon-city.safetensors --hash sha256", "pipe", "m pipe nosuch",
             "base.safetensors --records base.txt"],
    "find": [NOTE + "mine lora/neon-city.safetensors", "aurora base.safetensors --records base.txt"],
    "ls": ["--parts m s parts.safetensors broken.safetensors nosuch", "--parts vae.safetensors --architecture sdxl"],
    "diff": ["--merge-of s s", "--merge-of base.safetensors base.safetensors base.safetensors",
             "--merge-of ones.safetensors base.safetensors", "--merge-of m nosuch", "--merge-of s m"],
    "merge": ["s -o one.safetensors", "s m -o two.safetensors --dry-run", "m", "nosuch -o x",
              "vae.safetensors -o all.safetensors --as checkpoint", "m -o x --as checkpoint",
              "vae.safetensors -o x --as checkpoint --dry-run",
              "--method linear base.safetensors base.safetensors:0.5 -o linear.safetensors",
              "--method ties --base base.safetensors base.safetensors -o x.safetensors --dry-run"],
    "lora": ["info lora/neon-city.safetensors pair.safetensors m nosuch",
             "merge base.safetensors pair.safetensors:0.5 -o out.safetensors",
             "merge base.safetensors pair.safetensors -o x --dry-run --ignore-unmatched",
             "merge base.safetensors m -o x", "merge nosuch m -o x",
             "info --spectrum lora/neon-city.safetensors pair.safetensors",
             "resize lora/neon-city.safetensors -o r.safetensors --rank 2",
             "resize m -o x --rank 2", "stack pair.safetensors:2 -o k.safetensors",
             "stack pair.safetensors -o x --rank 1 --dry-run",
             "extract ones.safetensors base.safetensors -o e.safetensors --rank 1",
             "simplify pair.safetensors -o x --rank exact",
             "convert lora/neon-city.safetensors -o d.safetensors --to diffusers",
             "convert fused.safetensors -o x --to diffusers --architecture flux.1 --ignore-unmatched",
             "convert fused.safetensors -o d --to diffusers --architecture flux.1 --ignore-unmatched ; "
             "convert d -o x --to kohya --architecture flux.1 --dry-run",
             "convert fused.safetensors -o x --to comfy --architecture flux.1",
             "convert pair.safetensors -o x --to kohya"],
    "catalog": ["lora m s broken.safetensors -o c.html", "lora -o d.html --embed", "nosuch -o x.html",
                "--model m -o m.html", "--model broken.safetensors -o b.html", "lora -o c.html"],
    "split": ["m -o out --count 2", "m -o one", "s -o dry --dry-run", "m -o out"],
    "select": ["m -o out.safetensors --keep *f4*", "s -o some --drop *norm*",
               "s --in-place --drop *layers.1.*", "s --in-place --drop nothing",
               "s --in-place --keep *norm* --dry-run", "m -o x --keep nothing"],
    "add": ["m x=x.npy", "s x=x.npy", "s x=x.npy --replace --dry-run", "m y=m"],
    "convert": ["m -o out.safetensors -d F32", "s -o half -d F16", "s -o dry -d F16 --dry-run",
                "m --in-place -d F16", "s --in-place -d F64 --dry-run",
                "s --in-place -d F64", "s --in-place -d F64",
                "x.npy -o y.safetensors", "x.npy -o y.safetensors -d F16",
                "vae.safetensors -o v --layout diffusers", "vae.safetensors -o e.npz",
                "vae.safetensors -o v.safetensors --layout single --dry-run"],
    "repair": ["m -o out.safetensors", "broken.safetensors -o fixed.safetensors",
               "broken.safetensors --in-place", "s -o out", "bad/model.safetensors.index.json -o b",
               "bare -o whole --dry-run", "bare -o whole", "cut.safetensors -o x", "m",
               "--clean h --dry-run", "--clean h", "--clean nosuch"],
    "rm-tensor": ["m tensor.14.bf16", "m tensor.14.bf16 --dry-run", "m nosuch",
                  "s model.norm.weight", "s model.norm.weight -o out"],
    "put": ["m tensor.14.bf16", "m tensor.14.bf16 --dry-run", "m tensor.14.bf16 -o out.safetensors",
            "m tensor.14.bf16 --safe", "m tensor.19.f64", "m nosuch", "s model.norm.weight"],
    "rename": ["m --add-prefix x.", "s --add-prefix x.", "m --map nosuch=x", "m --map x"],
    "meta": ["list m s", "get m nosuch", "set m k v", "set m k v -o out.safetensors --dry-run",
             "rm m k nosuch", "recover m s nosuch", "scrub m s", "set s k v", "scrub private.safetensors", "set nosuch k v"],
    "dup": [". -r", ". -r --remove", ". -r --remove --yes", ". -r --link --yes --keep shortest",
            "-r twins --remove --weights --yes --delete", "-r twins --remove --yes --keep twins/b", "nosuch"],
    "mv": ["lora/neon-city.safetensors new/", "lora/neon-city.safetensors m2.safetensors --dry-run",
           "-r . --to {kind}/{base_model}/{stem} --dry-run", "-r . --to {kind}/{stem} --copy",
           "-r twins --to {stem|name} --link", "-r twins --to twins/{kind} --number",
           "-r twins --to one.safetensors", "m nosuch new/", "nosuch new/", "s moved/",
           "lora new/ ; --undo", "s moved/ ; --undo --dry-run", "--undo"],
    "note": ["lora/neon-city.safetensors", "lora/neon-city.safetensors rating=4 favourite words=a,b weight=0.5",
             "lora/neon-city.safetensors rating=4 --dry-run", "-r . --where kind=adapter tags+=x",
             "lora/neon-city.safetensors note=x --for lora-manager", "m s nosuch broken.safetensors tags=a",
             "lora/neon-city.safetensors rating=4 ; lora/neon-city.safetensors",
             "lora/neon-city.safetensors rating=4 ; lora/neon-city.safetensors --rm", "--adopt lost"],
    "thumbnail": ["m t.png -s 32", "lora/neon-city.safetensors t.png", "s m", "nosuch t.png", "broken.safetensors t.png"],
    "trash": ["m", "lora/neon-city.safetensors s", "-r twins --yes", "lora --dry-run", "nosuch broken.safetensors"],
    "records": ["", "flux.1 bnb-nf4 nosuch", "check own.txt wrong.txt nosuch", "mine --records own.txt"],
}
PAIRS = {"diff"}  # commands of two models
MOST_PAIRS = 100
BATCH = 500


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def closed(schema):
    """The same schema, refusing fields it does not name."""
    schema = copy.deepcopy(schema)
    for part in list(schema["$defs"].values()):
        if part.get("type") == "object" and "properties" in part:
            if "ok" in part["properties"] or "by" in part["properties"]:
                part["properties"].update({"schema": True, "command": True})
            part["additionalProperties"] = False
    return schema


def fields(schema):
    names = set()
    for part in schema["$defs"].values():
        names |= set(part.get("properties", {}))
    return names


def leaves(schema):
    """The paths of all fields of a result, down to the last."""
    found, stack = set(), [("", schema["$defs"][name])
                             for name in ("good", "dataset_result", "failed")]
    while stack:
        path, part = stack.pop()
        for form in [part, *part.get("oneOf", [])]:
            if "$ref" in form:
                stack.append((path, schema["$defs"][form["$ref"].rsplit("/", 1)[1]]))
            if form.get("items"):
                stack.append((path, form["items"]))
            for name, inner in form.get("properties", {}).items():
                at = "%s.%s" % (path, name) if path else name
                found.add(at)
                if name != "parts":  # results again
                    stack.append((at, inner))
    return sorted(found)


def reached(command, schema):
    """Every leaf is a field that -f takes."""
    names = leaves(schema)
    for at in range(0, len(names), 64):
        made = subprocess.run([command, "info", "-f", ",".join(names[at:at + 64]), "nosuch"],
                              stderr=subprocess.PIPE, check=False)
        if b"expected a field" in made.stderr:
            sys.exit("schema: info -f: %s" % made.stderr.decode("utf-8", "replace"))
    return len(names)


def run(command, name, options, paths):
    made = subprocess.run([command, name, *options, "--", *paths], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    if made.returncode not in (0, 1, 2):
        sys.exit("schema: %s %s ended with %d" % (name, options, made.returncode))
    return made.stdout.decode("utf-8")


def inputs(given):
    shared = os.environ.get("SFT_SHARED", os.path.join(ROOT, "..", "shared"))
    found = list(given)
    for folder in () if given else (os.path.join(ROOT, "tests", "corpus"), shared + "/samples"):
        for pattern in ("**/*.safetensors", "**/*.index.json"):
            found += glob.glob(os.path.join(folder, pattern), recursive=True)
    return sorted(found) + ["/nowhere/caf\udce9.safetensors", "/nowhere"]


def datasets(folder):
    """One of each kind, in folders of their own."""
    make = os.path.join(ROOT, "tests", "dataset", "make.py")
    made = []
    for kind in ("kv", "batch", "empty", "connector", "connector-kv"):
        made.append(os.path.join(folder, kind))
        subprocess.run([sys.executable, make, kind, made[-1]], check=True)
    return made


def parts(name, paths):
    """The operands of each call."""
    if name not in PAIRS:
        return [paths[at:at + BATCH] for at in range(0, len(paths), BATCH)]
    step = max(1, len(paths) // MOST_PAIRS)
    return [[paths[at], paths[(at + 1 + at // step % 3) % len(paths)]]
            for at in range(0, len(paths), step)] + [[paths[-2], paths[0]], [paths[0], paths[-2]]]


def plain(entries, count):
    """A file of these tensors and so many zeros."""
    return (len(entries) + 2).to_bytes(8, "little") + b"{" + entries + b"}" + bytes(count)


def zeros(shapes):
    """A file of F32 tensors of these shapes, all zeros."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + 4 * math.prod(shape)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    return plain(json.dumps(entries)[1:-1].encode(), end)


def example(folder):
    """The folder of WRITES."""
    models = os.path.join(ROOT, "examples", "models")
    shutil.copytree(models, folder, dirs_exist_ok=True)
    os.rename(os.path.join(folder, "every-dtype.safetensors"), os.path.join(folder, "m"))
    with open(os.path.join(folder, "m"), "rb") as f:
        data = f.read()
    header = b'{"__metadata__":{"a":"/home/me/x","ss_tag_frequency":"{\\"me\\":{\\"b\\":1}}"}}  '
    npy = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    made = {"broken.safetensors": data + b"abc", "cut.safetensors": data[:-1],
            "private.safetensors": len(header).to_bytes(8, "little") + header,
            "base.safetensors": plain(b'"a.weight":{"dtype":"F32","shape":[2,2],'
                                      b'"data_offsets":[0,16]}', 16),
            "vae.safetensors": plain(b'"decoder.up.3.block.0.norm1.weight":{"dtype":"F16","shape":[2],'
                                     b'"data_offsets":[0,4]},"encoder.down.0.block.0.norm1.weight":'
                                     b'{"dtype":"F16","shape":[2],"data_offsets":[4,8]}', 8),
            "pair.safetensors": plain(b'"a.lora_A.weight":{"dtype":"F32","shape":[1,2],'
                                      b'"data_offsets":[0,8]},"a.lora_B.weight":{"dtype":"F32",'
                                      b'"shape":[2,1],"data_offsets":[8,16]}', 16),
            "parts.safetensors": zeros({"alphas_cumprod": [2], "model_ema.decay": [2],
                                        "first_stage_model.decoder.up.3.block.0.norm1.weight": [2],
                                        "first_stage_model.encoder.down.0.block.0.norm1.weight": [2]}),
            "fused.safetensors": zeros({"lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight": [1, 6],
                                        "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight": [6, 1],
                                        "lora_unet_nosuch.lora_down.weight": [1, 6],
                                        "lora_unet_nosuch.lora_up.weight": [6, 1]}),
            "base.txt": b"model aurora\n    tensors diffusion_model 100\n        a.weight[2,2]\n",
            "pipe/model_index.json": b'{"_class_name": "Pipeline", "vae": ["diffusers", "AutoencoderKL"]}',
            "x.npy": b"\x93NUMPY\1\0" + len(npy).to_bytes(2, "little") + npy + bytes(4),
            "own.txt": b"model mine\n    parent flux.1\n    file flux1\n    tensors vae 1\n        a\n        !a\n",
            "wrong.txt": b"model mine\n    teaches x\n",
            "h/.m.sft-abcdef": b""}
    pair = made["pair.safetensors"]
    made["ones.safetensors"] = made["base.safetensors"][:-16] + b"\0\0\x80\x3f" * 4
    made["pipe/vae/diffusion_pytorch_model.safetensors"] = made["vae.safetensors"]
    digest = hashlib.sha256(pair[-16:]).hexdigest()
    made.update({"twins/a.safetensors": pair, "twins/b/a.safetensors": pair, "twins/a.own.json": b'{"rating": 3}',
                 "twins/b/a.json": b'{"notes": "x"}', "lost/x.safetensors": pair,
                 "lost/y.own.json": b'{"note": "x", "weights": "%s"}' % digest.encode()})
    for part in ("h", "twins/b", "lost", "pipe/vae"):
        os.makedirs(os.path.join(folder, part))
    for name, content in made.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    sharded = os.path.join(folder, "sharded")
    shutil.copytree(sharded, os.path.join(folder, "bad"))
    shutil.copytree(sharded, os.path.join(folder, "bare"))
    os.remove(os.path.join(folder, "bare", "model.safetensors.index.json"))
    with open(os.path.join(folder, "bad", "model.safetensors.index.json"), "r+") as f:
        index = json.load(f)
        index["metadata"]["total_size"] = 1
        del index["weight_map"][sorted(index["weight_map"])[0]]
        f.seek(0)
        f.truncate()
        json.dump(index, f)


def written(command, name):
    """What the calls of WRITES print, each once with --json and once with --jsonl."""
    for words in WRITES.get(name, []):
        *before, words = words.split(" ; ")
        both = []
        for form in ("--json", "--jsonl"):
            with tempfile.TemporaryDirectory(prefix="sft-schema-") as folder:
                example(folder)
                index = "sharded/model.safetensors.index.json"
                env = dict(os.environ, XDG_STATE_HOME=folder + "/.state", XDG_DATA_HOME=folder + "/.data")
                for call in [*before, words]:
                    line = [index if w == "s" else w for w in call.split()]
                    verb = line.pop(0)[:-1] if line and line[0].endswith(":") else name
                    made = subprocess.run([command, verb, *line, form], stdout=subprocess.PIPE,
                                          stderr=subprocess.DEVNULL, cwd=folder, check=False,
                                          input=bytes(64), env=env)
                    if made.returncode not in ((0, 1, 2) if call is words else (0,)):
                        sys.exit("schema: %s %s ended with %d" % (verb, call, made.returncode))
                if form == "--json" and not made.stdout:
                    sys.exit("schema: %s %s prints nothing: is it what the usage says?" % (name, words))
                both.append(made.stdout.decode("utf-8"))
        yield both


def main():
    try:  # that of Python takes fifty times as long
        from jsonschema_rs import Draft202012Validator
    except ImportError:
        print("schema: skipped: jsonschema-rs is not installed")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return validate(Draft202012Validator, os.path.abspath(sys.argv[1]), datasets(folder))


def validate(validator_of, command, made):
    paths, results = inputs(sys.argv[2:]), 0
    manual = "".join(read("docs", page) for page in PAGES)
    for name in {**CALLS, **WRITES}:
        schema = json.loads(read("docs", "schema", name + ".json"))
        validators = [validator_of(s) for s in (schema, closed(schema))]
        if name == "info" and reached(command, schema) < 200:
            sys.exit("schema: too few fields are found in docs/schema/info.json")
        for field in sorted(fields(schema)):
            if "`%s`" % field not in manual:
                sys.exit("schema: docs/json*.md do not document `%s`" % field)
        said = ([run(command, name, options + [form], part) for form in ("--json", "--jsonl")]
                for options in CALLS.get(name, [])
                for part in parts(name, paths + (made if name == "info" else [])))
        for text, lines in itertools.chain(said, written(command, name)):
            if not text and not lines:
                continue  # the usage was wrong
            whole, lines = json.loads(text), lines.splitlines()
            for value in [whole] + [json.loads(line) for line in lines]:
                for validator in validators:
                    for found in validator.iter_errors(value):
                        sys.exit("schema: %s: %s: %s: %s" % (name, found.instance_path, found.message,
                                                             json.dumps(value)[:500]))
            if len(lines) != len(whole["results"]) + len(whole.get("groups", [])):
                sys.exit("schema: %s: --json and --jsonl differ in number" % name)
            results += len(lines)
    print("schema: %d files, %d results, all as their schemas say" % (len(paths), results))
    print("%d passed, %d failed" % (results, 0 if results else 1))
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
