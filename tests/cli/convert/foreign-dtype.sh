# Blocks are computed to the dtype that is asked for; other tensors are cast.
foreign gguf small.gguf; foreign state_dict model.pt
for d in F16 BF16 F32; do
    $SFT convert small.gguf -o $d.safetensors --dtype $d
    $SFT ls --tsv $d.safetensors | cut -f 2,3
done
$SFT convert small.gguf -o plain.safetensors
$SFT ls --tsv plain.safetensors | cut -f 2,3
$SFT cat plain.safetensors blk.0.attn_q.weight'[0,:4]'
$SFT convert model.pt -o half.safetensors --dtype F16 --match '*.weight'
$SFT ls --tsv half.safetensors | cut -f 2,3
$SFT meta list plain.safetensors
