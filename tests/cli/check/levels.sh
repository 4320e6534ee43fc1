st f.safetensors ' {"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1}}' 1
for level in compat default strict; do $SFT check --level $level f.safetensors; echo $level $?; done
