python3 -c 'import struct
h = b"""{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}""" + bytes(11)
open("f.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"x")'
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
