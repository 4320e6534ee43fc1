# Names with characters to be escaped, there and back.
mkdir odd
for name in 'a b' '(x) = 00' $'new\nline' 'back\slash' $'esc\e[31m' $'bad\xff' $'dir\u202e'; do
    st "odd/$name.safetensors" "$one" 8
done
$SFT hash odd | tee sums
$SFT hash --algo crc32,autov2 odd | tee -a sums
$SFT hash -c sums
