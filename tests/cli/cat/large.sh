# Slices of a tensor larger than a piece, against a naive reading.
python3 - <<'P'
import os, random, struct, subprocess
shape, data = (3, 1100, 1001), random.Random(1).randbytes(3 * 1100 * 1001 * 4)
h = ('{"w":{"dtype":"U32","shape":[%d,%d,%d],"data_offsets":[0,%d]}}' % (*shape, len(data))).encode()
open("f.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + data)
def naive(a, b, c):
    out = []
    for i in range(*a.indices(3)):
        for j in range(*b.indices(1100)):
            row = memoryview(data)[(i * 1100 + j) * 4004:(i * 1100 + j + 1) * 4004].cast("I")
            out.append(row[c].tobytes())
    return b"".join(out)
every = slice(None)
for text, parts in (("", (every,) * 3), ("[::-1]", (slice(None, None, -1), every, every)),
                    ("[:, 5:1095:7, ::-3]", (every, slice(5, 1095, 7), slice(None, None, -3))),
                    ("[..., 1:]", (every, every, slice(1, None)))):
    got = subprocess.check_output([os.environ["SFT"], "cat", "--as", "raw", "f.safetensors", "w" + text])
    print(text, len(got), got == naive(*parts))
P
