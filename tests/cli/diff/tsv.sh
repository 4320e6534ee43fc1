# --tsv: a row for each tensor and metadata key that differs, with as many cells as the header.
st a.safetensors '{"__metadata__":{"k":"1","only":"a"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"gone":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"shape":{"dtype":"F16","shape":[2],"data_offsets":[12,16]}}' 16
st b.safetensors '{"__metadata__":{"k":"2"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"=new":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"shape":{"dtype":"F16","shape":[1,2],"data_offsets":[12,16]}}' 0
{ printf '\0\0\0\0\0\0\200?'; head -c 8 /dev/zero; } >>b.safetensors
$SFT diff --tsv a.safetensors b.safetensors; echo $?
$SFT diff --tsv --csv-safe a.safetensors b.safetensors | cut -f3 | grep new
$SFT diff --tsv a.safetensors b.safetensors | awk -F'\t' '{ print NF }' | sort | uniq -c | tr -s ' '
$SFT diff --tsv a.safetensors a.safetensors; echo $?
$SFT diff --tsv --json a.safetensors a.safetensors >one; $SFT diff --json a.safetensors a.safetensors | cmp - one; echo $?
