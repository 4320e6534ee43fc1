# A ZIP hides in the data; offsets are unaligned; order is not that of the data.
python3 - <<'P'
import io, struct, zipfile
z = io.BytesIO()
with zipfile.ZipFile(z, "w") as f: f.writestr("x", "y")
data = b"\0" + z.getvalue()
n = len(data)
h = ('{"z":{"dtype":"U8","shape":[%d],"data_offsets":[3,%d]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F16","shape":[1],"data_offsets":[1,3]}}' % (n, n + 3)).encode()
open("f.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"\0\0\0" + data)
P
$SFT check --explain f.safetensors
$SFT check --json f.safetensors | pyjson '[n["code"] for n in j["results"][0]["notes"]]'
