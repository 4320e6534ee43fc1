# Lines of ls, dup, diff, find and dataset ls fit the terminal; what is cut has an ellipsis, and a
# pipe gets all of it.
python3 - <<'P'
import json, os, struct
def write(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header, ensure_ascii=False).encode()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
f = lambda n, step: struct.pack("<%df" % n, *(i * step for i in range(n)))
long = "lora_unet_down_blocks_1_attentions_0_transformer_blocks_0_attn1_to_q_with_a_longer_name.lora_down.weight"
wide = "模型の重み.変換器.層.0.注意.射影.重み.とても長い名前.さらに長い名前のテンソル.weight"
a = {long: ("F32", [4, 8], f(32, .5)), wide: ("F32", [2, 4], f(8, 1)),
     "short": ("F32", [2] * 8, f(256, -1)), "nan": ("F32", [1], struct.pack("<f", float("nan")))}
b = dict(a, **{long: ("F32", [4, 8], f(32, .25)), "new." + long: ("F32", [1], f(1, 1)), "short": ("F32", [256], f(256, 1))})
del b[wide]
write("t/a-folder-with-a-long-name/another/model-with-a-rather-long-file-name-v1.safetensors", a, {"description": "x" * 300, "ss_base_model_version": "sdxl_base_v1-0"})
write("t/a-folder-with-a-long-name/another/model-with-a-rather-long-file-name-v2.safetensors", b, {"description": "y" * 300})
write("t/lora/copy.safetensors", a, {"other": "1"})
write("t/lora/the-same-file-under-another-name-that-is-long-and-goes-on-and-on.safetensors", a, {"other": "1"})
open("widest.py", "w").write('''
import sys, unicodedata
columns = int(sys.argv[1])
for line in open("page", encoding="utf-8"):
    line = line.rstrip("\\n")
    width = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)
    if width > columns: print("%d columns: %s" % (width, line))
''')
P
dataset kv kv
v1=$(echo t/a*/another/*v1.safetensors) v2=$(echo t/a*/another/*v2.safetensors)
terminal() {
    python3 "$(dirname "$BASH_ENV")/terminal.py" "$@" | sed 's/\x1b\[[0-9;]*m//g' >page
    echo "== $1: ${*:3}"; cat page; python3 widest.py $1
}
for columns in 60 80 200; do
    terminal $columns $SFT ls $v1
    terminal $columns $SFT ls --stats $v1
    terminal $columns $SFT ls --tree $v1
    terminal $columns $SFT dup -r t
    terminal $columns $SFT diff $v1 $v2
    terminal $columns $SFT find -r name t
    terminal $columns $SFT dataset ls --match 'bob*' kv
done
for columns in 20 1; do terminal $columns $SFT diff $v1 $v2 >/dev/null; wc -L <page; done
{ $SFT ls $v1; $SFT ls --stats $v1; $SFT ls --tree $v1; $SFT dup -r t; $SFT diff $v1 $v2; $SFT find -r name t; } | grep -c …
