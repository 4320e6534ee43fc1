python3 - <<'P'
import struct
def six(v):
    bits = sum(x << 6 * i for i, x in enumerate(v))
    return bits.to_bytes(len(v) * 6 // 8, "little")
parts = [("e2m3", "F6_E2M3", six([0, 1, 7, 8, 31, 32, 63, 16]), 8),
         ("e3m2", "F6_E3M2", six([0, 1, 3, 4, 31, 32, 63, 12]), 8),
         ("f4", "F4", bytes((2*i+1) << 4 | 2*i for i in range(8)), 16),
         ("e4m3", "F8_E4M3", bytes([0, 0x80, 1, 0x7e, 0x7f, 0xff, 0x38]), 7),
         ("e5m2", "F8_E5M2", bytes([0, 0x80, 1, 0x7b, 0x7c, 0xfc, 0x7d]), 7),
         ("e4m3z", "F8_E4M3FNUZ", bytes([0, 0x80, 1, 0x7f, 0xff]), 5),
         ("e5m2z", "F8_E5M2FNUZ", bytes([0, 0x80, 1, 0x7f, 0xff]), 5),
         ("e8m0", "F8_E8M0", bytes([0, 127, 254, 255]), 4),
         ("f16", "F16", struct.pack("<6H", 0, 0x8000, 1, 0x7bff, 0x7c00, 0x7e00), 6),
         ("bf16", "BF16", struct.pack("<5H", 0x3dcd, 1, 0x7f7f, 0xff80, 0x7fc0), 5),
         ("f32", "F32", struct.pack("<7f", 0.1, -0.0, 1e-45, 3.4028235e38, 16777216, float("inf"), float("nan")), 7),
         ("f64", "F64", struct.pack("<5d", 0.1, 5e-324, 1.7976931348623157e308, 1/3, float("-inf")), 5),
         ("c64", "C64", struct.pack("<4f", 1, -2, float("nan"), 0.5), 2),
         ("i64", "I64", struct.pack("<3q", -2**63, 2**63-1, -1), 3),
         ("u64", "U64", struct.pack("<1Q", 2**64-1), 1),
         ("i8", "I8", bytes([128, 255, 127]), 3),
         ("bool", "BOOL", bytes([0, 1, 2]), 3)]
at, items, data = 0, [], b""
for name, dtype, raw, n in parts:
    items.append('"%s":{"dtype":"%s","shape":[%d],"data_offsets":[%d,%d]}' % (name, dtype, n, at, at + len(raw)))
    at += len(raw); data += raw
h = ("{" + ",".join(items) + "}").encode()
open("f.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + data)
P
for t in e2m3 e3m2 f4 e4m3 e5m2 e4m3z e5m2z e8m0 f16 bf16 f32 f64 c64 i64 u64 i8 bool; do
    echo "$t: $($SFT cat f.safetensors $t)"
    $SFT cat --as json f.safetensors $t | pyjson 'j["results"][0]["values"]'
done
