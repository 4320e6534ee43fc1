# verify finds what is wrong; what it says is escaped.
dataset kv kv
part=$(ls kv/part-00001*)
printf x | dd of="$part" bs=1 seek=$(($(stat -c %s "$part") - 1)) conv=notrunc 2>/dev/null
$SFT dataset verify kv; echo $?
$SFT dataset verify --deep kv | sed 's/found .*/found .../'; echo ${PIPESTATUS[0]}
printf x >>"$part"
$SFT dataset verify kv; echo $?
$SFT dataset ls kv >kv.ls; echo $?
rm "$part"
$SFT dataset verify --json kv | pyjson '[f["code"] for r in j["results"] for f in r["findings"]]'
$SFT dataset ls --json kv
cp kv/part-00000* kv/part-00009-0000-00000009-1111-4222-8333-444444444444.safetensors
sed -i 's/"total_samples":4/"total_samples":5/' kv/dataset_manifest.json
$SFT dataset verify kv; echo $?
sed -i 's/"shards":\[{"shard_path":"/&..\//' kv/dataset_manifest.json
$SFT dataset verify kv; echo $?
$SFT dataset info kv; echo $?
printf '{"format_version":"\033[31m' >kv/dataset_manifest.json
$SFT dataset verify kv; echo $?
rm kv/dataset_manifest.json
$SFT dataset verify kv; echo $?
# An index of other shards, and one that is none.
dataset connector-kv c
$SFT dataset verify c; echo $?
mv c/_tensor_index.parquet/part-00001* c/_tensor_index.parquet/part-00000*
$SFT dataset verify c; echo $?
rm -r c/_tensor_index.parquet; printf x >c/_tensor_index.parquet
$SFT dataset verify c; echo $?
