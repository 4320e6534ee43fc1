# Lines to be pasted, with other fields, of many models, in every format.
$SFT info -f a1111 lora/neon-city.safetensors
$SFT info -f comfy lora/neon-city.safetensors
$SFT info -r -f a1111,comfy,rank .
$SFT info --tsv -f path,a1111,bytes lora
$SFT info --json -f a1111,name.trust lora
$SFT info --jsonl -f prompts quantised.safetensors
$SFT info -f a1111,comfy quantised.safetensors; echo "none: $?"
# Names that would end the tag have no line; words that would open another are left out.
emb='{"emb_params":{"dtype":"F32","shape":[2,768],"data_offsets":[0,6144]}}'
for name in easy 'easy negative' $'a\u202eb'; do
    st "$name.safetensors" "$emb" 6144
    $SFT info -f a1111,comfy "./$name.safetensors"
done
cp lora/neon-city.safetensors n.safetensors
words() { echo '{"activation text":"'"$1"'","preferred weight":0.55}' >n.json; $SFT info -f a1111 n.safetensors; }
words 'night (city), <lora:other:1> rain'
words 'a\u001b[31m\u202eb\nc\td'
words '<lora:other'
words "$(printf 'x%.0s' {1..65536})" | cut -c 1-80
