# A repair is promised where padding is NUL. A metadata key is not called a tensor.
corpus=$(dirname "$BASH_ENV")/../corpus
$SFT check --explain "$corpus/compat-only/R23-same.safetensors" | sed 's,^[^ ]*corpus/,,'
st nul-then-text.safetensors '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}   ' 1
printf '\0\0x' | dd of=nul-then-text.safetensors bs=1 seek=$((8 + 53)) conv=notrunc status=none
$SFT check nul-then-text.safetensors
printf '\0\0\0' | dd of=nul-then-text.safetensors bs=1 seek=$((8 + 53)) conv=notrunc status=none
$SFT check nul-then-text.safetensors
# NUL padding and damage that repair cannot fix: the hint promises a repair for neither.
python3 - <<'P'
import json, os, struct, subprocess
one = {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}
for name, entry, data in (("dtype", dict(one, dtype="Q9"), 8), ("cut", one, 4), ("shape", dict(one, shape=[9]), 8),
                          ("back", dict(one, data_offsets=[8, 0]), 8), ("tail", one, 9), ("hole", dict(one, data_offsets=[1, 9]), 9)):
    header = json.dumps({"a": entry}).encode() + bytes(8)
    with open(name + ".safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + bytes(data))
    run = lambda *words: subprocess.run([os.environ["SFT"], *words], capture_output=True, text=True)
    found = run("check", "--json", name + ".safetensors").stdout
    done = run("repair", name + ".safetensors", "-o", name + ".out")
    print(name, "promised:", "safetensors repair" in found, "repaired:", done.returncode == 0)
P
$SFT check --explain dtype.safetensors
