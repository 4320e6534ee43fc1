# Names from a file: lines or JSON; how many were renamed, and which.
m=every-dtype.safetensors; cp $m keep.safetensors
printf 'tensor.05.i8\ta b\r\n\ntensor.04.u8\ttensor.05.i8\n' >names.tsv
$SFT rename $m --map-file names.tsv --dry-run
$SFT rename $m --map-file names.tsv; $SFT ls --tsv $m | cut -f 2 | sort | head -2
echo ' {"a b":"tensor.05.i8","tensor.05.i8":"tensor.04.u8"}' | $SFT rename $m --map-file - --json | pyjson '[r["renamed"] for r in j["results"]]'
$SFT diff $m keep.safetensors; echo $?
$SFT rename $m --map-file names.tsv --map tensor.21.u64=u --regex 's/^tensor/t/' -o out.safetensors
$SFT rename $m --add-prefix x. -o none.safetensors --dry-run --json | pyjson '[len(r["renamed"]) for r in j["results"]]'
cp -r sharded two; printf 'model.norm.weight\tnorm' >norm.map; $SFT rename two/model.safetensors.index.json --map-file norm.map --json | pyjson '[(r["renamed"], r["changed"]) for r in j["results"]]'
echo "# refused"
$SFT rename $m --map-file names.tsv --map tensor.05.i8=c; echo $?
printf 'no tab\n' >bad; $SFT rename $m --map-file bad; echo $?
echo '{"a":null}' >bad; $SFT rename $m --map-file bad; echo $?
echo '{"a":' >bad; $SFT rename $m --map-file bad; echo $?
printf 'none\tx\n' >bad; $SFT rename $m --map-file bad; echo $?
$SFT rename $m --map-file /nowhere; echo $?
cmp $m keep.safetensors && echo as it was
# Marks of editors, and values that are no names.
printf '\xef\xbb\xbftensor.05.i8\tmarked\r\n' >bad; $SFT rename every-dtype.safetensors --map-file bad --dry-run
printf '\xef\xbb\xbf{"tensor.05.i8":"marked"}' >bad; $SFT rename every-dtype.safetensors --map-file bad --dry-run
printf '{"tensor.05.i8":5}' >bad; $SFT rename every-dtype.safetensors --map-file bad --dry-run; echo $?
printf '{"tensor.05.i8":{"a":"b"}}' >bad; $SFT rename every-dtype.safetensors --map-file bad --dry-run; echo $?
printf '\0\0{"tensor.05.i8":"x"}' >bad; $SFT rename every-dtype.safetensors --map-file bad --dry-run; echo $?
