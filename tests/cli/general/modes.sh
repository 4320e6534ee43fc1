# A private file stays private: whatever is written from it, or from it and others, is not more
# open than it was. OPEN is a model that all may read.
umask 022
png='iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
fresh() {
    rm -rf w && mkdir w && cp -r sharded w/set
    st w/m.safetensors '{"__metadata__":{"workflow":"{}","modelspec.thumbnail":"data:image/png;base64,'$png'"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}}' 12
    st w/open.safetensors '{"c":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
    st w/torn.safetensors '{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}' 2
    mkdir w/bare && cp w/set/*.safetensors w/bare
    python3 -c 'import struct; h = b"{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (1,), }\n"
open("w/x.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h + b"\7")'
    find w -type f -exec chmod 600 {} +
    chmod 644 w/open.safetensors
    I=w/set/model.safetensors.index.json
}
# row WORDS...: runs the command and tells which of the files it wrote are more open than 0600.
row() {
    fresh
    [ -z "$before" ] || eval "$before"
    find w -type f -exec touch -d 2020-01-01 {} +
    "$SFT" "$@" >log 2>&1 </dev/null || { echo "exit $?:"; cat log; }
    local open new
    new=$(find w -type f -newermt 2021-01-01 | wc -l)
    open=$(find w -type f -newermt 2021-01-01 -perm /077 | sort | tr '\n' ' ')
    [ "$new" -gt 0 ] || echo "nothing was written:"
    printf '%.100s: %s\n' "$*" "$([ -z "$open" ] && echo private || echo "OPEN: $open")"
}
before=
row split w/m.safetensors -o w/out --count 2
row split w/m.safetensors -o w/out
row split w/set/model.safetensors.index.json -o w/out --count 2
row merge w/m.safetensors w/open.safetensors -o w/out.safetensors
row merge w/open.safetensors w/m.safetensors -o w/out.safetensors
row merge w/set/model.safetensors.index.json -o w/out.safetensors
row merge w/bare -o w/out.safetensors
row select w/m.safetensors -o w/out.safetensors --keep a
row select w/m.safetensors --in-place --keep a
row select w/set/model.safetensors.index.json -o w/out --drop '*bias' --copy
row select w/set/model.safetensors.index.json -o w/out.safetensors --drop '*bias'
row select w/set/model.safetensors.index.json --in-place --drop '*0*'
row convert w/m.safetensors -o w/out.safetensors --dtype BF16
row convert w/m.safetensors --in-place --dtype BF16
row convert w/set/model.safetensors.index.json -o w/out --dtype F64
row convert w/set/model.safetensors.index.json -o w/out.safetensors --dtype F64
row convert w/set/model.safetensors.index.json --in-place --dtype F64
row rm-tensor w/m.safetensors a
row rm-tensor w/m.safetensors a -o w/out.safetensors
row add w/m.safetensors x=w/x.npy
row add w/m.safetensors x=w/x.npy -o w/out.safetensors
row add w/open.safetensors x=w/x.npy -o w/out.safetensors
row add w/set/model.safetensors.index.json x=w/x.npy
row add w/set/model.safetensors.index.json x=w/x.npy -o w/out.safetensors
row rename w/m.safetensors --map a=z
row rename w/m.safetensors --map a=z -o w/out.safetensors
row rename w/set/model.safetensors.index.json --add-prefix z. -o w/out
row rename w/set/model.safetensors.index.json --add-prefix z.
row meta set w/m.safetensors k v
row meta set w/m.safetensors k "$(printf 'v%.0s' {1..9000})"
row meta set w/m.safetensors k v -o w/out.safetensors
row meta set w/set/model.safetensors.index.json k v
row meta set --each-shard w/set/model.safetensors.index.json k v
row meta scrub w/m.safetensors
row repair w/torn.safetensors -o w/out.safetensors
row repair w/torn.safetensors --in-place
row repair w/set/model.safetensors.index.json -o w/out
row repair w/bare -o w/out
row info --export-preview w w/m.safetensors
row info --export-workflow w/out.json w/m.safetensors
row hash --cache w/cache w/m.safetensors
# The index alone is open, or one shard alone is private.
before='chmod 644 $I'
row select w/set/model.safetensors.index.json -o w/out.safetensors --drop '*bias'
row merge w/set/model.safetensors.index.json -o w/out.safetensors
before='chmod 644 w/set/*; chmod 600 w/set/*-00002-*'
row split w/set/model.safetensors.index.json -o w/out --count 2
row convert w/set/model.safetensors.index.json -o w/out --dtype F64
row merge w/set/model.safetensors.index.json -o w/out.safetensors
# An open file that is replaced does not open what replaces it, nor does a private one become open.
before='cp w/open.safetensors w/out.safetensors; chmod 644 w/out.safetensors'
row select w/m.safetensors -o w/out.safetensors --force --keep a
row merge w/m.safetensors w/open.safetensors -o w/out.safetensors --force
before='cp w/open.safetensors w/out.safetensors; chmod 600 w/out.safetensors'
row select w/open.safetensors -o w/out.safetensors --force --keep c --copy
before=
# Where all is open, it stays so.
fresh
chmod 644 w/m.safetensors
$SFT merge w/open.safetensors w/m.safetensors -o w/out.safetensors
$SFT split w/m.safetensors -o w/out --count 2
stat -c %a w/out.safetensors w/out/*
# A mode of its own is kept as it is.
chmod 640 w/m.safetensors
$SFT add w/m.safetensors y=w/x.npy; $SFT convert w/m.safetensors -o w/kept.safetensors --dtype F16
$SFT meta set w/m.safetensors k "$(head -c 300 /dev/zero | tr '\0' x)" >out; $SFT rm-tensor w/m.safetensors y
stat -c %a w/m.safetensors w/kept.safetensors
# Of an old file that is replaced, and of files of a model that are written anew.
m=every-dtype.safetensors s="$SFT select every-dtype.safetensors --keep *f4*"
chmod 600 $m; $s -o private.safetensors; stat -c %a private.safetensors
chmod 640 private.safetensors; $s -o private.safetensors --force; stat -c %a private.safetensors
chmod 640 sharded/*.safetensors
$SFT add sharded new=w/x.npy; stat -c %a sharded/*-*[0-9a-f].safetensors sharded/*.json | sort | uniq -c
