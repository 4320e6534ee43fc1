$SFT ls --histogram --dtype bf16,i8,f6_e2m3 every-dtype.safetensors
python3 - <<'P'
import json, struct
data = struct.pack("<3d", 1e300, 1.0, 5e-324)
head = json.dumps({n: {"dtype": "F64", "shape": [1], "data_offsets": [8 * i, 8 * i + 8]} for i, n in enumerate(["large", "one", "small"])}).encode()
open("far.safetensors", "wb").write(struct.pack("<Q", len(head)) + head + data)
P
$SFT ls --histogram far.safetensors | sed 's/  */ /g' | cut -d ' ' -f 1-5
