# A file that a model names and that is missing: check finds it, the others cannot read the model,
# as one in safetensors that lacks a shard.
mkdir st
st st/model-00001-of-00002.safetensors "$one" 8
cat >st/model.safetensors.index.json <<'J'
{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}
J
foreign folder hub; rm hub/*-00002-*
foreign onnx model.onnx; rm weights.bin
for f in st hub hub/pytorch_model.bin.index.json model.onnx; do
    for command in ls info check "hash --algo content" "convert -o out"; do
        $SFT $command $f >stdout 2>&1
        echo "$f: $command: $?"
    done
    $SFT diff $f $f >stdout 2>&1
    echo "$f: diff: $?"
done
cat stdout
ls out 2>/dev/null
true
