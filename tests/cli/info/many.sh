# Many models, several threads: in order, each once.
mkdir m
for i in {1..300}; do st m/m$i.safetensors '{"__metadata__":{"modelspec.title":"title '$i'"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}' 8; done
$SFT info -f name m | cmp - <(for i in {1..300}; do printf 'm/m%d.safetensors\ttitle %d\n' $i $i; done) && echo same
$SFT info --jsonl m/* | wc -l
$SFT info m | tail -n 1
