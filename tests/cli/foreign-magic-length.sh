# The length spells "PK\3\4" and the file is as long as that: safetensors it is.
python3 -c 'import struct
h = b"{}"
with open("f.safetensors", "wb") as f:
    f.write(b"PK\x03\x04\0\0\0\0{}"); n = 0x04034b50
    while n > 2:
        k = min(n - 2, 1 << 20); f.write(b" " * k); n -= k'
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
