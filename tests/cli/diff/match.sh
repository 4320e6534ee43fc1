$SFT rename every-dtype.safetensors --map tensor.17.f32=other -o b.safetensors
$SFT diff every-dtype.safetensors b.safetensors; echo $?
$SFT diff every-dtype.safetensors b.safetensors --match '*.i*'; echo $?
$SFT diff every-dtype.safetensors b.safetensors --match '*.i*' -v; echo $?
$SFT diff every-dtype.safetensors b.safetensors --match other --json | pyjson 'j["results"][0]["summary"]'
$SFT diff every-dtype.safetensors b.safetensors --match 'nosuch*'; echo $?
