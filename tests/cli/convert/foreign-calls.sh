# What a pickle loader would have called is named, and not called.
foreign calls hook.ckpt
$SFT convert hook.ckpt -o hook.safetensors
$SFT info hook.ckpt
$SFT check hook.ckpt
ls called 2>/dev/null
$SFT convert hook.ckpt -o other.safetensors --json --dry-run | pyjson 'j["results"][0]["import"]["globals"]'
ls other.safetensors 2>/dev/null
true
