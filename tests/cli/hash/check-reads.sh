# What verifies reads the bytes: a cache that lies is not asked, nor does --keep-mtime hide a change.
cp quantised.safetensors m.safetensors
$SFT hash --cache cache m.safetensors >sums
$SFT hash --cache cache -c sums
sed -i 's/"sha256":"[0-9a-f]*"/"sha256":"'"$(printf '0%.0s' {1..64})"'"/' cache
$SFT hash --cache cache m.safetensors | cut -c 1-16
$SFT hash --cache cache -c sums
rm cache
$SFT hash --cache cache m.safetensors | cmp - sums && echo same
sleep 0.05
$SFT meta set --keep-mtime m.safetensors modelspec.title x >/dev/null
$SFT hash --cache cache m.safetensors | cmp -s - sums || echo differs
printf '\1' | dd of=m.safetensors bs=1 seek=$(($(stat -c %s m.safetensors) - 1)) conv=notrunc status=none
touch -d @1000000000 m.safetensors
$SFT hash --cache cache m.safetensors >sums
sleep 0.05
printf '\2' | dd of=m.safetensors bs=1 seek=$(($(stat -c %s m.safetensors) - 1)) conv=notrunc status=none
touch -d @1000000000 m.safetensors
$SFT hash --cache cache m.safetensors | cmp -s - sums || echo differs
$SFT hash --cache cache -c sums
