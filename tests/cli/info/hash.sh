# Digests: in the label, under the lines of a list, as fields, as JSON.
$SFT info --hash sha256,autov3 lora
$SFT info --hash content,sha256 sharded
$SFT info --hash autov2 -r .
$SFT info --hash sha256,crc32 -f path,hashes.computed.sha256,hashes.computed.crc32 -r . >fields
$SFT hash -r . | grep -v /model-000 | awk '{ print $2, $1 }' | sort >sums
awk '$2 != "" && length($2) == 64 { print $1, $2 }' fields | sort | cmp - sums && echo 'as hash says'
$SFT info --hash all --json lora | pyjson '[sorted(j["results"][0]["hashes"]["computed"]), j["results"][0]["hashes"]["computed"]["autov1_civitai"]]'
$SFT info --hash sha256,autov3 --json sharded | pyjson 'j["results"][0]["hashes"]["computed"]'
$SFT info --json lora | pyjson 'j["results"][0]["hashes"]["computed"]'
# The sidecar is of this file.
$SFT info --json lora | pyjson '[(s["kind"], s["match"]) for s in j["results"][0]["sidecars"]]'
$SFT info --hash sha256 --json lora | pyjson '[(s["kind"], s["match"]) for s in j["results"][0]["sidecars"]]'
$SFT info --hash sha256 -f civitai.matches_file,hashes.lookup_url lora
# Only what fits is hashed.
$SFT info --hash blake3 --cache cache --where architecture=sdxl -f path -r .
grep -c blake3 cache
$SFT info --hash sha256 --where sidecars.match=sha256 -f path -r .
# Remembered, and on one thread.
$SFT info --hash all --json -r --cache cache . >first
$SFT info --hash all --json -r --cache cache --threads 1 . | cmp - first && echo same
# Components.
mkdir -p p/unet p/vae && st p/unet/m.safetensors "$one" 8 && st p/vae/m.safetensors "$one" 8
echo '{"_class_name":"X"}' >p/model_index.json
$SFT info --hash sha256 p
$SFT info --hash sha256 --json p | pyjson '[[x["hashes"]["computed"] for x in j["results"]], [x["hashes"]["computed"] for x in j["results"][0]["parts"]]]'
# Shards without an index.
mkdir s && cp sharded/model-0000* s && $SFT info --hash content,sha256 -f hashes.computed.content s
$SFT info --hash content -f hashes.computed.content sharded
