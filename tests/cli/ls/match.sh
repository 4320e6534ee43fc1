$SFT ls --match '*.f8_*' every-dtype.safetensors --tsv | cut -f 2
$SFT ls --match 'tensor.0[!0-7].*' every-dtype.safetensors --tsv | cut -f 2
$SFT ls --match 'tensor.2?.*' every-dtype.safetensors --json | pyjson '[t["name"] for t in j["results"][0]["tensors"]]'
