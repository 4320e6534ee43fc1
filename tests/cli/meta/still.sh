# set tells where info goes on showing another value, whoever tells that; scrub tells what it leaves.
file=lora/neon-city.safetensors
$SFT meta set $file modelspec.title Mine modelspec.tags a,b ss_base_model_version flux1 foo bar | plain
$SFT info --json $file | pyjson '[(k, j["results"][0]["model"][k]["value"]) for k in ("name", "architecture")]'
$SFT meta set $file modelspec.title "Neon City" modelspec.description x --json | pyjson 'j["results"][0]["still_shown"]'
$SFT meta set $file modelspec.title Other --dry-run | plain
$SFT meta set $file modelspec.title Copy -o copy.safetensors | plain
$SFT meta rm $file foo | plain
echo "== every key that tells a fact"
# Each is set to a value of its own; what info then shows is that value, or another one that is told.
cat >every.py <<'P'
import json, os, shlex, subprocess
sft = shlex.split(os.environ["SFT"])
def out(*words):
    return subprocess.run(sft + list(words), stdout=subprocess.PIPE, check=True).stdout
file = "lora/neon-city.safetensors"
keys = {"modelspec." + k: v for k, v in {"title": "t", "description": "d", "author": "a", "date":
        "2020-01-02", "license": "l", "usage_hint": "u", "tags": "g", "resolution": "64x64",
        "prediction_type": "v", "architecture": "stable-diffusion-v1/lora", "encoder_layer": "2",
        "language": "xx"}.items()}
keys |= {"ss_output_name": "o", "ss_base_model_version": "sd_v1", "ss_sd_model_name": "b.ckpt",
         "ssmd_display_name": "sd", "ssmd_author": "sa", "ssmd_description": "se", "author": "p"}
for key, value in keys.items():
    told = json.loads(out("meta", "set", file, key, value, "--json"))["results"][0]["still_shown"]
    model = json.loads(out("info", "--json", file))["results"][0]["model"]
    for field, fact in model.items():
        if not isinstance(fact, dict) or "others" not in fact:
            continue
        mine = [o["value"] for o in fact["others"] if o["source"].startswith("header:" + key)]
        shown = fact["source"].startswith("header:" + key) or all(o == fact["value"] for o in mine)
        said = [t for t in told if t["field"] == field]
        if shown == bool(said):
            print(key, field, "shown" if shown else "not shown", "said", said)
print(len(keys), "keys")
P
python3 every.py
echo "== scrub"
cp -r lora fresh
$SFT meta scrub fresh/neon-city.safetensors 2>/dev/null | grep -E '^(kept|not touched)'
$SFT meta scrub --dry-run --json fresh/neon-city.safetensors | pyjson '[j["results"][0][k] for k in ("kept", "beside")]'
