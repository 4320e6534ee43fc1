st bad.safetensors '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}' 8
$SFT check --json bad.safetensors quantised.safetensors >out.json
echo $?
python3 - <<'P'
import json
j = json.load(open("out.json"))
for r in j["results"]:
    print(r["path"], r["ok"], r["level"], sorted(r))
    print(r["error"], r["findings"], r["deep"])
P
