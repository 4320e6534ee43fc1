# What edits refuses another format, and names the command that converts it.
foreign state_dict model.ckpt; cp model.ckpt before
try() { "$@"; echo $?; }
try $SFT meta set model.ckpt a b
try $SFT meta ls model.ckpt
try $SFT rename model.ckpt a=b
try $SFT rm-tensor model.ckpt encoder.bias
try $SFT repair model.ckpt -o x.safetensors
try $SFT convert model.ckpt --in-place
cmp model.ckpt before && ls x.safetensors 2>/dev/null
true
