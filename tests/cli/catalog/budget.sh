# Long details of many models: bounded, and in the mean at most 2 KB with their rows. What is copied
# is never cut.
python3 - <<'PY'
import json, os, random, struct
dice = random.Random(1)
os.mkdir("m")
def words(n):
    return " ".join("".join(dice.choices("abcdefghijklmnop", k=6)) for _ in range(n))
for i in range(700):
    meta = {"modelspec.title": words(3), "modelspec.description": words(900), "modelspec.author": words(1),
            "modelspec.trigger_phrase": words(14), "modelspec.tags": ",".join(words(1) for _ in range(50)),
            "ss_tag_frequency": json.dumps({"10_x": {words(2): k + 1 for k in range(99)}}),
            "ss_network_module": "networks.lora", "ss_network_args": json.dumps({words(1): words(9) for _ in range(9)}),
            **{"key " + words(1): words(2) for _ in range(60)}}
    head = {"__metadata__": meta, "lora_unet_x.lora_down.weight": {"dtype": "F16", "shape": [4, 8], "data_offsets": [0, 64]}}
    text = json.dumps(head).encode()
    with open(f"m/model-{i}.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + bytes(64))
PY
catalog m -o c.html
page c.html 'len(json.dumps([rows, blocks], separators=(",", ":"), ensure_ascii=False).encode()) // 700 <= 2048'
page c.html 'rows["file"][9:12], more[10]["path"], len(blocks)'
page c.html 'sorted(set(len(one["trigger_words"][0]["text"]) for one in more)), all("…" not in one["trigger_words"][0]["prompt"] for one in more)'
page c.html 'len(more[0]["model"]["description"][0]), more[0]["cut"], max(len(one["model"]["description"][0]) for one in more[300:]), max(len(json.dumps(one)) for one in more[300:]) < 4000'
page c.html 'max(len(one) for one in rows["tags"]), max(len(one["metadata_keys"]) for one in more)'
