# Sourced before each case. Made-up files, spelled out.

# Python without its packages, which no case needs, starts several times as fast.
python3() {
    command python3 -S "$@"
}

# st FILE HEADER [BYTES]: a safetensors file: HEADER as it is, then BYTES zero bytes.
st() {
    local LC_ALL=C i n length byte
    n=${#2}
    for i in 0 8 16 24 32 40 48 56; do
        printf -v byte '\\x%02x' $((n >> i & 255))
        length+=$byte
    done
    {
        printf "$length%s" "$2"
        [ "${3:-0}" = 0 ] || head -c "$3" /dev/zero
    } >"$1"
}

# cut_to FILE BYTES: keep only the beginning.
cut_to() {
    head -c "$2" "$1" >"$1.cut" && mv "$1.cut" "$1"
}

# pyjson EXPRESSION: standard input as JSON is `j`; prints the expression.
pyjson() {
    python3 -c 'import json, sys; j = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"
}

# The folder of the case, as the command spells it.
export HERE=$PWD
[ "${SFT_TARGET:-}" != windows ] || HERE=Z:$PWD

one='{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'

# dataset KIND DIR: one of the small datasets of tests/dataset/make.py.
dataset() {
    python3 "$CASES/../dataset/make.py" "$@"
}

# plain: without what differs between file systems: how a header grows, and what is left of it.
plain() {
    sed -E 's/(updated|written)( \(file rewritten[^)]*\)| in place \(header grown\))?(, [0-9]+ tensors? renamed)?; [0-9]+ spare bytes?/\1\3; N spare bytes/'
}

# terminal COLUMNS WORDS...: a command whose standard output is a terminal (terminal.py).
terminal() {
    python3 "$CASES/terminal.py" "$@"
}

# foreign KIND FILE: one of the small models in other formats of foreign.py.
foreign() {
    python3 "$CASES/foreign.py" "$@"
}

# identity FILE: the numbers by which a journal knows it (identity.py).
identity() {
    python3 "$CASES/identity.py" "$1"
}

# page FILE EXPRESSION: what a page of catalog holds (page.py).
page() {
    python3 "$CASES/page.py" "$@"
}

# png FILE WIDTH HEIGHT [BYTES]: an image that says it has that size, with BYTES zeros behind it.
png() {
    python3 - "$@" <<'PY'
import struct, sys, zlib
name, width, height, more = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int((sys.argv + [0])[4])
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open(name, "wb") as out:
    out.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
              + chunk(b"IDAT", zlib.compress(bytes(4))) + chunk(b"IEND", b"") + bytes(more))
PY
}

# catalog ...: safetensors catalog, without the page's size, which its scripts have the most of.
catalog() (
    set -o pipefail
    safetensors catalog "$@" | sed -E 's/[0-9.]+ [KM]B(;|,|$)/SIZE\1/'
)

# sides FILE: those of a PNG.
sides() {
    python3 -c 'import struct, sys
with open(sys.argv[1], "rb") as file:
    print("%d x %d" % struct.unpack(">II", file.read(24)[16:]))' "$1"
}
