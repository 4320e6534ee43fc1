"""Files that another program puts into the folder of a model while it is written: prints what is lost."""
import os, signal, shutil, struct, subprocess, time
SFT, SIZE, INDEX = os.environ["SFT"], 300 << 20, "model.safetensors.index.json"
SHARD = "model-00001-of-00002.safetensors"

def plain():
    signal.signal(signal.SIGINT, signal.SIG_DFL)

def model():
    os.mkdir("set")
    for i in (1, 2):
        head = b'{"%d":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (i, SIZE, SIZE)
        head += b" " * (-len(head) % 8)
        with open("set/model-0000%d-of-00002.safetensors" % i, "wb") as f:
            f.write(struct.pack("<Q", len(head)) + head)
            f.truncate(8 + len(head) + SIZE)
    with open("set/" + INDEX, "w") as f:
        f.write('{"metadata":{"total_size":%d},"weight_map":{"1":"model-00001-of-00002.safetensors",'
                '"2":"model-00002-of-00002.safetensors"}}' % (2 * SIZE))

def once(words, names, stopped):
    """Whether the files were put there in time, and what is left of them."""
    shutil.rmtree("d", ignore_errors=True)
    child = subprocess.Popen([SFT, *words, "set/" + INDEX, "-o", "d"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=plain)
    while not os.path.isdir("d"):
        time.sleep(0.001)
    early = not os.path.exists("d/" + SHARD)
    for name in names if early else ():
        with open("d/" + name, "x") as f:
            f.write("precious")
    if stopped:
        child.send_signal(signal.SIGINT)
    early = child.wait() != 0 and early
    return early, [name for name in names if not os.path.exists("d/" + name)]

model()
for words in (["rename", "--add-prefix", "x."], ["repair", "--copy"],
              ["select", "--keep", "*", "--copy"]):
    for names, stopped in (([SHARD, INDEX], True), ([INDEX], False)):
        for _ in range(20):  # it may have been too fast
            early, lost = once(words, names, stopped)
            if early:
                break
        if not early or lost:
            print(words[0], "stopped" if stopped else "ended", lost if early else "too fast")
print("done")
