# The longest exact name wins before [ begins a slice.
st f.safetensors '{"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},"a[0]":{"dtype":"I8","shape":[3],"data_offsets":[4,7]},"[":{"dtype":"U8","shape":[1],"data_offsets":[7,8]},"":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}}' 10
for t in a 'a[0]' 'a[1]' 'a[0][1:]' '[' '[[0]' '[1]' ''; do echo "<$t>"; $SFT cat f.safetensors "$t"; done
