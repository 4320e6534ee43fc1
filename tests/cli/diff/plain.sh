# Silent and 0 when nothing differs, whatever the files; a line for each thing that does.
m=every-dtype.safetensors
$SFT diff $m $m; echo $?
$SFT merge sharded -o whole.safetensors && $SFT diff whole.safetensors sharded; echo $?
st a.safetensors '{"__metadata__":{"k":"1","gone":"x"},"old":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"F32","shape":[2],"data_offsets":[2,10]},"s":{"dtype":"I8","shape":[2],"data_offsets":[10,12]}}' 12
st b.safetensors '{"__metadata__":{"k":"2","come":"y"},"new\u001b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"w":{"dtype":"F16","shape":[2],"data_offsets":[2,6]},"s":{"dtype":"I8","shape":[1,2],"data_offsets":[6,8]}}' 8
$SFT diff a.safetensors b.safetensors; echo $?
$SFT diff --no-metadata --header a.safetensors b.safetensors; echo $?
