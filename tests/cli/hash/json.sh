echo hello >text
$SFT hash --json --algo sha256,content,autov1_civitai quantised.safetensors text nope
$SFT hash --jsonl --algo crc32 quantised.safetensors text
