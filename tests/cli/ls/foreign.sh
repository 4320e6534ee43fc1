# A folder with nothing but models in other formats.
mkdir only; foreign state_dict only/a.ckpt; foreign gguf only/b.gguf
$SFT ls only
$SFT ls --tsv only/a.ckpt
