# Shards without an index are one model; one that is missing is told.
mkdir s t
for i in 1 2 3; do st s/m-0000$i-of-00003.safetensors "{\"t$i\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}" 8; done
st s/m-00001-of-00002.safetensors "$one" 8
st s/m-1-of-3.txt.safetensors "$one" 8
$SFT info --json s | pyjson '[(r["path"], r["ok"], r.get("missing"), len(r.get("shards", []))) for r in j["results"]]'
rm s/m-00002-of-00003.safetensors
$SFT info -f path s; echo $?
$SFT info --jsonl s/m-00003-of-00003.safetensors | pyjson 'j["set"]'
cp sharded/*.safetensors sharded/*.json t
$SFT info --jsonl t/model-00002-of-00003.safetensors | pyjson 'j["set"], j["ok"]'
rm t/model-00002-of-00003.safetensors t/model-00003-of-00003.safetensors
$SFT info --json t | pyjson 'j["results"][0]["missing"], j["results"][0]["error"]["code"]'
echo ${PIPESTATUS[0]}
