# Of a model with an index only the files with other names are written anew, under fresh names.
i=sharded/model.safetensors.index.json
fresh() { sed 's/-[0-9a-f]\{8\}\./-HEX./'; }
$SFT ls --tsv $i | cut -f 2 | sed 's/^model\.norm/final.norm/' | sort >want
$SFT rename $i --map model.norm.weight=final.norm.weight --dry-run
$SFT rename $i --map model.norm.weight=final.norm.weight; ls sharded | fresh
$SFT check sharded; $SFT ls --tsv $i | cut -f 2 | sort | cmp - want && echo as wanted
$SFT rename $i --regex 's/^/x./' -o out; ls out | fresh; $SFT check out; $SFT ls --tsv out | sed -n 2p | cut -f 2
$SFT rename $i --regex 's/^/y./' -o out; echo $?
cp $i sharded/other.safetensors.index.json
$SFT rename $i --map final.norm.weight=model.norm.weight; ls sharded | fresh; $SFT check sharded/*.index.json
$SFT rename $i --regex 's/nosuch/x/'
ls -A sharded | grep sft-
true
