# Whatever a hint of check promises of a repair, repair does; and it is promised where padding is
# NUL. A metadata key is not called a tensor.
corpus=$(dirname "$BASH_ENV")/../corpus
cat >promised.py <<'P'
import glob, json, os, subprocess, sys
sft, corpus = os.environ["SFT"], sys.argv[1]
files = sorted(p for d in ("refuse", "compat-only", "not-strict", "legacy", "foreign", "sets/*")
               for p in glob.glob(os.path.join(corpus, d, "**"), recursive=True)
               if os.path.isfile(p) and not p.endswith((".md", ".py")))
promised = kept = named = silent = 0
OTHER = ("--level compat", "--level strict", "--legacy", "different versions")
for level in ("compat", "default", "strict"):
    out = subprocess.run([sft, "check", "--json", "--level", level, *files], capture_output=True)
    for result in json.loads(out.stdout)["results"]:
        error = result.get("error")
        if not error:
            continue
        if error["code"] == "metadata_key_duplicate" and error.get("tensor") is not None:
            print("a tensor:", os.path.relpath(result["path"], corpus))
        hint = error.get("hint") or ""
        if "safetensors repair" not in hint:
            # What a repair would correct is not blamed on a writer, or left without a word.
            if not any(other in hint for other in OTHER):
                silent += 1
                made = "silent%d" % silent
                done = subprocess.run([sft, "repair", "--level", level, result["path"], "-o", made],
                                      capture_output=True)
                if done.returncode == 0:
                    print("no promise:", level, os.path.relpath(result["path"], corpus), hint)
            continue
        promised += 1
        named += error["code"] == "json_trailing"
        index = result["path"].endswith(".json")
        target = "out%d" % promised if index else "out%d.safetensors" % promised
        done = subprocess.run([sft, "repair", "--level", level, result["path"], "-o", target],
                              capture_output=True, text=True)
        if done.returncode == 0 and subprocess.run([sft, "check", "--level", level, target],
                                                   capture_output=True).returncode == 0:
            kept += 1
        else:
            print(level, os.path.relpath(result["path"], corpus), error["hint"], done.stderr)
print(len(files) > 500, promised > 10, named > 3, promised == kept, silent > 500)
P
python3 promised.py "$corpus"
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
