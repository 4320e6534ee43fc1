"""Every command that writes, on files whose recorded digests hold: prints those that are wrong in its output."""
import glob, hashlib, json, os, shlex, shutil, struct, subprocess, sys
SFT, DIGESTS = os.environ["SFT"], ("sshs_model_hash", "sshs_legacy_hash", "modelspec.hash_sha256")
WIDTH = {"F32": 4, "F16": 2, "BF16": 2}
ARRAY = (b"\x93NUMPY\x01\x00\x76\x00"
         + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
         + bytes(8))
BYTES = bytes(655360)

def run(words, data=b""):
    return subprocess.run([SFT, *words], input=data, capture_output=True)

def read(path):
    text = open(path, "rb").read()
    size = struct.unpack("<Q", text[:8])[0]
    return json.loads(text[8:8 + size]), text[8 + size:]

def covers(path):
    """The metadata, and what each digest is of."""
    header, data = read(path)
    meta = header.pop("__metadata__", {})
    sum = hashlib.sha256(data).hexdigest()
    training = {k: v for k, v in meta.items() if k.startswith("ss_")}
    of = [sum, json.dumps([sum, header, training], sort_keys=True), sum]
    return meta, dict(zip(DIGESTS, of)), set(header)

def write(path, tensors, more=b"", edit=lambda text: text, **metadata):
    head, data = {"__metadata__": {"format": "pt", "ss_epoch": "1", "ss_session_id": "7",
                                 **metadata}}, b""
    for name, dtype, size in tensors:
        raw = bytes((i * i + len(data) // 5 + len(name)) % 63 for i in range(size))
        head[name] = {"dtype": dtype, "shape": [size // WIDTH[dtype]],
                      "data_offsets": [len(data), len(data) + size]}
        data += raw
    text = edit(json.dumps(head).encode())
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data + more)

def record(path, tensors, **how):
    """With digests; none of sd-scripts' if the order is not its own."""
    write(path, tensors, sshs_model_hash="0" * 64, **how)
    said = run(["hash", "--json", "--level", "compat", "--algo", "sshs_model,sshs_legacy", path])
    sums = json.loads(said.stdout)["results"][0].get("computed") or {}
    data = sums.get("sshs_model") or hashlib.sha256(read(path)[1]).hexdigest()
    digests = dict(zip(DIGESTS, (data, sums.get("sshs_legacy"), "0x" + data)))
    write(path, tensors, **how, **{k: v for k, v in digests.items() if v})
    return path

BIG = 655360
A, B, C, D = [(name, "F32", BIG) for name in "abcd"]
HALF, FULL = ("a", "F16", BIG), ("z", "F32", BIG)
MODELS = {"plain": [[A, B]], "unsorted": [[B, A]], "mixed": [[FULL, HALF]],
          "misordered": [[HALF, FULL]],
          "empty": [[("0", "F32", 0), A, B]], "set": [[A, C], [B, D]], "alone": [[C]]}
for name, shards in MODELS.items():
    if len(shards) == 1:
        record(f"in/{name}/m.safetensors", shards[0])
        continue
    for i, tensors in enumerate(shards):
        record(f"in/{name}/m-{i + 1:05}-of-{len(shards):05}.safetensors", tensors)
    places = {t[0]: f"m-{i + 1:05}-of-{len(shards):05}.safetensors"
              for i, tensors in enumerate(shards) for t in tensors}
    with open(f"in/{name}/m.safetensors.index.json", "w") as index:
        json.dump({"metadata": {}, "weight_map": places}, index)
record("in/trailing/m.safetensors", [A, B], more=b"x")
record("in/padding/m.safetensors", [A, B], edit=lambda t: t + b"\n" * 8)
record("in/number/m.safetensors", [A, B], edit=lambda t: t.replace(b'"pt"', b"1"))
open("x.npy", "wb").write(ARRAY)

# Command, models, ways to write: o: -o FILE, d: -o DIR, h: as it is, i: --in-place, s: -o -
ONE = "plain unsorted mixed misordered empty"
COMMANDS = [
    ("convert IN -d F16", ONE, "oi"), ("convert IN -d F32 --copy", ONE, "o"),
    ("convert IN -d F16 --match a", ONE, "oi"),
    ("convert IN -d F32 --match z --copy", "mixed", "oi"),
    ("convert IN -d F16", "set", "odi"), ("convert IN -d F16 --match a", "set", "odi"),
    ("convert IN -d F32", "set", "o"), ("convert IN -d F32 --copy", "set", "d"),
    ("select IN --keep a", ONE, "oi"), ("select IN --keep * --copy", ONE, "os"),
    ("select IN --drop a", "set", "odi"), ("select IN --keep * --copy", "set", "od"),
    ("select IN --drop a --drop c", "set", "odi"),
    ("rm-tensor IN a", ONE, "oh"), ("rm-tensor IN a", "set", "odh"),
    ("rename IN --map a=y", ONE, "oh"), ("rename IN --map a=a --copy", "plain", "oh"),
    ("rename IN --map a=y", "set", "dh"),
    ("add IN x=x.npy", ONE, "oh"), ("add IN --replace a=x.npy", ONE, "oh"),
    ("add IN x=x.npy", "set", "oh"), ("add IN --replace a=x.npy", "set", "oh"),
    ("put IN a < BYTES", "plain unsorted", "oh"), ("put IN a --safe < BYTES", "plain", "h"),
    ("put IN a < BYTES", "set", "oh"),
    ("merge IN", ONE + " set", "os"), ("merge IN in/alone/m.safetensors", ONE, "os"),
    ("split IN --count 2", ONE + " set", "d"), ("split IN --max-size 1GB", ONE + " set", "d"),
    ("repair IN --copy", ONE + " padding number", "o"),
    ("repair IN", "padding number trailing", "oi"),
    ("repair IN", "set", "d"),
    ("meta set IN title x", ONE, "ohs"), ("meta set IN ss_epoch 1 --copy", ONE, "os"),
    ("meta set IN ss_epoch 2", ONE, "ohs"), ("meta set IN ss_more 2", ONE, "ohs"),
    ("meta set IN ss_epoch 2 ss_epoch 1 title x", ONE, "ohs"),
    ("meta set IN ss_epoch 2 --safe", "plain", "h"),
    ("meta set IN long " + "x" * 9000, "plain", "oh"),
    ("meta rm IN ss_epoch", ONE, "ohs"), ("meta rm IN format", ONE, "ohs"),
    ("meta rm IN ss_*", "plain", "ohs"), ("meta scrub IN", "plain", "ohs"),
    ("meta set --each-shard IN ss_epoch 2", "set", "h"),
    ("meta set --each-shard IN title x", "set", "h"), ("meta set IN title x", "set", "oh")]

def files(folder):
    return {os.path.join(at, n) for at, _, names in os.walk(folder) for n in names
            if n.endswith(".safetensors")}

def bytes_of(paths):
    return {p: open(p, "rb").read() for p in paths}

held, wrong = 0, 0
def check(fine, *what):
    global wrong
    if not fine:
        wrong += 1
        print("WRONG:", *what)

def dropped(said):
    """As the result tells."""
    if not said.stdout.startswith(b'{"schema"'):
        return None
    results = json.loads(said.stdout)["results"]
    return {k.replace("*", "sha256") for r in results for k in r.get("dropped", [])}

def noted(said):
    """The same of the line on stderr."""
    listed = said.stderr.decode().partition(" left out ")[2].partition(", recorded")[0]
    return {k.replace("*", "sha256") for k in listed.split(", ") if k}

def attempt(command, model, how):
    global held
    shutil.rmtree("now", ignore_errors=True)
    shutil.copytree(f"in/{model}", "now")
    name = "m.safetensors.index.json" if model == "set" else "m.safetensors"
    data, words = b"", shlex.split(command.replace("*", "'*'"))
    if "<" in words:
        data, words = BYTES, words[:words.index("<")]
    words = [f"now/{name}" if w == "IN" else w for w in words]
    output = {"o": "out/m.safetensors", "d": "out", "s": "-"}.get(how)
    if output == "out/m.safetensors" and model == "set" and words[0] == "meta":
        output = "out/" + name
    words += ["-o", output] if output else ["--in-place"] if how == "i" else []
    shutil.rmtree("out", ignore_errors=True)
    os.makedirs("out")
    before = bytes_of(files("now"))
    olds = {p: covers(p) for p in before}
    sources = set(before) | {w for w in words if w.startswith("in/")}
    for path in sources - set(olds):
        olds[path] = covers(path)
    label = " ".join(words)[:78]
    dry = run([*words, "--dry-run", "--json"], data) if how != "s" else None
    check(bytes_of(files("now")) == before and not files("out"), label, "--dry-run writes")
    said = run([*words, *([] if how == "s" else ["--json"])], data)
    check(said.returncode == 0, label, said.returncode, said.stdout[-300:], said.stderr)
    if how == "s":
        open("out/m.safetensors", "wb").write(said.stdout)
    after = bytes_of(files("out") if output else files("now"))
    fresh = set(after) if output else {p for p in after if after[p] != before.get(p)}
    gone = sources if output else {p for p in before if before[p] != after.get(p)}
    for index in glob.glob("now/*.json") + glob.glob("out/*.json") if after else []:
        verify = run(["info", "--verify", "-f", "path", index])
        check(verify.returncode == 0, label, index, "does not hold:", verify.stdout, verify.stderr)
    for path in fresh:
        meta, covered, _ = covers(path)
        for k in DIGESTS:
            same = [o[0][k] for o in olds.values() if k in o[0] and o[1][k] == covered[k]]
            if output and len(sources) > 1 and words[0] not in ("rename", "repair"):
                same = [] # the metadata of all files, which are of none alone
            check((k in meta) == bool(same), label, path, k, "kept" if k in meta else "dropped")
        verify = run(["info", "--verify", "-f", "path", path])
        check(verify.returncode == 0, label, path, "does not hold:", verify.stdout, verify.stderr)
        held += 1
    lost = {k for p in gone for q in fresh for k in DIGESTS
            if k in olds[p][0] and k not in covers(q)[0] and olds[p][2] & covers(q)[2]}
    for told in [noted(said)] if how == "s" else [dropped(said), dropped(dry)]:
        check(told == lost, label, "tells", told, "of", lost)

for model in [*ONE.split(), "set", "alone", "padding"]: # and --verify tells a wrong one
    for path in files(f"in/{model}"):
        check(run(["info", "--verify", "-f", "path", path]).returncode == 0, path)
        for k in covers(path)[0].keys() & set(DIGESTS):
            text = open(path, "rb").read()
            at = text.index(b'"%s": "' % k.encode()) + len(k) + 9
            other = b"b" if text[at:at + 1] == b"a" else b"a"
            open("bad.safetensors", "wb").write(text[:at] + other + text[at + 1:])
            code = run(["info", "--verify", "bad.safetensors"]).returncode
            check(code == 1, path, k, "is not verified:", code)
for command, models, ways in COMMANDS:
    for model in models.split():
        for how in ways:
            attempt(command, model, how)
print("all hold" if held > 150 and not wrong else f"{held} outputs, {wrong} wrong")
