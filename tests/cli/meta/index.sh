# An index has metadata of its own; --each-shard goes to the files.
i=sharded/model.safetensors.index.json
$SFT meta list $i; $SFT meta set $i note hello; head -5 $i; $SFT meta get $i note
$SFT meta set $i note hello; $SFT meta rm $i note; $SFT meta list $i --json | pyjson 'j["results"][0]["metadata"]'
$SFT meta set $i a b --dry-run; $SFT meta set $i a b -o other.json; $SFT meta list $i
$SFT meta set --each-shard $i origin here | sed -E 's/updated( in place)? \(.*;.*/updated by METHOD/'; $SFT meta list --each-shard $i
$SFT meta list sharded/model-00002-of-00003.safetensors; $SFT check sharded
$SFT meta set --each-shard $i a b -o out; echo $?
$SFT meta scrub $i; $SFT meta set $i path /home/me/x; $SFT meta scrub $i; $SFT meta list $i
ls -A sharded | grep sft-
true
# The folder is the model.
$SFT meta set sharded from folder; $SFT meta get sharded from; $SFT meta rm sharded from; $SFT meta scrub sharded; $SFT meta recover sharded
mkdir several; st several/a.safetensors "$one" 8; st several/b.safetensors "$one" 8
for c in "set several k v" "get several k" "rm several k" "scrub several sharded" "recover several"; do $SFT meta $c; echo $?; done
$SFT rename several --add-prefix x; echo $?; mkdir none; $SFT meta set none k v; echo $?
# One of its files refuses: it is named, and what is done stays done.
ln sharded/model-00002-of-00003.safetensors hard
$SFT meta set sharded half done --each-shard | cut -d " " -f 1-2; echo ${PIPESTATUS[0]}; rm hard
$SFT meta list sharded/model-00001-of-00003.safetensors | grep half; $SFT meta list sharded/model-00003-of-00003.safetensors | grep half
true
