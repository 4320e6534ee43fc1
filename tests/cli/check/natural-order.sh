mkdir d && for i in 10 9 1; do st d/m$i.safetensors '[]'; done
$SFT check d | cut -d: -f1
