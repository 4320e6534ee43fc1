# -f picks facts for every format.
f=lora/neon-city.safetensors
$SFT info -f name,architecture,rank,trigger_words $f
$SFT info -f prompt $f
$SFT info -f name,rank $f quantised.safetensors
$SFT info --tsv -f path,tags,training.epoch,metadata.ss_seed $f quantised.safetensors
$SFT info --jsonl -f name,rank,prompt,civitai.version_id $f
$SFT info --json -f name $f
$SFT info -f merge quantised.safetensors
echo "none: $?"
$SFT info -f merge,kind quantised.safetensors
echo "some: $?"
$SFT info -f nmae $f
echo $?
$SFT info -f name,,rank $f
echo $?
