python3 - <<'P'
import os, pty, subprocess
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
    return b"\x1b[" in out
print(run({}), run({"NO_COLOR": "1"}), run({"TERM": "dumb"}), run({}, "--color", "never"))
P
