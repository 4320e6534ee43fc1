$SFT ls --sort=size --match=*.f4 every-dtype.safetensors -v | tail -n 1
$SFT ls -rv --match '*.f4' -- every-dtype.safetensors | tail -n 1
cp every-dtype.safetensors ./-odd.safetensors
$SFT ls --match '*.f4' -- -odd.safetensors | head -n 1
