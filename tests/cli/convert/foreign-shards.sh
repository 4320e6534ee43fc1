# Shards stay shards; one file if OUT says so.
foreign folder hub
$SFT convert hub -o out
ls out
$SFT check out && echo valid
$SFT convert hub/pytorch_model.bin.index.json -o whole.safetensors
$SFT hash --algo content hub out whole.safetensors | cut -c 1-64 | sort -u | wc -l
$SFT convert hub -o other --dry-run
ls -d other 2>/dev/null
$SFT convert hub --list
$SFT info hub
rm hub/*-00002-*
$SFT convert hub -o broken
echo $?
ls -d broken 2>/dev/null
true
