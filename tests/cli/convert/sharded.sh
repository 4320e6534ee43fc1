# A folder for a model in several files; one file if OUT says so.
$SFT convert sharded -o halves --dtype F16
echo $?
ls halves
$SFT check halves && echo valid
$SFT ls --tsv halves | cut -f 1-3
python3 -c 'import json; print(json.load(open("halves/model.safetensors.index.json"))["metadata"])'
$SFT convert sharded/model.safetensors.index.json -o whole.safetensors --dtype F16
$SFT hash --algo content halves whole.safetensors | cut -c 1-64 | sort -u | wc -l
$SFT convert sharded -o halves --dtype F16
echo $?
$SFT convert sharded -o other --dtype F16 --dry-run
ls -d other 2>/dev/null
true
