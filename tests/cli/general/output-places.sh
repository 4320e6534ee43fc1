# -o: a failure names what it is about; a folder in the tree that -r reads is not read itself.
st a.safetensors "$one" 8
st b.safetensors "$one" 8
mkdir out out/b.safetensors
mkfifo out/a.safetensors pipe
ln -s nowhere dangling
$SFT meta set a.safetensors -o out/ k v
$SFT meta set a.safetensors b.safetensors -o out/ k v
$SFT meta set a.safetensors -o none/a.safetensors k v
$SFT rename a.safetensors -o out/a.safetensors --add-prefix x.
head -c 8 /dev/zero | $SFT put a.safetensors -o out/a.safetensors a
$SFT meta set a.safetensors b.safetensors -o dangling/ k v
$SFT meta set a.safetensors b.safetensors -o pipe/ k v
ls -d *
mkdir -p tree/sub tree/new
cp a.safetensors tree
cp b.safetensors tree/sub
cp a.safetensors tree/new/old.safetensors
for i in 1 2; do $SFT select --copy --force -r tree -o tree/sub/../new/; done
(cd tree/new && $SFT select --copy --force -r .. -o .)
$SFT select --copy --force -r tree/new -o tree/new --json | pyjson 'len(j["results"])'
find tree -type f | sort
