cat quantised.safetensors | $SFT ls - | head -n 3
cat quantised.safetensors | $SFT ls --json - | pyjson 'j["results"][0]["complete"]'
