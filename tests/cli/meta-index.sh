# An index has metadata of its own; --each-shard goes to the files.
i=sharded/model.safetensors.index.json
$SFT meta list $i; $SFT meta set $i note hello; head -5 $i; $SFT meta get $i note
$SFT meta set $i note hello; $SFT meta rm $i note; $SFT meta list $i --json | pyjson 'j["results"][0]["metadata"]'
$SFT meta set $i a b --dry-run; $SFT meta set $i a b -o other.json; $SFT meta list $i
$SFT meta set --each-shard $i origin here | sed 's/ by .*;.*/ by X/'; $SFT meta list --each-shard $i
$SFT meta list sharded/model-00002-of-00003.safetensors; $SFT check sharded
$SFT meta set --each-shard $i a b -o out; echo $?
$SFT meta scrub $i; $SFT meta set $i path /home/me/x; $SFT meta scrub $i; $SFT meta list $i
ls -A sharded | grep sft-
true
