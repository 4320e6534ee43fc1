# Without the network: what is not cached fails, and says so.
export HF_HUB_CACHE=$PWD/hub
for url in hf://owner/name hf://owner/name/model.safetensors https://host/model.safetensors \
    s3://bucket/model.safetensors gs://bucket/model.safetensors; do
    $SFT info --offline "$url"
    echo "$?"
done 2>&1
HF_HUB_OFFLINE=1 $SFT ls --json hf://owner/name/model.safetensors 2>/dev/null | pyjson 'j["results"][0]["error"]["code"]'
$SFT ls --offline https://host/a https://host/b 2>&1
echo "$?"
st x.safetensors "$one" 8
$SFT info --online --offline x.safetensors 2>&1
echo "$?"
$SFT ls --log-requests --offline hf://owner/name/model.safetensors 2>&1 | tail -1
