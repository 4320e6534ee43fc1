m=every-dtype.safetensors
$SFT rm-tensor $m tensor.14.bf16 nosuch; echo $?
$SFT rm-tensor $m tensor.14.bf16 tensor.01.f4 --dry-run; $SFT rm-tensor $m tensor.14.bf16 tensor.01.f4 -o less.safetensors
$SFT diff $m less.safetensors; $SFT rm-tensor $m 'tensor.*'; echo $?
$SFT rm-tensor $m tensor.14.bf16 tensor.01.f4; cmp $m less.safetensors
# Of a model with an index: only the file that has it.
$SFT rm-tensor sharded model.norm.weight --json | sed -E 's/-[0-9a-f]{8}\./-X./g'; echo $?; $SFT check sharded && echo valid
$SFT rm-tensor sharded lm_head.weight -o new; ls new; $SFT check new && echo valid
st one.safetensors "$one" 8; $SFT rm-tensor one.safetensors a; echo $?; $SFT rm-tensor one.safetensors; echo $?
