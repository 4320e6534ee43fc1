# The same answer whatever order the folder has its entries in.
mkdir a b
for i in 10 9 1 100 2; do st a/m$i.safetensors "$one" 8; done
for i in 2 1 100 9 10; do st b/m$i.safetensors "$one" 8; done
(cd a && $SFT info .) >A
(cd b && $SFT info .) >B
cmp A B && grep -o '^  m[^ ]*' A
