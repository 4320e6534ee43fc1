# Of another format: valid, or why not; with --deep checksums, too.
foreign state_dict good.pt; foreign training run.ckpt; foreign gguf small.gguf
$SFT check good.pt run.ckpt small.gguf
echo $?
python3 - <<'END'
import struct
raw = bytearray(open("good.pt", "rb").read())
at = raw.index(struct.pack("<6f", *range(6)))
raw[at] ^= 1
open("bad.pt", "wb").write(raw)
END
$SFT check bad.pt
echo $?
$SFT check --deep bad.pt
echo $?
$SFT convert bad.pt -o x.safetensors
echo $?
ls x.safetensors 2>/dev/null
true
