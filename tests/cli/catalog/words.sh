# A card has the words that somebody declared; those found in captions only if there are no others.
mkdir m; cp lora/neon-city.safetensors m/captions.safetensors
$SFT meta rm m/captions.safetensors modelspec.trigger_phrase >log 2>&1
$SFT meta set m/captions.safetensors ss_tag_frequency '{"10_set":{"rain":40,"street":40,"night":11}}' >log 2>&1
cp m/captions.safetensors m/declared.safetensors
printf '{"activation text":"wet light"}' >m/declared.json
catalog m -o c.html
page c.html '"\n".join(map(str, zip(rows["file"], rows["words"], rows["word_count"])))'
page c.html '[[word["text"] for word in one["trigger_words"]] for one in more]'
