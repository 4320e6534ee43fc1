# Counts of parameters are rounded, not cut; a backslash that escapes a bracket can be pasted from
# info -v; the label of one shard says that it is one.
sized() {
    printf '{"model.embed_tokens.weight":{"dtype":"U8","shape":[%d],"data_offsets":[3,%d]},' $1 $(($1 + 3))
    for i in 0 1 2; do
        set -- $1 self_attn.q_proj self_attn.k_proj mlp.gate_proj
        shift $((i + 1))
        printf '"model.layers.0.%s.weight":{"dtype":"U8","shape":[1,1],"data_offsets":[%d,%d]}' $1 $i $((i + 1))
        [ $i -lt 2 ] && printf ,
        set -- $count
    done
    printf }
}
for count in 1250000 99970000 133750000 971767808 999499000 999500000 133837500000; do
    st m "$(sized $count)"
    cat m | $SFT info - | grep parameters
done
mkdir s
trained='"ss_training_comment":"trigger word is abc \\(def\\)"'
tensors='"lora_unet_x.lora_down.weight":{"dtype":"U8","shape":[1,1],"data_offsets":[0,1]},"lora_unet_x.lora_up.weight":{"dtype":"U8","shape":[1,1],"data_offsets":[1,2]}'
st s/l.safetensors "{\"__metadata__\":{$trained},$tensors}" 2
$SFT info -v s/l.safetensors | grep -E '^  (a1111|comfy|  comment)'
st s/m-00002-of-00003.safetensors "$one" 8
$SFT info s/m-00002-of-00003.safetensors
st s/n-00002-of-00003.safetensors "{$tensors}" 2
$SFT info s/n-00002-of-00003.safetensors
