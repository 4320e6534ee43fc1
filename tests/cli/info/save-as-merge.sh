# Merging: objects within objects, lists and texts of others, odd and large sidecars.
side=lora/neon-city.civitai.info
python3 - <<'P'
import json
old = {"id": 2000001, "modelId": 1000001, "name": "v1.0", "baseModel": "SDXL 1.0",
       "trainedWords": ["neoncty"], "files": [{"id": 5, "hashes": {"SHA256": "AB"}}],
       "model": {"name": "Neon City", "type": "LORA", "poi": False, "own": {"deep": {"er": [1]}}},
       "images": [{"url": "x"}], "extensions": {"a": {"b": 1}}}
text = json.dumps(old, indent=4)
text = text[:-1] + ', "twice": 1, "twice": 2, "\\u0065sc": 3, "nest": %s1%s}' % ("[" * 100, "]" * 100)
open("lora/neon-city.civitai.info", "w").write(text)
P
$SFT info --save-as civitai --force --hash sha256 lora
pyjson 'j["files"], j["images"], j["extensions"], j["model"]["own"], j["model"]["poi"], j["model"]["tags"], j["creator"], j["esc"], j["name"]' <$side
grep -o '"twice":[0-9]' $side | tr -d '\n'; echo
echo "== texts of others"
echo '{"file_name":"old","sha256":"","usage_tips":"{\"strength_min\":0.2}","notes":"mine","civitai":{"id":9,"x":{"y":1}},"tags":[],"favorite":true}' >lora/neon-city.metadata.json
$SFT info --save-as lora-manager --force lora
pyjson '[j[k] for k in ("file_name", "usage_tips", "notes", "tags", "favorite", "from_civitai")], j["civitai"]["id"], j["civitai"]["x"]' <lora/neon-city.metadata.json
echo "== large"
python3 - <<'P'
import json
old = {"key %d" % i: i for i in range(300000)}
old["notes"] = "mine"
json.dump(old, open("lora/neon-city.json", "w"))
side = json.load(open("lora/neon-city.civitai.info"))
side["model"]["description"] = "word " * 13000
json.dump(side, open("lora/neon-city.civitai.info", "w"))
P
$SFT info --save-as a1111 --force --json lora | pyjson 'j["results"][0]["saved"]["keys"]'
pyjson 'len(j), j["key 299999"], j["notes"]' <lora/neon-city.json
