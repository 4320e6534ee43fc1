# Whole numbers are exact, what there is none of is null.
st f.safetensors '{"none":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[0,0]},"nan":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"wide":{"dtype":"U64","shape":[2],"data_offsets":[8,24]}}' 24
python3 - <<'P'
data = bytearray(open("f.safetensors", "rb").read())
data[-24:] = b"\xff" * 24
open("f.safetensors", "wb").write(data)
P
$SFT ls --stats --json f.safetensors | python3 -c 'import json, sys
r, = json.load(sys.stdin)["results"]
for t in r["tensors"]: print(t["name"], t["stats"])
print(r["stats"])'
$SFT ls --histogram --jsonl --match '*.0[04].*' every-dtype.safetensors | python3 -c 'import json, sys
r = json.load(sys.stdin)
for t in r["tensors"]: print(t["name"], t["stats"]["histogram"])
print(r["stats"]["histogram"])'
