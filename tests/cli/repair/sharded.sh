# Repairs each file of a model, and the index: the right shard of every tensor, the right total.
python3 - <<'P'
import json
path = "sharded/model.safetensors.index.json"
index = json.load(open(path))
names = sorted(index["weight_map"])
index["metadata"].update(total_size=5, note="kept")
index["weight_map"][names[2]] = "model-00003-of-00003.safetensors"
del index["weight_map"][names[1]]
json.dump(index, open(path, "w"), indent=2)
P
i=sharded/model.safetensors.index.json
for f in sharded/model-00001-of-*.safetensors; do printf xyz >>$f; done
$SFT check sharded >/dev/null; echo $?
$SFT repair $i; echo $?
$SFT repair $i --in-place; echo $?
$SFT repair $i -o fixed --dry-run; ls fixed 2>/dev/null
$SFT repair $i -o fixed; echo $?
ls -A fixed; $SFT check --level strict fixed; echo $?
python3 -c "
import json; print(json.load(open('fixed/model.safetensors.index.json'))['metadata'])"
$SFT repair fixed -o again; echo $?; $SFT diff fixed again; echo $?
$SFT repair $i -o fixed; echo $?
# Shards without an index get one.
mkdir bare; cp fixed/*-of-*.safetensors bare; $SFT repair bare -o whole; echo $?
ls -A whole; $SFT diff fixed whole; echo $?
# What cannot be repaired: nothing is written.
rm bare/model-00002-of-*.safetensors; $SFT repair bare -o none; echo $?
cp every-dtype.safetensors bare; $SFT repair bare -o none; echo $?
mkdir empty; $SFT repair empty -o none; echo $?
rm fixed/model-00002-of-*.safetensors; $SFT repair fixed -o none; echo $?
cp again/*.safetensors fixed; cut_to fixed/model-00002-of-00003.safetensors 200; $SFT repair fixed -o none; echo $?
cp again/model-00001-of-00003.safetensors fixed/model-00002-of-00003.safetensors; $SFT repair fixed -o none; echo $?
echo '{"weight_map":' >again/model.safetensors.index.json; $SFT repair again -o none; echo $?
ls -d none 2>/dev/null
# One file, in its place.
printf abc >>every-dtype.safetensors; $SFT repair every-dtype.safetensors --in-place; echo $?
$SFT check --level strict every-dtype.safetensors; $SFT repair every-dtype.safetensors --in-place; echo $?
