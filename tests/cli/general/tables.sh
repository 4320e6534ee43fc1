# Tables of tabs: find, dup and dataset ls; --csv-safe belongs to them.
cp every-dtype.safetensors copy.safetensors
$SFT find --tsv dtype . ; echo $?
$SFT find --tsv --where kind=adapter -r . | cut -f 1,2; echo ${PIPESTATUS[0]}
$SFT find --tsv nothing-like-it .; echo $?
$SFT dup --tsv .; echo $?
mkdir alone; mv copy.safetensors alone; $SFT dup --tsv alone; echo $?
mv alone/copy.safetensors '=cmd.safetensors'; $SFT dup --tsv --csv-safe '=cmd.safetensors' every-dtype.safetensors
$SFT dup --csv-safe .; echo $?
dataset kv kv; dataset batch batch
$SFT dataset ls --tsv kv batch
$SFT dataset ls --tsv --match 'none' kv; echo $?
$SFT dataset ls kv | cut -c 1-60
$SFT dataset info --tsv kv; echo $?
