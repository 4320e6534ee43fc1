# By digests that nobody recorded: computed, or remembered.
hex=$($SFT hash quantised.safetensors | head -c 16)
$SFT find $hex -r .; echo $?
$SFT find --compute $hex -r .; echo $?
$SFT find --compute --cache cache ${hex^^} --jsonl -r . | sed s/$hex[0-9a-f]*/HEX/g
$SFT find --cache cache --jsonl $hex -r . | sed s/$hex[0-9a-f]*/HEX/g
# What is recorded is enough: nothing else is hashed.
recorded=$($SFT hash --algo autov3 lora/neon-city.safetensors | head -c 12)
$SFT find --compute --cache other $recorded --jsonl lora
[ -e other ] || echo 'nothing was hashed'
# Every algorithm, of files, shards and sets.
for algo in autov1 autov2 autov3 sshs_model crc32 crc32_civitai blake3 content; do
    x=$($SFT hash --algo $algo quantised.safetensors | head -c 12)
    $SFT find --compute -l ${x%% *} -r . | grep -c quantised
done
x=$($SFT hash sharded/model-00002-of-00003.safetensors | head -c 20)
$SFT find --compute --jsonl $x -r . | pyjson '[j["path"], j["matches"][0]["algo"], j["matches"][0]["source"]]'
x=$($SFT hash --algo content sharded/model.safetensors.index.json | head -c 20)
$SFT find --compute --cache cache -l $x -r .
$SFT find --cache cache --jsonl $x -r . | pyjson '[m["source"] for m in j["matches"]]'
mkdir s && cp sharded/model-0000* s && $SFT find --compute --jsonl $x s | pyjson '[j["path"], j["matches"][0]["source"]]'
# Nobody has it; too long; only what fits is hashed.
$SFT find --compute 0123456789abcdef -r .; echo $?
$SFT find --compute "${x}0000000000000000000000000000000000000000000000000000000000" -r .; echo $?
$SFT find --compute --cache third --where architecture=sdxl 0123456789abcdef -r .; echo $?
grep -c sha256 third
# A file that is changed is no longer remembered as it was.
touch quantised.safetensors; $SFT find --cache cache $hex -r .; echo $?
