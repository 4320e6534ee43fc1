"""Every command that works for long, ended by signals: prints which leave something or say otherwise."""
import os, shutil, signal, struct, subprocess, time
SFT, HALF = os.environ["SFT"], 500 << 20

def model(path):
    head = b'{"__metadata__":{"k":"v"},' + b",".join(
        b'"%c":{"dtype":"F32","shape":[%d],"data_offsets":[%d,%d]}'
        % (97 + i, HALF // 4, i * HALF, (i + 1) * HALF) for i in range(2)) + b"}"
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head)
        f.truncate(8 + len(head) + 2 * HALF)

def index(folder):
    os.mkdir(folder)
    for i in (1, 2):
        head = b'{"%d":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (i, HALF, HALF)
        head += b" " * (-len(head) % 8)
        with open("%s/model-0000%d-of-00002.safetensors" % (folder, i), "wb") as f:
            f.write(struct.pack("<Q", len(head)) + head)
            f.truncate(8 + len(head) + HALF)
    with open(folder + "/model.safetensors.index.json", "w") as f:
        f.write('{"metadata":{"total_size":%d},"weight_map":{"1":"model-00001-of-00002.safetensors",'
                '"2":"model-00002-of-00002.safetensors"}}' % (2 * HALF))

def state(path="w"):
    return sorted((os.path.join(at, name), os.lstat(os.path.join(at, name)).st_size,
                   os.lstat(os.path.join(at, name)).st_mtime_ns)
                  for at, dirs, files in os.walk(path) for name in files + dirs)

def plain():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)

def at_work(child):
    """Whether the file to be written, or the one to be looked at, is open."""
    try:
        links = [os.readlink("/proc/%d/fd/%s" % (child.pid, fd))
                 for fd in os.listdir("/proc/%d/fd" % child.pid)]
    except OSError:
        return child.poll() is not None
    return any("(deleted)" in link or ".sft-" in link or "b.safetensors" in link for link in links)

def once(words, number, stdin):
    shutil.rmtree("w", ignore_errors=True)
    os.mkdir("w")
    model("w/a.safetensors")
    model("w/b.safetensors")
    index("w/set")
    before = state()
    child = subprocess.Popen([SFT, *words], stdin=open(stdin), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=plain)
    while not at_work(child):
        time.sleep(0.001)
    time.sleep(0.01)
    child.send_signal(number)
    said = child.communicate(timeout=30)
    return child.returncode, state() == before, said

one = "x.npy"
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
head += b" " * (-(len(head) + 11) % 64) + b"\n"
open(one, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(4))
with open("half", "wb") as f:
    f.truncate(HALF)
i = "w/set/model.safetensors.index.json"
for words in (["convert", "w/a.safetensors", "-o", "w/out", "--dtype", "BF16"],
              ["convert", i, "-o", "w/out", "--dtype", "I16", "--match", "*"],
              ["convert", "w/a.safetensors", "--in-place", "--dtype", "F16"],
              ["split", "w/a.safetensors", "-o", "w/out", "--count", "2"],
              ["merge", "w/a.safetensors", "-o", "w/out"],
              ["select", "w/a.safetensors", "-o", "w/out", "--keep", "a"],
              ["select", i, "-o", "w/out", "--keep", "*", "--copy"],
              ["repair", "w/a.safetensors", "-o", "w/out", "--copy"],
              ["repair", i, "-o", "w/out", "--copy"],
              ["add", "w/a.safetensors", "x=" + one],
              ["add", i, "x=" + one],
              ["put", "w/a.safetensors", "b"],
              ["rename", i, "--add-prefix", "x."],
              ["rename", i, "--add-prefix", "x.", "-o", "w/out"],
              ["meta", "set", "w/a.safetensors", "k", "v" * 9000, "--safe"],
              ["meta", "set", "w/a.safetensors", "k", "v" * 9000, "-o", "w/out"],
              ["diff", "w/a.safetensors", "w/b.safetensors"],
              ["hash", "w/b.safetensors"]):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for _ in range(5):  # it may have been too fast, more so where blocks are shared
            status, same, said = once(words, number, "half" if words[0] == "put" else "/dev/null")
            if status != 0:
                break
        if (status, same, said) != (-number, True, (b"", b"")) and status != 0:
            print(words[:3], number, status, same, said)
        if status == 0 and words[0] != "meta":
            print(words[:3], "ended before the signal")
shutil.rmtree("w")
print("done")
