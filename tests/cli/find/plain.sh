# By hash, by word, by fact.
hash=$($SFT info -f hashes.recorded lora | tr ' |' '\n\n' | grep -E '^[0-9a-f]{64}$' | head -n 1)
$SFT find ${hash:0:10} -r . | sed s/$hash/HASH/
$SFT find ${hash:0:7} -r .; echo $?
$SFT find deadbeef00 -r .; echo $?
$SFT find NEON -r .
$SFT find 'street level' lora quantised.safetensors
$SFT find -l neon -r .
$SFT find -0 neon -r . | tr '\0' '\n'
$SFT find --where architecture=sdxl -r .
$SFT find --where architecture=sdxl nosuch -r .; echo $?
$SFT find -l --where bytes\>50000 -r .
$SFT find --jsonl neoncty -r .
$SFT find --json --where rank=4 -r .
$SFT find neon; echo $?
$SFT find '' lora; echo $?
$SFT find neon nosuch.safetensors lora; echo $?
