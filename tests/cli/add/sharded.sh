# A model with an index gets more tensors where it is: the last shard, and those whose tensors are
# replaced, under fresh names.
cat >show.py <<'P'
import glob, json, os, re, sys
index = json.load(open("sharded/model.safetensors.index.json"))
hidden = lambda text: re.sub(r"-[0-9a-f]{8}\.safe", "-XXXXXXXX.safe", text)
print(*sorted(hidden(os.path.basename(p)) for p in glob.glob("sharded/*") + glob.glob("sharded/.*")))
print(index["metadata"], {k: hidden(v) for k, v in index["weight_map"].items() if k in sys.argv[1:]})
P
python3 - <<'P'
import struct
def npy(path, descr, shape, data):
    h = "{'descr': %s, 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    h += " " * (-(len(h) + 11) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h.encode() + data)
npy("f4.npy", "'<f4'", "(2, 3)", struct.pack("<6f", *range(6)))
npy("i8.npy", "'<i8'", "()", struct.pack("<q", -7))
P
touch -d 2020-02-02 sharded/*
cp -r sharded before
first=$($SFT ls --tsv before | sed -n 2p | cut -f2)
i=sharded/model.safetensors.index.json
$SFT add $i new=f4.npy --dry-run; echo $?
$SFT add $i new=f4.npy --keep-mtime; echo $?
python3 show.py new
stat -c %Y sharded/*-*[0-9a-f].safetensors $i | sort | uniq -c
$SFT check --level strict sharded; $SFT diff before sharded; echo $?
$SFT add sharded new=i8.npy; echo $?
$SFT add sharded --replace "$first=i8.npy" new=i8.npy; echo $?
python3 show.py new "$first"
$SFT diff before sharded | sed 's/max.*//'; $SFT cat sharded new
# Another index of the folder names the old shards: they stay.
cp $i sharded/other.safetensors.index.json
$SFT add $i more=i8.npy; python3 show.py more
$SFT check sharded/*.index.json; echo $?
# Nothing is left when it fails.
ls sharded >names
$SFT add $i 'bad=nosuch.npy'; echo $?; ls sharded | cmp - names
