# A path that is not UTF-8.
name=$'caf\xe9 %.safetensors'
st "$name" "$one" 8
$SFT info --json "$name" | pyjson '[j["results"][0][k] for k in ("path", "path_bytes")]'
$SFT check --json "$name" | pyjson '[j["results"][0][k] for k in ("path", "path_bytes")]'
$SFT cat --as json "$name" a | pyjson '[j["results"][0][k] for k in ("path", "path_bytes", "values")]'
$SFT info "$name" | head -n 1
