# Scaled F8 as values; a layout that is not known, or a dtype without fractions, is an error.
python3 - <<'P'
import json, struct
def save(path, *tensors):
    header, data = {}, b""
    for name, dtype, shape, bytes_ in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
f4 = lambda *v: struct.pack("<%df" % len(v), *v)
i4 = lambda *v: struct.pack("<%dI" % len(v), *v)
save("f8.safetensors", ("a.weight", "F8_E4M3", [2, 3], bytes([0x38, 0x40, 0x7e, 0xb8, 0x7f, 1])),
     ("a.weight_scale", "F32", [2, 1], f4(0.5, 2)), ("norm", "F32", [1], f4(9)))
save("bnb.safetensors", ("a.weight", "U8", [8, 1], bytes(8)), ("a.weight.absmax", "F32", [1], f4(1)))
save("half.safetensors", ("a.weight", "F8_E4M3", [4, 3], bytes(12)), ("a.weight_scale", "F32", [2], f4(1, 2)))
save("odd.safetensors", ("a.weight", "F8_E4M3", [5, 3], bytes(15)), ("a.weight_scale", "F32", [2, 2], f4(1, 2, 3, 4)))
def gptq(path, g):
    save(path, ("m.qweight", "I32", [1, 8], i4(*[0x76543210] * 8)), ("m.qzeros", "I32", [1, 1], i4(0)),
         ("m.scales", "F32", [1, 8], f4(*[1] * 8)), ("m.g_idx", "I32", [8], i4(*[0] * 7, g)))
gptq("gptq.safetensors", 0), gptq("bad.safetensors", 1), gptq("minus.safetensors", 0xFFFFFFFF)
save("empty.safetensors", ("a.weight", "F8_E4M3", [0, 3], b""), ("a.weight_scale", "F32", [], f4(1)),
     ("m.qweight", "I32", [0, 8], b""), ("m.qzeros", "I32", [0, 1], b""), ("m.scales", "F32", [0, 8], b""))
P
$SFT convert f8.safetensors -o out.safetensors --dequantize
$SFT ls --tsv out.safetensors | cut -f 2-4
$SFT cat out.safetensors a.weight
$SFT convert gptq.safetensors -o out.safetensors --dequantize --dtype fp32 --force && $SFT cat out.safetensors 'm.weight[:2]'
for file in bnb odd half bad minus empty; do
    $SFT convert $file.safetensors -o none.safetensors --dequantize 2>&1; echo $?
done
$SFT convert f8.safetensors -o none.safetensors --dequantize --dtype I8 2>&1; echo $?
$SFT convert f8.safetensors -o none.safetensors --dequantize --dry-run --json | pyjson 'j["results"][0]["tensors"], j["results"][0]["ok"]'
$SFT convert sharded --in-place --dequantize 2>&1; echo $?
$SFT convert f8.safetensors --in-place --dequantize --match 'b*' 2>&1; echo $?
$SFT convert f8.safetensors --in-place --dequantize --dtype f16 && $SFT ls --tsv f8.safetensors | cut -f 2-4
test -e none.safetensors && echo written
