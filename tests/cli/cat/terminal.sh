# Bytes are not sent to a terminal unless forced.
python3 - <<'P'
import os, pty, re, subprocess
sft = os.environ["SFT"]
for extra in ([], ["--to-terminal"]):
    master, slave = pty.openpty()
    child = subprocess.Popen([sft, "cat", "--as", "raw", *extra, "every-dtype.safetensors", "tensor.05.i8[0,:2]"],
                             stdout=slave, stderr=subprocess.PIPE)
    os.close(slave)
    try:
        got = os.read(master, 100)
    except OSError:
        got = b""
    print(re.sub(rb"\x1b\[\?25[lh]", b"", got), child.stderr.read().decode().strip(), child.wait())
P
