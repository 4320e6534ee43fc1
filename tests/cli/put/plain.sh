st a.safetensors '{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"v":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"n":{"dtype":"F32","shape":[0],"data_offsets":[6,6]}}' 6
printf abcd | $SFT put a.safetensors w; echo $?
$SFT cat --as raw a.safetensors w; echo; $SFT cat a.safetensors v
printf abc | $SFT put a.safetensors w; echo $?
printf abcde | $SFT put a.safetensors w; echo $?
printf xyz >three; $SFT put a.safetensors w <three; echo $?
printf wxyz >four; $SFT put a.safetensors w <four; $SFT cat --as raw a.safetensors w; echo
printf x | $SFT put a.safetensors n; echo $?
printf '' | $SFT put a.safetensors n; echo $?
printf abcd | $SFT put a.safetensors nosuch; echo $?
printf abcd | $SFT put a.safetensors w -o b.safetensors; $SFT diff a.safetensors b.safetensors
printf abcd | $SFT put a.safetensors w --dry-run; $SFT cat --as raw a.safetensors w; echo
before=$(stat -c %i sharded/*00001* sharded/*00002*)
$SFT cat --as raw sharded model.norm.weight | tr '\200' '\100' | $SFT put sharded/model.safetensors.index.json model.norm.weight; echo $?
[ "$before" = "$(stat -c %i sharded/*00001* sharded/*00002*)" ] && echo untouched; $SFT check sharded
# A folder with one model is that model, here as everywhere; and as JSON.
$SFT cat --as raw sharded model.norm.weight | $SFT put sharded model.norm.weight --json
printf abcd | $SFT put a.safetensors w --jsonl; printf ab | $SFT put a.safetensors w --json; echo $?
printf abcd | $SFT put . w; echo $?
