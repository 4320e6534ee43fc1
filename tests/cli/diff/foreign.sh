# Nothing differs after a conversion.
for k in state_dict training gguf msgpack; do
    foreign $k $k
    $SFT convert $k -o $k.safetensors >/dev/null
    $SFT diff $k $k.safetensors && echo same
done
foreign calls calls.pt
$SFT diff state_dict calls.pt
