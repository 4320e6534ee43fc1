# -o DIR/ names the result after the input; a file is a file.
foreign state_dict model.ckpt; foreign state_dict pytorch_model.bin; foreign gguf small.gguf; foreign state_dict other.bin
$SFT convert model.ckpt -o alone.safetensors
$SFT convert other.bin pytorch_model.bin small.gguf -o out/
ls out
mkdir one; $SFT convert model.ckpt -o one/
ls one
$SFT ls --tsv alone.safetensors | cut -f 2-4
$SFT convert model.ckpt pytorch_model.bin -o both/
echo $?
ls -d both 2>/dev/null
true
