python3 - <<'P'
import os, pty, re, subprocess
def run(env, *args):
    master, slave = pty.openpty()
    child = subprocess.Popen([os.environ["SFT"], "ls", "--match", "*.f4", *args, "every-dtype.safetensors"],
                             stdout=slave, stderr=slave, env=dict(os.environ, **env))
    os.close(slave)
    out = b""
    try:
        while True: out += os.read(master, 4096)
    except OSError: pass
    child.wait()
    return b"\x1b[" in re.sub(rb"\x1b\[\?25[lh]", b"", out) # a cursor is no colour
print(run({}), run({"NO_COLOR": "1"}), run({"TERM": "dumb"}), run({}, "--color", "never"))
P
