# -f reaches every leaf: items by index or all of them, members of facts, several lists on the way.
f=lora/neon-city.safetensors
$SFT info --tsv -f adapter.rank.max,training.datasets.0.folder,training.datasets.folder $f
$SFT info -f model.name.source,name.trust,model.name.others.value $f
$SFT info -f trigger_words.text,trigger_words.1.words.1,trigger_words.others.value $f
$SFT info -f hashes.recorded.algo,file.dtypes.F16.bytes,training.buckets.1.count $f
$SFT info -f training.datasets.9.folder $f
echo "beyond the last: $?"
$SFT info --jsonl -f training.datasets.1.folder,model.name.source,trigger_words.0.text $f
$SFT info -r -f path --where adapter.rank.max=4 .
for name in rank.max adapter.rnak adapter.rank.mxa name.sorce media_type model. training.datasets.x prompts.x; do
    $SFT info -f $name $f
done
