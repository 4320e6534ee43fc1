# Values over 4096 bytes are cut, pictures always.
long=$(printf 'x%.0s' {1..5000})
st f.safetensors '{"__metadata__":{"long":"'$long'","modelspec.thumbnail":"data:image/png;base64,AAAA","note":"n"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
for o in "" --full; do
    $SFT info --json $o f.safetensors | pyjson '{k: len(v) for k, v in j["results"][0]["metadata"].items()}, j["results"][0]["metadata_cut"]'
done
