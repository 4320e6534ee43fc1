# Of a model with an index: shards with tensors that are cast are written anew, under fresh names.
hide() { sed -E 's/-[0-9a-f]{8}\.safe/-XXXXXXXX.safe/g'; }
i=sharded/model.safetensors.index.json
python3 - <<'P'
import json
path = "sharded/model.safetensors.index.json"
index = json.load(open(path))
index["metadata"].update(total_parameters=7, note="kept")
json.dump(index, open(path, "w"))
P
$SFT convert sharded -o wanted --dtype F32
cp -r sharded before
$SFT convert $i --in-place --dtype F32 --match '*norm*' --dry-run; echo $?
diff -r before sharded && echo same
$SFT convert sharded --in-place --dtype F32 --match 'model.norm*'; echo $?
ls sharded | hide
$SFT convert $i --in-place --dtype F32 --json | hide; echo $?
$SFT convert $i --in-place --dtype F32; echo $?
ls sharded | hide
$SFT check --level strict sharded && echo valid
$SFT diff wanted sharded; echo $?
pyjson 'j["metadata"]' <$i
# An index beside it still names the old ones, so they stay.
cp before/model.safetensors.index.json before/other.safetensors.index.json
$SFT convert before/model.safetensors.index.json --in-place --dtype F16 --match 'model.norm*'
ls before | hide
# The second shard has a value that has no place: nothing has changed.
mkdir bad
python3 - <<'P'
import json, struct
for n, name, value in ((1, "a", 5.0), (2, "b", 300.0)):
    head = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    with open("bad/model-0000%d-of-00002.safetensors" % n, "wb") as f:
        f.write(struct.pack("<Q", len(head)) + head + struct.pack("<f", value))
json.dump({"metadata": {"total_size": 8}, "weight_map": {c: "model-0000%d-of-00002.safetensors" % n
          for n, c in ((1, "a"), (2, "b"))}}, open("bad/model.safetensors.index.json", "w"))
P
cp -r bad want
$SFT convert bad --in-place --dtype I8 --match '*'; echo $?
diff -r want bad && echo same
# Not both, whatever the model.
for m in every-dtype.safetensors wanted; do
    $SFT convert $m -o both --in-place --dtype F32; echo $?; $SFT select $m -o both --in-place --keep '*'; echo $?
done; ls -d both 2>/dev/null
true
