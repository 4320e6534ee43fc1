# A folder with nothing but models in other formats.
mkdir only; foreign state_dict only/plain.ckpt; foreign gguf only/small.gguf
$SFT ls only
$SFT ls --tsv only/plain.ckpt
