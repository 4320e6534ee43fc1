# Standard input that is a file is known to its end.
$SFT info --json - <quantised.safetensors | pyjson 'j["results"][0]["complete"], j["results"][0]["path"]'
