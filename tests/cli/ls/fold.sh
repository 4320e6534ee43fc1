$SFT ls --fold sharded
# Layers are folded while they are alike: another shape or dtype, a gap or one more tensor ends it.
layer() { printf '"l.%s.w":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]},' $1 $2 $3 $at $((at + $4)); at=$((at + $4)); }
at=0
st f.safetensors "{$({
    layer 0 U8 1 1; at=1; layer 1 U8 1 1; at=2; layer 2 U8 2 2; at=4; layer 3 I8 2 2; at=6; layer 5 I8 2 2; at=8
    layer 6 I8 2 2; at=10; layer 7 I8 2 2; at=12; layer 7.x U8 1 1; at=13; layer 08 U8 1 1; at=14; layer x U8 1 1
} | sed 's/,$//')}" 15
$SFT ls --fold f.safetensors
# Experts within layers.
python3 - <<'P'
import json, struct
header, at = {}, 0
for layer in range(3):
    for expert in range(8):
        for name in ("up", "down"):
            header["m.layers.%d.experts.%d.%s" % (layer, expert, name)] = {
                "dtype": "U8", "shape": [2], "data_offsets": [at, at + 2]}
            at += 2
    header["m.layers.%d.norm" % layer] = {"dtype": "U8", "shape": [1], "data_offsets": [at, at + 1]}
    at += 1
text = json.dumps(header).encode()
open("moe.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(at))
P
$SFT ls --fold moe.safetensors
$SFT ls --fold --depth 3 moe.safetensors
$SFT ls --fold --md moe.safetensors
