# JSON of any shape, long keys and long ids: one model cannot make the page large.
python3 - <<'PY'
import json, struct
def deep(levels):
    return {f"k{i}": deep(levels - 1) for i in range(20)} if levels else "x" * 60
def write(name, meta):
    head = {"__metadata__": meta, "lora_unet_x.lora_down.weight": {"dtype": "F16", "shape": [4, 8], "data_offsets": [0, 64]}}
    text = json.dumps(head).encode()
    with open(name + ".safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + bytes(64))
write("plain", {"sd_merge_recipe": json.dumps({"type": "x", "models": {"a": {"weight": 1}}})})
write("deep", {"sd_merge_recipe": json.dumps(deep(4))})
write("keys", {"sd_merge_recipe": json.dumps({f"{i}" * 99999: 1 for i in range(9)})})
write("arguments", {"ss_network_module": "networks.lora", "ss_network_args": json.dumps({f"{i}" * 9999: "1" for i in range(9)})})
write("architecture", {"modelspec.architecture": "a" * 999999, "modelspec.license": "b" * 999999})
PY
for name in plain deep keys arguments architecture; do $SFT catalog $name.safetensors -o $name.html >/dev/null; done
size() { stat -c %s $1.html; }
for name in deep keys arguments architecture; do echo $name $(( $(size $name) - $(size plain) < 4096 )); done
page plain.html 'more[0]["merge"]'
page deep.html 'more[0].get("merge"), more[0]["cut"]'
page keys.html 'more[0].get("merge"), more[0]["cut"]'
