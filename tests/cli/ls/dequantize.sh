# Stored codes, and the values that they stand for.
$SFT ls --stats quantised.safetensors --dtype F8_E4M3,F32,I8 -n 4 2>&1
$SFT convert quantised.safetensors -o plain.safetensors --dequantize --dtype F32 >plain.txt 2>&1; echo $?
python3 - <<'P'
import json, struct
data = bytes(range(0, 240))
header = {"w": {"dtype": "F8_E4M3", "shape": [15, 16], "data_offsets": [0, 240]},
          "w_scale": {"dtype": "F32", "shape": [15], "data_offsets": [240, 300]}}
scales = struct.pack("<15f", *[2.0 ** -i for i in range(15)])
text = json.dumps(header).encode()
open("f8.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data + scales)
P
$SFT ls --stats f8.safetensors
$SFT ls --stats --dequantize f8.safetensors
$SFT convert f8.safetensors -o f32.safetensors --dequantize --dtype F32 >/dev/null
$SFT ls --stats --json f32.safetensors | pyjson 'j["results"][0]["stats"]' >a
$SFT ls --stats --json --dequantize f8.safetensors | pyjson 'j["results"][0]["stats"]' >b
cmp a b && echo the same
$SFT ls --dequantize f8.safetensors; echo $?
