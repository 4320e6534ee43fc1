"""Every command on a file with the journal of an interrupted edit: prints which misjudge it."""
import os, re, shutil, struct, subprocess, sys, zlib

sys.path.insert(0, os.path.dirname(os.environ["BASH_ENV"]))
from identity import identity

SFT = os.environ["SFT"]
HEAD = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
NAMES = ("m.safetensors", "s/m-00001-of-00002.safetensors", "s/m-00002-of-00002.safetensors")
INDEX = '{"metadata":{"total_size":16},"weight_map":{"w":"m-00001-of-00002.safetensors",' \
        '"v":"m-00002-of-00002.safetensors"}}'


def tear(path, bytes):
    """Half the data are the new bytes, half the old ones."""
    with open(path, "wb") as f:
        f.write(bytes[:-8] + b"nnnnoooo")
    b = b"sft-edit" + struct.pack("<12Q", 2, 1, *identity(path), len(bytes), 0,
                                  len(bytes) - 8, len(bytes) - 8, 1, 8, len(bytes) - 8, 8)
    b += bytes[:-8] * 2 + b"oooooooonnnnnnnn"
    with open("%s/.%s.sft-journal" % (os.path.dirname(path) or ".", os.path.basename(path)), "wb") as f:
        f.write(b + struct.pack("<Q", zlib.crc32(b)))


def fresh():
    if os.path.exists("t"):
        shutil.rmtree("t")
    os.makedirs("t/s")
    os.chdir("t")
    for name in NAMES:
        head = HEAD if not name.startswith("s/m-00002") else HEAD.replace(b'"w"', b'"v"')
        bytes = struct.pack("<Q", len(head)) + head + b"oooooooo"
        if name.startswith("s/m-00001"):
            with open(name, "wb") as f:
                f.write(bytes)
        else:
            tear(name, bytes)
    with open("s/m.safetensors.index.json", "w") as f:
        f.write(INDEX)
    with open("whole.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(HEAD)) + HEAD + b"oooooooo")
    with open("x.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00v\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
                .ljust(117) + b"\n" + b"1234")
    with open("sums", "w") as f:
        f.write("%s  m.safetensors\n" % ("0" * 64))


def look():
    found = {}
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.join(folder, name)
            found[path] = open(path, "rb").read()
    return found


M, I = "m.safetensors", "s/m.safetensors.index.json"
READ = [
    ["info", M], ["info", "s"], ["info", "--hash", "sha256", M], ["info", "--verify", M],
    ["info", "--deep", M],
    ["ls", M], ["ls", I], ["ls", "-r", "."], ["check", M], ["check", I], ["check", "--deep", M],
    ["cat", M, "w"], ["cat", I, "v"], ["cat", "--as", "raw", M, "w"],
    ["hash", M], ["hash", "s"], ["hash", "--algo", "sha256", M], ["hash", "--algo", "content", M],
    ["hash", "--algo", "autov1", M], ["hash", "-c", "sums"], ["find", "--compute", "00000000", M],
    ["catalog", M, "-o", "../c.html", "--force"], ["catalog", "--model", M, "-o", "out"],
    ["dup", M, "whole.safetensors"], ["diff", M, "whole.safetensors"], ["diff", "whole.safetensors", M],
    ["convert", M, "-o", "out", "--dtype", "F16"], ["convert", I, "-o", "out", "--dtype", "F16"],
    ["split", M, "-o", "out", "--count", "1"], ["split", I, "-o", "out", "--count", "1"],
    ["merge", M, "-o", "out"], ["merge", "s", "-o", "out"],
    ["lora", "info", M], ["lora", "merge", M, "whole.safetensors", "-o", "out"],
    ["lora", "merge", "whole.safetensors", M, "-o", "out"],
    ["select", M, "-o", "out", "--keep", "*"], ["select", I, "-o", "out", "--keep", "v"],
    ["meta", "list", M], ["meta", "get", M, "k"], ["meta", "set", M, "k", "v", "-o", "out"],
    ["meta", "set", M, "k", "v", "--dry-run"], ["meta", "rm", M, "k", "-o", "out"],
    ["meta", "scrub", M, "-o", "out"], ["rename", M, "--map", "w=x", "-o", "out"],
    ["rename", M, "--map", "w=x", "--dry-run"],
    ["add", M, "x=x.npy", "-o", "out"], ["put", M, "w", "-o", "out"], ["put", M, "w", "--dry-run"],
    ["rm-tensor", M, "w", "-o", "out"], ["repair", M, "-o", "out"],
    ["repair", I, "-o", "out", "--copy"],
]
EDIT = [
    ["meta", "set", M, "k", "v"], ["meta", "recover", M], ["rename", M, "--map", "w=x"],
    ["add", M, "x=x.npy"], ["put", M, "w"], ["select", M, "--in-place", "--keep", "*"],
    ["convert", M, "--in-place", "--dtype", "F16"], ["repair", M, "--in-place"],
]
bad = 0


def wrong(words, what, done):
    global bad
    bad += 1
    print("%s: %s: exit %d: %s" % (" ".join(words), what, done.returncode, (done.stdout + done.stderr).decode()))


def play(words):
    fresh()
    before = look()
    done = subprocess.run([SFT] + words, input=b"abcdefgh", capture_output=True)
    after = look()
    os.chdir("..")
    return before, done, after


for words in READ:
    before, done, after = play(words)
    said = done.stdout + done.stderr
    if done.returncode == 0 or b"interrupted" not in said:
        wrong(words, "does not tell", done)
    if before != after:
        wrong(words, "leaves other files", done)
for words in EDIT:
    before, done, after = play(words)
    torn = after["./m.safetensors"].endswith(b"nnnnoooo")
    if done.returncode or torn or "./.m.safetensors.sft-journal" in after:
        wrong(words, "does not recover", done)

known = {words[0] for words in READ + EDIT} | {"dataset", "records"}  # no models
listed = re.findall(r"^  ([a-z-]+)  +\S", subprocess.run([SFT, "help", "-a"], capture_output=True, text=True)
                    .stdout.split("\nInspect\n")[1].split("\nOptions:")[0], re.M)
print("not in the table:", sorted(set(listed) ^ known), "wrong:", bad)
