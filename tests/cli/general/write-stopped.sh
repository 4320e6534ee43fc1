# INT, TERM and HUP leave the old file whole, and nothing else.
st a.safetensors '{"w":{"dtype":"U8","shape":[9000000],"data_offsets":[0,9000000]}}' 9000000
sum=$(md5sum <a.safetensors)
for signal in INT TERM HUP; do
    mkfifo pipe
    python3 - "$SFT" $signal <<'P'
import os, signal, subprocess, sys, time
def plain():
    for name in ("INT", "TERM", "HUP"):
        signal.signal(getattr(signal, "SIG" + name), signal.SIG_DFL)
read, write = os.pipe()
child = subprocess.Popen([sys.argv[1], "put", "a.safetensors", "w"], stdin=read, preexec_fn=plain)
os.close(read)
os.write(write, b"x" * 60000)
time.sleep(0.3)
child.send_signal(getattr(signal, "SIG" + sys.argv[2]))
time.sleep(0.1)
os.close(write)
print(child.wait())
P
    rm pipe
    [ "$sum" = "$(md5sum <a.safetensors)" ] && echo whole
done
ls -A | grep sft-
true
# Nor does a file too large leave anything.
(ulimit -f 16; trap '' XFSZ; $SFT rename sharded --add-prefix x. -o new); ls -d new 2>/dev/null
true
