$SFT merge sharded/model.safetensors.index.json -o one.safetensors; echo $?
$SFT merge sharded -o two.safetensors; cmp one.safetensors two.safetensors && echo same
$SFT diff sharded one.safetensors; echo $?
$SFT merge every-dtype.safetensors one.safetensors -o all.safetensors --dry-run; echo $?
st a.safetensors '{"__metadata__":{"k":"1","a":"x"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
st b.safetensors '{"__metadata__":{"k":"2","b":"y"},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT merge a.safetensors b.safetensors -o ab.safetensors; echo $?
$SFT info --json ab.safetensors | pyjson 'j["results"][0]["metadata"]'
$SFT merge a.safetensors a.safetensors -o aa.safetensors; echo $?; ls aa.safetensors 2>/dev/null
$SFT merge a.safetensors nosuch.safetensors -o x.safetensors; echo $?
mkdir empty; $SFT merge empty -o x.safetensors; echo $?
$SFT merge - -o x.safetensors; echo $?
# A shard that is not there is noticed by the names of the others, unless an index says what there is.
rm sharded/model.safetensors.index.json
$SFT merge sharded -o three.safetensors
rm sharded/model-00002-of-00003.safetensors
$SFT merge sharded every-dtype.safetensors -o four.safetensors; echo $?
$SFT merge a.safetensors -o - | wc -c; echo $?; $SFT merge a.safetensors -o /dev/null; echo $?
# Declarations of quantised layers, by which a layer is read: one for all.
st qa.safetensors '{"__metadata__":{"_quantization_metadata":"{\"layers\":{\"a\":{\"format\":\"mxfp8\"}}}"},"a.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
st qb.safetensors '{"__metadata__":{"_quantization_metadata":"{\"layers\":{\"b\":{\"format\":\"mxfp8\"}}}"},"b.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT merge qa.safetensors qb.safetensors -o qab.safetensors; echo $?; ls qab.safetensors 2>/dev/null
$SFT merge qa.safetensors a.safetensors -o qa2.safetensors; echo $?
