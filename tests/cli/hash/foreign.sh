# The content is what it was; other digests are of the file.
for k in state_dict gguf msgpack; do
    foreign $k $k
    $SFT convert $k -o $k.safetensors >/dev/null
    $SFT hash --algo content $k $k.safetensors | cut -c 1-64 | sort -u | wc -l
done
$SFT hash state_dict | cut -c 1-64 >a; sha256sum state_dict | cut -c 1-64 | diff - a && echo sha256
