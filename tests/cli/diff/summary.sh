# RMS and cosine as numpy has them: over windows that are equal before and behind what differs.
python3 - <<'P'
import random, struct, math
def w(path, dtype, values, code):
    h = b'{"w":{"dtype":"%s","shape":[%d],"data_offsets":[0,%d]}}' % (dtype, len(values), struct.calcsize(code) * len(values))
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + struct.pack("<%d%s" % (len(values), code), *values))
random.seed(5)
for name, dtype, code, make in (("f", b"F32", "f", lambda: random.gauss(0, 1)),
                                ("i", b"I64", "q", lambda: random.randrange(-99, 99))):
    a = [make() for _ in range(700001)]
    a = list(struct.unpack("<%d%s" % (len(a), code), struct.pack("<%d%s" % (len(a), code), *a)))
    b = list(a)
    for i in range(400000, 400100): b[i] = a[i] * 2
    w(name + "a.safetensors", dtype, a, code), w(name + "b.safetensors", dtype, b, code)
    dd = math.fsum((x - y) ** 2 for x, y in zip(a, b))
    aa, bb, ab = (math.fsum(p * q for p, q in zip(u, v)) for u, v in ((a, a), (b, b), (a, b)))
    print("expected: RMS %.6g, cosine %.9g" % (math.sqrt(dd / len(a)), ab / math.sqrt(aa * bb)))
nan, inf = float("nan"), float("inf")
w("na.safetensors", b"F32", [nan, inf, 1, 2, 0], "f")
w("nb.safetensors", b"F32", [1, inf, 1, 3, 0], "f")
w("za.safetensors", b"F32", [0, 0, nan], "f")
w("zb.safetensors", b"F32", [0, 4, nan], "f")
w("xa.safetensors", b"F32", [nan, inf], "f")
w("xb.safetensors", b"F32", [1, -inf], "f")
P
$SFT diff fa.safetensors fb.safetensors
$SFT diff ia.safetensors ib.safetensors
$SFT diff na.safetensors nb.safetensors
$SFT diff za.safetensors zb.safetensors
$SFT diff xa.safetensors xb.safetensors --json | pyjson '[(c["values"]["rms"], c["values"]["cosine"]) for c in j["results"][0]["changed"]]'
