#!/usr/bin/env python3
"""Move random trees of models and take it back; kill mv at every call, and look at what it leaves.

  tests/move/run.py [--count N] [--seed N] [--folder DIR] [-v]

Trees have names that shells, other systems and JSON mind, sidecars of managers, shards with an
index, models that share a sidecar. After `mv` every file is there once, with its bytes (but for
the paths in sidecars); after `mv --undo` the tree is what it was, byte for byte. A KILL at each
call of the system (by strace, where it is there) leaves every model whole, with all that is its
own, in its old place or in its new one, and --undo gives the old tree back; so does a call that
fails.
Without --count: SFT_TARGET=long 10,000 trees, else 120. --folder makes the trees there, of the names that
its file system takes, and kills nothing.
"""
import argparse
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = shlex.split(os.environ.get("SFT_COMMAND", "")) or \
    [os.path.join(os.environ.get("SFT_BUILD", os.path.join(ROOT, "build")), "safetensors")]
NAMES = ["plain", "two words", "ünïcode-名前", "a'b\"c", "$(touch x)", "-dash", "semi;colon", "percent%41",
         "back\\slash", "tab\there", "new\nline", "[glob]*?", "UPPER", "upper", ".hidden-not", "dot.in.name",
         "#hash", "&and", "\u202eturned", "x" * 120, "{braces}", "~tilde", "con", "trailing "]
SIDECARS = [".civitai.info", ".metadata.json", ".json", ".txt", ".sha256", ".preview.png", ".png", ".yaml"]
PATTERNS = ["{base_model}/{kind}/{name|stem}", "{stem}", "{kind}/", "sorted/{name}{ - version_name}", "{author|kind}/{stem}",
            "{date}/{base_model|kind}/{stem}", "x/y/{name|stem}{ (rank)}"]
KNOWN = [1872]  # seeds that failed once
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + b"\x1f\x15\xc4\x89"


def model(rng, names):
    header = {"__metadata__": {}} if rng.random() < .5 else {}
    if header:
        for key in rng.sample(["modelspec.title", "ss_output_name", "modelspec.author"], 2):
            header["__metadata__"][key] = rng.choice(NAMES + ["../../up", "a/b", "", ".", "..", "nul"])
        header["__metadata__"]["ss_base_model_version"] = rng.choice(["sdxl_base_v1-0", "sd_v1", "what"])
    at = 0
    for name in names:
        header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [at, at + 8]}
        at += 8
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + rng.randbytes(at)


def taken_names(folder):
    """Those of the names that a file system takes."""
    names = []
    for name in NAMES:
        try:
            os.mkdir(os.path.join(folder, name))
            if name in os.listdir(folder):
                names.append(name)
            os.rmdir(os.path.join(folder, name))
        except OSError:
            pass
    return names


def put(path, data):
    with open(path, "wb") as out:
        out.write(data)


def make_tree(rng, top):
    """Paths of the models, each with the ends of its companions."""
    models = {}
    folders = [top]
    for _ in range(rng.randrange(4)):
        folder = os.path.join(rng.choice(folders), rng.choice(NAMES))
        os.makedirs(folder, exist_ok=True)
        if folder not in folders:
            folders.append(folder)
    for _ in range(rng.randrange(1, 7)):
        stem = os.path.join(rng.choice(folders), rng.choice(NAMES))
        if stem in models or any(s.lower() == stem.lower() for s in models) or stem in folders:
            continue
        put(stem + ".safetensors", model(rng, ["a.weight", "b.weight"]))
        own = rng.sample(SIDECARS, rng.randrange(len(SIDECARS)))
        for end in own:
            here = os.path.realpath(os.path.dirname(stem))
            name = os.path.basename(stem)
            text = {"notes": "n", "file_path": f"{here}/{name}.safetensors", "file_name": name,
                    "preview_url": f"{here}/{name}.preview.png", "id": rng.randrange(10 ** 6)}
            data = PNG + rng.randbytes(9) if end.endswith("png") else \
                (hashlib.sha256(stem.encode("utf-8", "replace")).hexdigest() + "\n").encode() if end == ".sha256" else \
                json.dumps(text, ensure_ascii=rng.random() < .5, indent=rng.choice([None, 1])).encode() \
                if end.endswith(("json", "info")) else b"words " + rng.randbytes(3).hex().encode()
            put(stem + end, data)
        if rng.random() < .15:
            put(stem + ".ckpt", b"PK" + rng.randbytes(30))
        models[stem] = own
    if rng.random() < .4:
        folder = os.path.join(rng.choice(folders), "shards")
        os.makedirs(folder, exist_ok=True)
        weight_map = {}
        for i in (1, 2):
            put(f"{folder}/model-{i:05}-of-00002.safetensors", model(rng, [f"t{i}"]))
            weight_map[f"t{i}"] = f"model-{i:05}-of-00002.safetensors"
        put(folder + "/model.safetensors.index.json", json.dumps({"weight_map": weight_map}).encode())
        put(folder + "/config.json", b'{"model_type": "llama"}')
    return models


def tree_of(top):
    found = {}
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, top)] = hashlib.sha256(file.read()).hexdigest()
    return found


def run(words, env, before=()):
    return subprocess.run([*before, *COMMAND, *words], env=env, capture_output=True, check=False, timeout=300)


class Tests:
    def __init__(self, verbose):
        self.passed = self.failed = 0
        self.verbose = verbose

    def check(self, good, what, detail=""):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"FAILED: {what}\n    {detail}", flush=True)


def loose(path):
    """What a sidecar that speaks of its place is compared by: with that taken out."""
    return path.endswith(".json")


def one_tree(tests, seed, scratch, env):
    rng = random.Random(seed)
    top, state = os.path.join(scratch, "tree"), env["XDG_STATE_HOME"]
    for folder in (top, state):
        shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(top)
    make_tree(rng, top)
    before = tree_of(top)
    pattern = rng.choice(PATTERNS)
    words = ["mv", "-r", top, "--to", pattern, "--no-user-records"] + ["--number"] * (rng.random() < .7)
    done = run(words, env)
    what = f"seed {seed}: {pattern}"
    after = tree_of(top)
    if done.returncode not in (0, 1, 2):
        tests.check(False, what + ": exit status", (done.returncode, done.stderr[-500:]))
    if b"nothing was moved" in done.stderr:
        tests.check(before == after, what + ": something moved all the same", done.stderr[-500:])
        return
    fixed = sorted(d for p, d in before.items() if not loose(p))
    moved = sorted(d for p, d in after.items() if not loose(p))
    # what two models share is copied
    tests.check(set(fixed) == set(moved) and len(moved) >= len(fixed), what + ": bytes are lost", done.stderr[-500:])
    for path in after:
        for part in path.split(os.sep):
            if path not in before and path.endswith(".safetensors") and part not in before:
                tests.check(part not in ("..", ".") and "\n" not in os.path.dirname(path) or
                            os.path.dirname(path) in {os.path.dirname(p) for p in before}, what + ": a name", path)
                break
    again = run(words, env)
    tests.check(tree_of(top) == after or again.returncode != 0, what + ": a second run moves more", again.stdout[-500:])
    while run(["mv", "--undo"], env).returncode == 0:
        pass
    now = tree_of(top)
    tests.check(now == before, what + ": undo gives another tree",
                sorted(set(now.items()) ^ set(before.items()))[:6])


def undo_all(env):
    """The first mv --undo that does not go well."""
    done = None
    while not done or done.returncode == 0:
        done = run(["mv", "--undo"], env)
    return done


def together(tests, scratch, rounds):
    """Two mv of the same models, and a note beside them: each model is whole in one place, and its note with it; all
    of them are taken back."""
    top = os.path.join(scratch, "tree")
    env = dict(os.environ, XDG_STATE_HOME=os.path.join(scratch, "state"))
    ends = ["safetensors", "civitai.info", "own.json"]
    for n in range(rounds):
        shutil.rmtree(top, ignore_errors=True)
        os.mkdir(top)
        for i in range(6):
            put(f"{top}/a{i}.safetensors", model(random.Random(i), ["a.weight"]))
            put(f"{top}/a{i}.civitai.info", b'{"id": 5}')
            put(f"{top}/a{i}.own.json", b'{"note": "by hand %d"}' % i)
        models = [f"{top}/a{i}.safetensors" for i in range(6)]
        lines = [["mv", *models, top + "/x/"], ["mv", *reversed(models), top + "/y/"], ["note", *models, "tags+=q"]]
        runs = [subprocess.Popen([*COMMAND, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for words in lines[:2 + n % 2]]
        for one in runs:
            one.wait(timeout=300)
        for undo in (False, True):
            undone = undo_all(env) if undo else None
            for i in range(6):
                found = sorted(path for path in tree_of(top) if os.path.basename(path).startswith(f"a{i}."))
                folder = os.path.dirname(found[0]) if found else ""
                what = f"together {n}, undone" if undone else f"together {n}"
                tests.check(found == sorted(os.path.join(folder, f"a{i}.{end}") for end in ends) and not (undone and folder),
                            what + ": not whole", found)
                with open(os.path.join(top, folder, f"a{i}.own.json"), encoding="utf-8") as file:
                    tests.check(json.load(file)["note"] == f"by hand {i}", what + ": another note", found)
            tests.check(not undone or undone.returncode == 1, f"together {n}: a run that cannot be taken back", undone and undone.stderr)


# ── Kills ──

CALLS = ("linkat,link,rename,renameat,renameat2,unlink,unlinkat,mkdir,openat,fsync,write,pwrite64,"
         "fallocate,rmdir,utimensat,fchmod")


def whole(top):
    """Whether the model and all that is its own lie in one place, old or new."""
    places = {}
    for folder, _, files in os.walk(top):
        for name in files:
            if name.startswith("."):
                continue
            stem, _, end = name.partition(".")
            places.setdefault((folder, stem), set()).add(end)
    ends = {"safetensors", "civitai.info", "metadata.json", "preview.png"}
    return any(found >= ends for found in places.values())


def find_strace():
    if os.environ.get("SFT_TARGET") == "coverage":
        return None  # what is killed counts nothing
    strace = shutil.which("strace")
    if strace and subprocess.run([strace, "-qq", "-o", "/dev/null", "true"], check=False).returncode == 0:
        return strace
    print("no strace: nothing is killed")
    return None


def traced(env):
    """LeakSanitizer cannot work in a process that is traced."""
    return dict(env, ASAN_OPTIONS=env.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


def calls_of(tests, strace, words, env, scratch, names):
    """(call, n) of a run that goes well, of calls that name one of these or may write."""
    log = os.path.join(scratch, "log")
    done = run(words, traced(env), [strace, "-f", "-qq", "-o", log, "-e", "trace=" + CALLS])
    tests.check(done.returncode == 0, f"{words[0]} under strace", done.stderr)
    counts, points = {}, []
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = re.match(r"^\d+ +(\w+)\((.*)", line)
            if found:
                counts[found.group(1)] = counts.get(found.group(1), 0) + 1
                if any(n in line for n in names) or found.group(1) in ("fsync", "write", "pwrite64"):
                    points.append((found.group(1), counts[found.group(1)]))
    tests.check(len(points) > 10, f"calls to kill {words[0]} at", points)
    return points


def killed(strace, words, env, call, n):
    run(words, traced(env), [strace, "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={n}"])


def kill_others(tests, scratch):
    """trash, dup --remove and note: the model is whole where it was or in the trash, one of two stays, what was
    written by hand is somewhere, a note is the old or the new one."""
    strace = find_strace()
    if not strace:
        return
    top, data = os.path.join(scratch, "tree"), os.path.join(scratch, "data")
    env = dict(os.environ, XDG_STATE_HOME=scratch + "/state", XDG_DATA_HOME=data)
    bin_files = data + "/Trash/files"

    def fresh():
        for folder in (top, data):
            shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(top + "/b")
        for stem in ("m", "b/other"):
            put(f"{top}/{stem}.safetensors", model(random.Random(7), ["a.weight"]))
        put(top + "/m.civitai.info", b'{"id": 5, "modelId": 6}')
        put(top + "/m.preview.png", PNG)
        put(top + "/m.metadata.json", b'{"notes": "n"}')
        put(top + "/b/other.txt", b"by hand")
        put(top + "/b/other.own.json", b'{"note": "by hand"}')

    def texts():
        return [open(os.path.join(at, f), "rb").read() for place in (top, data) for at, _, fs in os.walk(place) for f in fs]

    def note_is_whole():
        with open(top + "/b/other.own.json", encoding="utf-8") as file:
            return json.load(file)["note"] == "by hand"

    models = model(random.Random(7), ["a.weight"])
    for words, judge in (
            (["trash", top + "/m.safetensors"], lambda: whole(top) or whole(bin_files)),
            (["dup", "-r", top, "--remove", "--yes", "--keep", "shortest"],
             lambda: models in texts() and whole(top) and sum(b"by hand" in t for t in texts()) >= 2),
            (["dup", "-r", top, "--remove", "--delete", "--yes", "--keep", top + "/b"],
             lambda: models in texts() and os.path.exists(top + "/b/other.safetensors") and PNG in texts()
             and sum(b"by hand" in t for t in texts()) >= 2),
            (["dup", "-r", top, "--link", "--yes"],
             lambda: all(open(f"{top}/{s}.safetensors", "rb").read() == models for s in ("m", "b/other"))),
            (["note", top + "/b/other.safetensors", "rating=5"], lambda: note_is_whole() and texts().count(models) == 2)):
        fresh()
        for call, n in calls_of(tests, strace, words, env, scratch, ("/tree", "/data")):
            fresh()
            killed(strace, words, env, call, n)
            tests.check(judge(), f"{' '.join(words)}: killed at {call} {n}", (sorted(tree_of(top)), sorted(tree_of(data))))


def kills(tests, scratch, across):
    strace = find_strace()
    if not strace:
        return
    top, state = os.path.join(scratch, "tree"), os.path.join(scratch, "state")
    other = tempfile.mkdtemp(prefix="sft-move-", dir="/dev/shm") if across else top
    env = dict(os.environ, XDG_STATE_HOME=state)

    def fresh():
        for folder in (top, state):
            shutil.rmtree(folder, ignore_errors=True)
        os.mkdir(top)
        rng = random.Random(7)
        here = os.path.realpath(top)
        put(top + "/m.safetensors", model(rng, ["a.weight"]))
        put(top + "/m.civitai.info", b'{"id": 5, "modelId": 6}')
        put(top + "/m.preview.png", PNG)
        put(top + "/m.metadata.json", json.dumps({"file_path": here + "/m.safetensors", "file_name": "m"}).encode())
        if across:
            shutil.rmtree(other)
            os.mkdir(other)

    words = ["mv", top + "/m.safetensors", os.path.join(other, "sub/" if across else "new/")]
    fresh()
    before = tree_of(top)
    points = calls_of(tests, strace, words, env, scratch, ("/tree", "/state", "sft-move"))
    for call, n in points:
        fresh()
        killed(strace, words, env, call, n)
        tests.check(whole(top) or whole(other), f"killed at {call} {n}: no whole model", sorted(tree_of(top)))
        undone = run(["mv", "--undo"], env)
        now = {p: d for p, d in tree_of(top).items() if not os.path.basename(p).startswith(".")}
        tests.check(now == before and (not across or not tree_of(other)), f"killed at {call} {n}, undone: another tree",
                    (sorted(now), sorted(tree_of(other)), undone.stderr))
    for call, n in points if across else ():  # what fails is taken back by a copy
        fresh()
        refused = run(words, traced(env), [strace, "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error=EACCES:when={n}"])
        tests.check(refused.returncode == 2 and tree_of(top) == before and not tree_of(other) if call.startswith("unlink")
                    else whole(top) or whole(other), f"refused at {call} {n}: a model in two places",
                    (sorted(tree_of(top)), sorted(tree_of(other)), refused.stderr))
    if across:
        shutil.rmtree(other)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=10000 if os.environ.get("SFT_TARGET") == "long" else 120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default="/tmp" if os.path.isdir("/tmp") else None)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    tests = Tests(options.v)
    kill = options.folder == parser.get_default("folder")
    with tempfile.TemporaryDirectory(prefix="sft-move-", dir=options.folder) as scratch, \
            tempfile.TemporaryDirectory(prefix="sft-state-") as state:
        NAMES[:] = taken_names(scratch)
        for seed in [*KNOWN, *range(options.seed, options.seed + options.count)]:
            one_tree(tests, seed, scratch, dict(os.environ, XDG_STATE_HOME=state + "/s"))
        if kill:
            kills(tests, scratch, False)
            kill_others(tests, scratch)
            together(tests, scratch, 12)
        if kill and os.path.isdir("/dev/shm") and os.stat("/dev/shm").st_dev != os.stat(scratch).st_dev:
            kills(tests, scratch, True)
    print(f"{tests.passed} passed, {tests.failed} failed")
    return tests.failed > 0


if __name__ == "__main__":
    sys.exit(main())
