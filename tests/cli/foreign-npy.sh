printf "\\223NUMPY\\001\\000\\166\\000{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
