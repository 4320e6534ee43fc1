m=every-dtype.safetensors
$SFT select $m --in-place --keep '*f4*' --dry-run; $SFT select $m --in-place --keep '*f4*'; $SFT ls --tsv $m | cut -f2-4
$SFT select $m --in-place -o x.safetensors --keep '*'; echo $?
# Of a model with an index: shards that lose tensors are written anew, or go.
cat >show.py <<'P'
import glob, json, os, re
index = json.load(open("sharded/model.safetensors.index.json"))
hidden = lambda text: re.sub(r"-[0-9a-f]{8}\.safe", "-XXXXXXXX.safe", text)
print(*sorted(hidden(os.path.basename(p)) for p in glob.glob("sharded/*")), index["metadata"], len(index["weight_map"]))
P
python3 - <<'P'
import json
path = "sharded/model.safetensors.index.json"
index = json.load(open(path))
index["metadata"].update(total_parameters=7, note="kept")
json.dump(index, open(path, "w"))
P
i=sharded/model.safetensors.index.json; cp -r sharded before; python3 show.py
$SFT select $i --in-place --drop 'nothing at all'; echo $?; python3 show.py
$SFT select sharded --in-place --drop '*layers.1.*'; echo $?
python3 show.py; $SFT check --level strict sharded; echo $?
$SFT select before -o sel --drop '*layers.1.*'; $SFT diff sel sharded; echo $?; python3 -c "
import json; print(json.load(open('sel/model.safetensors.index.json'))['metadata'])"
last=$($SFT ls --tsv before | tail -1 | cut -f1); one=$($SFT ls --tsv before/model-00001-of-*.safetensors | tail -n +2 | cut -f2 | sed 's/^/--drop /')
$SFT select before --in-place $one; ls before | sed -E 's/-[0-9a-f]{8}\.safe/-X.safe/'; $SFT check before; echo $?
