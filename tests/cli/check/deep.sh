$SFT check --deep every-dtype.safetensors
echo $?
python3 - <<'P'
import struct
h = b'{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"y":{"dtype":"I8","shape":[1],"data_offsets":[16,17]}}'
nan, inf = float("nan"), float("inf")
open("f.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + struct.pack("<4f", 1, nan, inf, -inf) + b"\xff")
P
$SFT check --deep f.safetensors
echo $?
$SFT check --deep --explain f.safetensors quantised.safetensors
$SFT check --deep --json f.safetensors | pyjson 'j["results"][0]["ok"], j["results"][0]["deep"]'
st one.safetensors '{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   ' 4
$SFT check --deep --explain one.safetensors
$SFT check --deep sharded
cat f.safetensors | $SFT check --deep -
echo $?
$SFT check --deep - <f.safetensors
