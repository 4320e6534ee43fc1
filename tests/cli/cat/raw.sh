python3 - <<'P'
import subprocess, os, json
sft = os.environ["SFT"]
ls = json.loads(subprocess.check_output([sft, "ls", "--json", "every-dtype.safetensors"]))
whole = open("every-dtype.safetensors", "rb").read()
for t in ls["results"][0]["tensors"]:
    b, e = t["file_offsets"]
    assert subprocess.check_output([sft, "cat", "--as", "raw", "every-dtype.safetensors", t["name"]]) == whole[b:e]
print("equal")
P
