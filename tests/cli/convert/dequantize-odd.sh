# Scaled tensors whose values more than one scale decides, and shapes that wrap.
odd() {
    python3 - "$@" <<'P'
import json, struct, sys
sizes, head, at = {"F8_E4M3": 1, "I8": 1, "U8": 1, "F32": 4}, {}, 0
for word in sys.argv[1:]:
    name, dtype, *shape = word.split(",")
    size = sizes[dtype]
    for n in shape: size *= int(n)
    head[name] = {"dtype": dtype, "shape": [int(n) for n in shape], "data_offsets": [at, at + size]}
    at += size
text = json.dumps(head).encode()
open("odd.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(at))
P
    rm -f out.safetensors; $SFT convert --dequantize odd.safetensors -o out.safetensors; echo $?
    $SFT ls --stats --dequantize odd.safetensors >/dev/null 2>&1; echo $?
}
odd l.weight,F8_E4M3,4,8 l.weight_scale,F32 l.weight_scale_inv,F32,1,1
odd l.weight,F8_E4M3,4,8 l.weight_scale,F32,4 l.scale_weight,F32
odd l.weight,F8_E4M3,4,8 l.weight_scale,F32,4 l.weight_scale_2,F32
odd l.weight,F8_E4M3,4,8 l.weight_scale,F32,4 l.weight_global_scale,F32
odd l.weight,I8,4,8 l.weight_scale,F32,4 l.weight_zero_point,I8,4
odd l.weight,I8,4,8 l.weight_scale,F32,4 l.biases,F32,4
odd l.weight,F8_E4M3,4,8 l.weight_scale,F32,4 l.input_scale,F32
odd e.w_blocks,U8,0,2,1152921504606846976,16 e.w_scales,U8,0,2,1152921504606846976
