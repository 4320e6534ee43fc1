# Every command does with a stack of 72 KiB, and its threads do not get theirs from that limit.
# A command that an emulator or a sanitizer runs needs more.
small=72
if [ "$(head -c 4 "$SFT")" != $'\177ELF' ] || grep -q __asan_init "$SFT"; then small=8192; fi
dataset kv kv
dataset batch batch
st big.safetensors '{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[1024,1024],"data_offsets":[0,4194304]}}' 4194304
st torn.safetensors '{"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}' 4
printf '{"b":[[[[[[[[[[' >bad.safetensors
run() {
    (ulimit -s $small; "$SFT" "$@" >out 2>err </dev/null)
    echo "$? $(echo "$*" | cut -c 1-70)"
}
I=sharded/model.safetensors.index.json
run --version
run hash --algo all big.safetensors
run hash --algo all --threads 4 -r --json .
run hash --cache cache -r .
$SFT hash -r . >sums 2>/dev/null
run hash -c sums
run info .
run info -r --verify --json .
run info -v lora/neon-city.safetensors
run info --threads 4 -r --tsv .
run info --export-preview . -r .
run ls --tree big.safetensors
run ls --json $I
run find neon -r .
run check --explain -r .
run check --json --level strict $I
run check --deep --json $I
run cat big.safetensors 'a[0:2,0:2]'
run cat --as json big.safetensors 'a[0,0:2]'
run dup --threads 4 -r .
run diff --json big.safetensors $I
run diff big.safetensors big.safetensors
run convert big.safetensors -o half.safetensors --dtype BF16
run convert big.safetensors -o small.safetensors --dtype F8_E4M3 --threads 4
run convert $I -o converted --dtype F64
run split big.safetensors -o split
run merge $I -o merged.safetensors
run select $I -o selected --drop '*0*'
run select $I --in-place --drop '*mlp*'
run meta list big.safetensors
run meta set big.safetensors k2 v2
run meta set --each-shard $I k2 v2
run meta scrub big.safetensors
run rename $I --add-prefix x.
run rename big.safetensors --map a=z
run rm-tensor half.safetensors a -o none.safetensors
run repair torn.safetensors -o repaired.safetensors
run repair $I -o repaired
run repair --clean .
run dataset info kv
run dataset ls --json kv
run dataset verify --deep kv
run dataset compact kv
run dataset compact --target 1GB batch
run dataset gc kv
run help hash
