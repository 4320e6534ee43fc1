# What a model declares of its quantisation counts before names and shapes: values that it makes
# other than products are refused by name, and a declaration ends with what it declared.
cat >make.py <<'P'
import json, struct
SIZES = {"F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "I8": 1, "U8": 1, "F32": 4, "BF16": 2, "I32": 4}
def save(path, tensors, meta=None):
    header, data = {"__metadata__": meta} if meta else {}, b""
    for name, value in tensors.items():
        if len(value) == 1:
            value = ("U8", [len(json.dumps(value[0]))], json.dumps(value[0]).encode())
        dtype, shape, *content = value
        size = SIZES[dtype]
        for n in shape: size *= n
        part = content[0] if content else bytes(range(1, 8)) * (size // 7 + 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + size]}
        data += part[:size]
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
one = ("F32", [], struct.pack("<f", 0.5))
f8 = {"a.weight": ("F8_E4M3", [128, 128]), "a.weight_scale": one}
i8 = {"a.weight": ("I8", [4, 256]), "a.weight_scale": one}
rows = {"a.weight": ("I8", [4, 256]), "a.weight_scale": ("F32", [4, 1])}
mx = {"a.weight": ("F8_E4M3", [128, 128]), "a.weight_scale": ("F8_E8M0", [128, 4])}
w4a4 = {"a.weight": ("I8", [4, 128]), "a.weight_scale": ("F32", [4])}
w4a8 = {"a.weight": ("I8", [4, 128]), "a.weight_s_rel": ("F8_E4M3", [4, 16]),
        "a.weight_s_channel": ("F32", [4]), "a.weight_codebook": ("F32", [16])}
plain = {"a.weight": ("BF16", [4, 256])}
def gptq():
    word = struct.pack("<8I", *[0x76543210] * 8)
    return {"m.qweight": ("I32", [1, 8], word), "m.qzeros": ("I32", [1, 1], bytes(4)), "m.scales": ("F32", [1, 8])}
P
model() { python3 -c "from make import *; save('m.safetensors', $1, ${2:-None})"; }
try() {
    rm -f o.safetensors
    $SFT convert m.safetensors -o o.safetensors --dequantize --json >said.json 2>said; code=$?
    if [ -e o.safetensors ]; then echo "$code: $($SFT ls --tsv o.safetensors | cut -f 2,3 | tail -n +2 | tr '\t\n' ' ,') $($SFT meta list o.safetensors | tr '\n' ' ')"
    else echo "$code: $(pyjson 'j["results"][0]["error"]["message"]' <said.json 2>/dev/null || cut -d: -f 3- said)"; fi
    $SFT ls --stats --dequantize m.safetensors >/dev/null 2>&1; is=$?
    [ $((is > 0)) = $((code > 0)) ] || echo "ls: $is"
}
quant() { model "{**$1, 'a.comfy_quant': [$2]}"; try; }
echo == what is known
quant f8 '{"format": "float8_e4m3fn", "full_precision_matrix_mult": True}'
quant i8 '{"format": "int8_tensorwise"}'
quant i8 '{"format": "int8_tensorwise", "convrot": False, "convrot_groupsize": 256}'
quant rows '{"format": "int8_tensorwise", "per_row": True}'
quant rows '{"format": "int8_tensorwise", "params": {"per_row": True}}'
echo == what is not
quant mx '{"format": "mxfp8"}'
quant w4a4 '{"format": "convrot_w4a4"}'
quant w4a8 '{"format": "asym_w4a8_int8"}'
quant f8 '{"format": "float8_e4m3fn_blockwise", "group_size": 64}'
quant rows '{"format": "int8_tensorwise", "per_row": True, "convrot": True, "convrot_groupsize": 256}'
quant rows '{"format": "int8_tensorwise", "params": {"convrot": True, "per_row": True}}'
quant rows '{"format": "int8_tensorwise", "per_row": True, "convrot_groupsize": 64}'
quant i8 '{"format": "int8_tensorwise", "spin": 1}'
quant i8 '"int8_tensorwise"'
quant i8 '7'
$SFT convert m.safetensors -o o.npz --dequantize 2>/dev/null; echo $? $(ls o.npz 2>/dev/null)
echo == what does not fit
quant rows '{"format": "int8_tensorwise"}'
quant f8 '{"format": "float8_e5m2"}'
quant mx '{"format": "float8_e4m3fn"}'
quant plain '{"format": "float8_e4m3fn"}'
quant "{**f8, 'a.weight_twist': one}" '{"format": "float8_e4m3fn"}'
quant "{**f8, 'a.pre_quant_scale': one}" '{"format": "float8_e4m3fn"}'
quant "{k.replace('a.', 'b.'): v for k, v in i8.items()}" '{"format": "int8_tensorwise", "convrot": True}'
echo == in the metadata
head() { model "$1" "{'_quantization_metadata': json.dumps($2), 'k': 'v'}"; try; }
head mx '{"layers": {"a": {"format": "mxfp8"}}}'
head mx '{"layers": {"a": "mxfp8"}}'
head "{'model.diffusion_model.' + k: v for k, v in mx.items()}" '{"layers": {"a": "mxfp8"}}'
head f8 '{"layers": {"gone": "nvfp4"}}'
head f8 '{"layers": {"gone": "float8_e4m3fn", "a": "float8_e4m3fn"}}'
head f8 '{"layers": ["a"]}'
head "{'net.' + k: v for k, v in f8.items()}" '{"layers": {"a": "float8_e4m3fn"}}'
head "{'net.' + k: v for k, v in i8.items()}" '{"layers": {"a": "float8_e4m3fn"}}'
head "{'model.net.' + k: v for k, v in f8.items()}" '{"layers": {"a": "float8_e4m3fn"}}'
head "{**f8, 'a.comfy_quant': [{'format': 'float8_e4m3fn'}]}" '{"layers": {"a": "int8_tensorwise"}}'
model f8 "{'_quantization_metadata': '{\"layers\": {\"a\": {\"format\": \"float8_e4m3fn\"}, \"a\": {\"format\": \"mxfp8\"}}}'}"; try
model f8 "{'_quantization_metadata': '{\"layers\": {\"a'}"; try
echo == what is left is still declared
model "{n + k[1:]: v for n in 'ab' for k, v in {**f8, 'a.comfy_quant': [{'format': 'float8_e4m3fn'}]}.items()} | {'scaled_fp8': ('F8_E4M3', [0])}" \
      "{'_quantization_metadata': json.dumps({'layers': {'a': 'float8_e4m3fn', 'b': {'format': 'float8_e4m3fn'}}, 'format_version': '1.0'})}"
$SFT convert m.safetensors -o o.safetensors --force --dequantize --match 'a*'
$SFT ls --tsv o.safetensors | cut -f 2,3 | tail -n +2 | tr '\t\n' ' ,'; $SFT meta list o.safetensors
try
echo == nothing declared
model mx; try
model "{**mx, 'a.weight': ('F8_E4M3', [128, 96])}"; try
model "{**mx, 'a.weight': ('F8_E4M3', [96, 128]), 'a.weight_scale': ('F8_E8M0', [96, 4])}"; try
model w4a8; try
model "{'a.weight': ('F8_E4M3', [96, 100]), 'a.weight_scale': ('F32', [2, 2])}"; try
model "{'a.weight': ('F8_E4M3', [96, 256]), 'a.weight_scale': ('F32', [1, 4])}"; try
echo == quantization_config
config() {
    model "$1"; echo "$2" >config.json; try
    rm config.json
    [ "$3" ] && model "$1" "{'quantization_config': json.dumps(json.loads('''$2''')['quantization_config'])}" && try
}
config mx '{"quantization_config": {"quant_method": "compressed-tensors", "format": "mxfp8-quantized"}}' both
config mx '{"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}}'
config rows '{"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", "transform_config": {"config_groups": {"u": {}}}}}'
config rows '{"quantization_config": {"quant_method": "compressed-tensors", "format": "int-quantized", "transform_config": {}, "sparsity_config": {"format": "dense"}}}'
config rows '{"quantization_config": {"quant_method": "hqq", "bits": 4}}' both
config rows '{"quantization_config": {"load_in_8bit": true}}'
config 'gptq()' '{"quantization_config": {"quant_method": "gptq", "bits": 4}}'
config 'gptq()' '{"quantization_config": {"quant_method": "gptq", "checkpoint_format": "gptq_v2"}}'
config 'gptq()' '{"quantization_config": {"quant_method": "awq", "version": "gemm"}}'
config 'gptq()' '{"model_type": "llama", "quantization_config": null}'
config 'gptq()' '{"quantization_config": '
config plain '{"quantization_config": {"quant_method": "hqq"}}'
model 'gptq()'; echo '{"bits": 4, "checkpoint_format": "gptq_v2"}' >quantize_config.json; try; rm quantize_config.json
echo == a cast leaves all of a declared layer alone
model "{**w4a8, 'a.comfy_quant': [{'format': 'asym_w4a8_int8'}], 'a.bias': ('F32', [4])}"
$SFT convert m.safetensors -o o.safetensors --force --dtype bf16
$SFT ls --tsv o.safetensors | cut -f 2,3 | tail -n +2 | sort
# Shards that declare their own layers become one file only where no declaration is left.
python3 - <<'P'
import json, runpy, sys
m = runpy.run_path("make.py")
for i, n in enumerate("ab"):
    m["save"]("s-0000%d-of-00002.safetensors" % (i + 1), {n + ".weight": ("F8_E4M3", [4, 4]), n + ".weight_scale": m["one"]},
              {"_quantization_metadata": json.dumps({"layers": {n: {"format": "float8_e4m3fn"}}})})
json.dump({"metadata": {}, "weight_map": {n + end: "s-0000%d-of-00002.safetensors" % (i + 1)
          for i, n in enumerate("ab") for end in (".weight", ".weight_scale")}}, open("s.safetensors.index.json", "w"))
P
$SFT convert s.safetensors.index.json -o joined.safetensors --dtype bf16; echo $?; ls joined.safetensors 2>/dev/null
$SFT convert s.safetensors.index.json -o joined.safetensors --dequantize --dtype f32; echo $?
$SFT info --json joined.safetensors | pyjson 'j["results"][0].get("metadata")'
