# Models in other formats: a label, and lines of a list.
mkdir mixed; foreign state_dict mixed/a.ckpt; foreign calls mixed/b.pt; foreign gguf mixed/c.gguf
foreign npz mixed/d.npz; cp every-dtype.safetensors mixed/e.safetensors; printf text >mixed/f.pt
$SFT info mixed/c.gguf
$SFT info mixed/b.pt
for n in 60 80 200; do COLUMNS=$n $SFT info -r mixed; done
$SFT info -f title mixed/a.ckpt
