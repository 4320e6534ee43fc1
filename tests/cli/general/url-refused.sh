# What changes files takes no URL; what can write a copy wants -o. Nothing is sent.
export HF_HUB_OFFLINE=1 HF_HUB_CACHE=$PWD/hub
url=hf://owner/name/model.safetensors
for words in "meta set $url key value" "meta rm $url key" "meta scrub $url" "meta recover $url" \
    "rename $url --add-prefix x." "rm-tensor $url a" "add $url a=a.npy" "put $url a" \
    "repair $url -o fixed" "repair --in-place $url" "select --in-place $url --keep a" \
    "convert $url --dtype bf16" "dataset info hf://owner/name" "merge $url" \
    "select $url --keep a -o s3://bucket/key" "ls a.safetensors -r $url/x" \
    "info --save --online $url" "info --save-as a1111 $url" \
    "hash -c $url" "select $url --keep a -o out.safetensors --in-place"; do
    $SFT $words 2>&1 | grep -v "^try:"
    echo "  ${PIPESTATUS[0]}: $words"
done
ls
