# A pipe or device under a shard's or model's name is told at once; one that the user
# names is waited for, until a signal comes.
mkdir f
st f/own.safetensors "$one" 8
mkfifo f/pipe.safetensors f/free.safetensors
ln -s /dev/zero f/zero.safetensors
ln -s pipe.safetensors f/link.safetensors
for shard in pipe zero link; do
    name=$shard.safetensors
    printf '{"weight_map":{"a":"own.safetensors","b":"%s"}}' $name >f/$shard.safetensors.index.json
    for command in ls check "check --json" info hash "cat -m" "meta list --each-shard" \
        "meta set --each-shard --follow" "meta recover" put rm-tensor "repair -o o" dup; do
        rest=; case $command in meta\ set*) rest="k v";; put|rm-tensor) rest=b;; cat*) command=cat; rest=b;; esac
        timeout -s KILL 20 $SFT $command f/$shard.safetensors.index.json $rest </dev/null >out 2>&1
        status=$?
        [ $status = 1 ] || [ $status = 2 ] || echo "$shard: $command: $status"
    done
    timeout -s KILL 20 $SFT ls f/$shard.safetensors.index.json
done
echo "# folders"
rm f/*.json
for command in "info -r" "check -r" "ls" "hash" "dup -r" "find word -r"; do
    timeout -s KILL 20 $SFT $command f >out 2>err
    echo "$command: $?"
    sort err
done
echo "# signals"
python3 - "$SFT" <<'P'
import os, signal, subprocess, sys, time
def plain():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
os.mkfifo("a"), os.mkfifo("b"), os.mkfifo("c")
for command in (["info", "a"], ["check", "a", "b"], ["hash", "a", "b", "c"], ["cat", "a", "w"],
                ["ls", "a"], ["info", "a", "b", "c"], ["hash", "-"]):
    hold = os.open("a", os.O_RDWR)
    child = subprocess.Popen([sys.argv[1]] + command, preexec_fn=plain, stdin=hold,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    waits = child.poll() is None
    child.send_signal(signal.SIGINT)
    try:
        print(*command, waits, child.wait(timeout=10))
    except subprocess.TimeoutExpired:
        child.kill()
        print(*command, "goes on")
    os.close(hold)
P
echo "# what came through a pipe is not asked for again"
(printf 'no model at all, but words' >a) & timeout -s KILL 20 $SFT check a
echo $?
