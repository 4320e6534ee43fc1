# What is meant as a URL, and is a path that does not exist: the hint says how it is written.
for word in owner/name Qwen/Qwen3-0.6B hf:/owner/name hf:owner/name huggingface.co/owner/name \
    www.huggingface.co/owner/name hf.co/owner/name owner/name.safetensors ./owner/name /owner/name \
    owner/name/more name owner/ lora/name .owner/name owner/model.gguf; do
    $SFT info "$word"
done 2>&1
mkdir owner
$SFT ls owner/name 2>&1
st hf:name "$one" 8
$SFT ls hf:name
for words in "cat owner2/name a" "check owner2/name" "meta list owner2/name" "hash owner2/name" \
    "diff owner2/name hf:name" "select owner2/name --keep a -o x" "merge hf:name -o out2/x" \
    "rename owner2/name --add-prefix x." "meta set owner2/name a b"; do
    $SFT $words
done 2>&1
$SFT ls --json owner2/name 2>/dev/null | pyjson 'j["results"][0]["error"]["hint"]'
