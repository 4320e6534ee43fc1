"""Indexes that lead out of their folder, given to every command: prints what was read or changed there."""
import hashlib, json, os, shutil, struct, subprocess, sys

SFT, HERE = sys.argv[1], os.getcwd()


def model(path, name, metadata=None):
    header = {name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    if metadata:
        header = {"__metadata__": metadata, **header}
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + bytes(range(8)))


# name of the shard: links to plant in the folder `f`, beside which `home` is
WAYS = {
    "none": ("w/secret.safetensors", {}),
    "relative": ("w/secret.safetensors", {"w": "../home"}),
    "absolute": ("w/secret.safetensors", {"w": HERE + "/home"}),
    "climbing": ("w/secret.safetensors", {"w": "sub/../../home"}),
    "chain": ("w/secret.safetensors", {"w": "v", "v": "../home"}),
    "dangling": ("w/secret.safetensors", {"w": "../none"}),
    "loop": ("w/secret.safetensors", {"w": "v", "v": "w"}),
    "last": ("s.safetensors", {"s.safetensors": "../home/secret.safetensors"}),
    "last absolute": ("s.safetensors", {"s.safetensors": HERE + "/home/secret.safetensors"}),
    "last dangling": ("s.safetensors", {"s.safetensors": "../home/none.safetensors"}),
    "last loop": ("s.safetensors", {"s.safetensors": "s.safetensors"}),
    "deep": ("sub/w/secret.safetensors", {"sub/w": "../../home"}),
}
INDEX = "f/model.safetensors.index.json"
READ = [["info"], ["ls"], ["check"], ["check", "--deep"], ["check", "--json"], ["hash"], ["dup"],
        ["find", "secret"], ["meta", "list", "--each-shard"]]
READ = [command + [INDEX] for command in READ] + [
    ["cat", INDEX, "secret"], ["diff", INDEX, "home/secret.safetensors"],
    ["select", INDEX, "-o", "o.safetensors", "--keep", "secret"],
    ["merge", INDEX, "-o", "o.safetensors"], ["split", INDEX, "-o", "o", "--count", "2"],
    ["convert", INDEX, "-o", "o", "--dtype", "BF16"], ["repair", INDEX, "-o", "o", "--copy"],
    ["info", "-r", "f"], ["check", "-r", "f"], ["ls", "f"],
    ["rename", INDEX, "-o", "o", "--map", "secret=b"]]
WRITE = [["put", INDEX, "secret"], ["meta", "set", "--each-shard", INDEX, "k", "v"],
         ["meta", "set", "--each-shard", "--follow", INDEX, "k", "v"],
         ["meta", "rm", "--each-shard", "--follow", INDEX, "k"], ["meta", "recover", INDEX],
         ["meta", "recover", "--follow", "--force", INDEX], ["rename", INDEX, "--map", "secret=b"],
         ["rename", "--follow", INDEX, "--map", "secret=b"],
         ["convert", "--in-place", INDEX, "--dtype", "BF16"], ["rm-tensor", INDEX, "secret"],
         ["select", INDEX, "--in-place", "--drop", "secret"], ["add", INDEX, "x=x.npy"]]


def home_now():
    found = []
    for name in sorted(os.listdir("home")):
        with open("home/" + name, "rb") as file:
            found.append((name, hashlib.sha256(file.read()).hexdigest(),
                          os.stat("home/" + name).st_mtime_ns))
    return found


def plant(way):
    for name in ("f", "home", "o", "o.safetensors"):
        shutil.rmtree(name, True) if os.path.isdir(name) else None
        if os.path.lexists(name):
            os.unlink(name)
    os.makedirs("f/sub")
    os.mkdir("home")
    model("home/secret.safetensors", "secret", {"k": "hidden"})
    model("f/own.safetensors", "own", {"k": "v"})
    with open("x.npy", "wb") as out:
        text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }\n"
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"x")
    shard, links = WAYS[way]
    if not links:
        os.mkdir("f/w")
        model("f/w/secret.safetensors", "secret", {"k": "v"})
    for name, target in links.items():
        os.symlink(target, "f/" + name)
    with open(INDEX, "w") as out:
        json.dump({"metadata": {}, "weight_map": {"own": "own.safetensors", "secret": shard}}, out)


ran, wrong = 0, 0
for way in WAYS:
    for command in READ + WRITE:
        plant(way)
        links = {name: os.readlink("f/" + name) for name in WAYS[way][1]}
        before = home_now()
        done = subprocess.run([SFT] + command, input=b"12345678", capture_output=True, timeout=20)
        text = done.stdout + done.stderr
        kept = all(os.path.islink("f/" + n) and os.readlink("f/" + n) == t
                   for n, t in links.items())
        quiet = command[:2] == ["meta", "recover"]  # there was nothing to recover
        whole = home_now() == before and kept
        told = quiet or done.returncode in (1, 2)
        if not links:  # the command is one that would have worked
            told, kept = done.returncode == (command[0] in ("diff", "find")), True
        leaked = b"hidden" in text and command[0] != "diff"
        made = os.path.exists("o.safetensors") or os.path.isdir("o") and os.listdir("o")
        ran += 1
        if whole and told and not leaked and not (links and made):
            continue
        wrong += 1
        print(way, command, done.returncode, "home or links changed" * (not whole), text[-300:])
print(ran, "runs,", wrong, "wrong")
