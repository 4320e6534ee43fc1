$SFT info --json quantised.safetensors >out.json
python3 - <<'P'
import json
j = json.load(open("out.json"))
assert list(j) == ["schema", "command", "results"] and j["schema"] == 1 and j["command"] == "info"
r, = j["results"]
assert r["path"] == "quantised.safetensors" and r["ok"] is True and r["complete"] is True
f = r["file"]
assert sum(d["bytes"] for d in f["dtypes"].values()) == f["data_bytes"]
assert sum(d["parameters"] for d in f["dtypes"].values()) == f["parameters"]
assert f["bytes"] == f["data_offset"] + f["data_bytes"] and f["data_offset"] == 8 + f["header_bytes"]
print(sorted(f), sorted(f["dtypes"]), r["metadata"])
P
