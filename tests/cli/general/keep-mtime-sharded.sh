# --keep-mtime, and the index's metadata, through all commands that write a model of several files.
python3 - <<'P'
import json
path = "sharded/model.safetensors.index.json"
index = json.load(open(path))
index["metadata"] = {"note": "kept", "total_size": index["metadata"]["total_size"], "list": [1, {"a": "\u00e4"}]}
json.dump(index, open(path, "w"))
P
cd sharded; d=1; for f in *.safetensors *.json; do touch -d 2020-02-0$d $f; d=$((d + 1)); done; cd ..
show() {
    stat -c '%n %y' $1/* | cut -c1-60
    python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['metadata'])" $1/*.json
}
$SFT convert sharded -o half --dtype F16 --keep-mtime; show half
$SFT select sharded -o some --drop '*norm*' --keep-mtime; show some
$SFT split sharded -o cut --count 3 --keep-mtime; show cut
$SFT rename sharded/model.safetensors.index.json --add-prefix x. -o named --keep-mtime; show named
$SFT repair sharded -o fixed --keep-mtime; show fixed
$SFT merge sharded -o one.safetensors --keep-mtime; stat -c %y one.safetensors
touch -d 2021-01-01 one.safetensors; $SFT split one.safetensors -o two --count 2 --keep-mtime; show two
