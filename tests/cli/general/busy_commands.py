"""Commands on files that another program locks or changes: prints what is not refused as edit_busy."""
import fcntl, json, os, shutil, struct, subprocess

SFT = os.environ["SFT"]
A, INDEX = "a.safetensors", "m/model.safetensors.index.json"
SHARD = "m/model-0000%d-of-00002.safetensors"
wrong, tried = [], 0


def model(path, names, metadata=None, tail=b""):
    header = {"__metadata__": metadata or {"k": "v"}}
    for i, name in enumerate(names):
        header[name] = {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"\0\0\x80?" * 2 * len(names) + tail)


def fresh(tail=b""):
    shutil.rmtree("t", ignore_errors=True)
    os.makedirs("t/m")
    os.chdir("t")
    model(A, ["t0", "t1"], tail=tail)
    model("b.safetensors", ["b"])
    shards = {}
    for i in (1, 2):
        model(SHARD % i, ["s%d.0" % i, "s%d.1" % i], {"format": "pt"})
        shards.update({"s%d.%d" % (i, k): os.path.basename(SHARD % i) for k in (0, 1)})
    with open(INDEX, "w") as f:
        json.dump({"metadata": {"total_size": 32}, "weight_map": shards}, f)
    with open("x.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
                .ljust(117) + b"\n" + b"1234")


def look():
    return {os.path.join(folder, name): open(os.path.join(folder, name), "rb").read()
            for folder, _, names in os.walk(".") for name in names}


def start(args):
    return subprocess.Popen([SFT, *args, "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def busy(process, sent=b""):
    out, err = process.communicate(sent)
    return process.returncode == 2 and b'"edit_busy"' in out + err


def check(what, args, holds):
    global tried
    tried += 1
    if not holds:
        wrong.append("%s: %s" % (what, " ".join(args)))


def locked(path, args, tail=b""):
    """While another program holds the lock on path; and once it has let go."""
    fresh(tail)
    before = look()
    with open(path) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        check("locked " + path, args, busy(start(args), b"\0" * 8) and look() == before)
    done = start(args)
    done.communicate(b"\0" * 8)
    check("free " + path, args, done.returncode == 0)
    os.chdir("..")


def has_open(process, path):
    folder, real = "/proc/%d/fd" % process.pid, os.path.realpath(path)
    for name in os.listdir(folder):
        try:
            if os.readlink(os.path.join(folder, name)) == real:
                return True
        except OSError:
            pass
    return False


def opened(process, path):
    """Waits until the process has the file open and sleeps, which it does for standard input alone."""
    while process.poll() is None:
        if has_open(process, path):
            with open("/proc/%d/stat" % process.pid) as f:
                if f.read().rpartition(")")[2].split()[0] == "S":
                    return


def edit():
    done = subprocess.run([SFT, "meta", "set", A, "note", "precious"], capture_output=True)
    return done.returncode


def replace():
    model("n", ["t0", "t1"], {"note": "precious"})
    os.rename("n", A)


def touch():
    with open(A, "r+b") as f:
        f.seek(-1, os.SEEK_END)
        f.write(b"!")


def changed(change, args, sent):
    """While the command waits for standard input, and has the file open."""
    fresh()
    waiting = start(args)
    opened(waiting, A)
    change()
    before = look()
    check(change.__name__, args, busy(waiting, sent) and look() == before)
    os.chdir("..")


FORCE = ["-o", A, "--force"]
ONE = [["rm-tensor", A, "t0"], ["add", A, "x=x.npy"], ["select", A, "--in-place", "--drop", "t0"],
       ["convert", A, "--in-place", "--dtype", "F16"], ["rename", A, "--add-prefix", "p."],
       ["merge", A, "b.safetensors", *FORCE],
       ["select", A, "--drop", "t0", *FORCE], ["meta", "set", A, "q", "r"],
       ["meta", "set", "b.safetensors", "q", "r", *FORCE], ["put", A, "t0"]]
SEVERAL = [["rm-tensor", INDEX, "s1.0"], ["add", INDEX, "x=x.npy"],
           ["select", INDEX, "--in-place", "--drop", "s1.0"],
           ["convert", INDEX, "--in-place", "--dtype", "F16"],
           ["rename", INDEX, "--add-prefix", "p."], ["meta", "set", INDEX, "q", "r"],
           ["meta", "scrub", INDEX], ["meta", "set", "--each-shard", INDEX, "q", "r"],
           ["put", INDEX, "s1.0"]]

for args in ONE:
    locked(A, args)
locked(A, ["repair", A, "--in-place"], b"trailing")
for args in SEVERAL:
    locked(INDEX, args)
    if args[0] not in ("meta", "add") or "--each-shard" in args:
        locked(SHARD % 1, args)

fresh()
model("stdin", ["s"])
STDIN = open("stdin", "rb").read()
os.chdir("..")
if os.path.exists("/proc/self/fd"):
    for change in (replace, touch, edit):
        changed(change, ["merge", A, "-", "-o", "out.safetensors"], STDIN)
        changed(change, ["put", A, "t0", "-o", "out.safetensors"], b"\0" * 8)
    for change in (replace, touch):
        changed(change, ["merge", A, "-", *FORCE], STDIN)
    # Whoever comes second is the one who is refused.
    fresh()
    waiting = start(["merge", A, "-", *FORCE])
    opened(waiting, A)
    check("an edit of what it replaces", waiting.args, edit() == 2)
    waiting.communicate(STDIN)
    check("the first", waiting.args, waiting.returncode == 0)
    os.chdir("..")
shutil.rmtree("t")
print("enough tried:", tried > 50, "wrong:", wrong)
