# Models in other formats: a label, and lines of a list.
mkdir mixed; foreign state_dict mixed/plain.ckpt; foreign calls mixed/hook.pt; foreign gguf mixed/small.gguf
foreign npz mixed/arrays.npz; cp every-dtype.safetensors mixed/all.safetensors; printf text >mixed/text.pt
$SFT info mixed/small.gguf
$SFT info mixed/hook.pt
for n in 60 80 200; do COLUMNS=$n $SFT info -r mixed; done
$SFT info -f name mixed/plain.ckpt
