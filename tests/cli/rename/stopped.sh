# With g each match may look at the rest of the name: that can be stopped.
python3 -c 'import json, struct, sys
head = json.dumps({"_" * 200000: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}).encode()
open("long.safetensors", "wb").write(struct.pack("<Q", len(head)) + head)'
cp long.safetensors keep
timeout -k 20 -s INT 1 $SFT rename long.safetensors --regex 's/(_|_.*[.]weight)/./g'; echo $?
cmp keep long.safetensors && ls -A | grep -c sft-; true
