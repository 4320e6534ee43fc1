mkdir -p t/.hidden t/sub/sub t/layer10 t/layer2 && touch t/notes.txt
for f in t/.hidden/x t/sub/y t/sub/sub/z t/layer10/m t/layer2/m t/model-10 t/model-9; do st $f.safetensors "$one" 8; done
$SFT info -r --jsonl t | python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["path"])'
