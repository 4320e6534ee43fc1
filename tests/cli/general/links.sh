# Symbolic links, of commands that write: told and left alone unless --follow is given; the files of
# the Hub's cache stay as they are.
m=every-dtype.safetensors; cp $m keep
here() { sed "s,$PWD,HERE,"; }
echo "# one file, written anew"
s="$SFT select $m --keep *f4*"
$s -o out.safetensors
ln -s out.safetensors link.safetensors
$s -o link.safetensors --force 2>&1 | here
$s -o link.safetensors --force --follow; [ -L link.safetensors ] && echo still a link
echo "# edited"
ln -s $m link; $SFT meta set link k v 2>&1 | here; cmp $m keep
$SFT meta set link k v --follow | sed -E 's/updated( in place)? \(.*;/updated by METHOD;/'; [ -L link ] && $SFT meta get link k
cp keep $m
echo "# the Hub's cache"
mkdir -p hub/blobs hub/snap; b=0123456789abcdef0123456789abcdef01234567; cp keep hub/blobs/$b
ln -s ../blobs/$b hub/snap/m.safetensors
$SFT meta set hub/snap/m.safetensors k v 2>&1 | here; cmp keep hub/blobs/$b
$SFT meta set hub/snap/m.safetensors k v -o copy.safetensors; $SFT meta get copy.safetensors k
cp $m hub/blobs/0123; ln -sf ../blobs/0123 hub/snap/m.safetensors
printf '' >empty.npy; $SFT add hub/snap/m.safetensors x=empty.npy 2>&1 | here
echo "# an index that is a link"
cp -r sharded add; ls add >names
ln -s model.safetensors.index.json add/link.safetensors.index.json
$SFT add add/link.safetensors.index.json no=empty.npy 2>&1 | here; rm add/link*; ls add | cmp - names
echo "# beside what an index that is a link leads to are files, too"
$SFT convert sharded -o wanted --dtype F32
mkdir links; cp wanted/* links; ln -sf ../wanted/model.safetensors.index.json links; cp -r wanted real
i=links/model.safetensors.index.json
for follow in "" --follow; do
    for c in "convert $i --in-place --dtype F16" "rename $i --add-prefix x." "rm-tensor $i model.norm.weight"; do
        $SFT $c $follow 2>&1 | here
    done
done
diff -r wanted real && ls links
ln -s model.safetensors.index.json real/link.safetensors.index.json
$SFT convert real/link.safetensors.index.json --in-place --dtype BF16 --follow && $SFT check real && readlink real/link.safetensors.index.json
echo "# next to the journal of an interrupted edit"
st w.safetensors '{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' 4; cp w.safetensors whole.safetensors
python3 - $(identity w.safetensors) <<'P'
import struct, sys, zlib
bytes = open("w.safetensors", "rb").read()
open("w.safetensors", "wb").write(bytes[:-4] + b"nnoo")
b = b"sft-edit" + struct.pack("<12Q", 2, 1, *map(int, sys.argv[1:]), len(bytes), 0, len(bytes) - 4,
                              len(bytes) - 4, 1, 4, len(bytes) - 4, 4)
b += bytes[:-4] * 2 + b"oooonnnn"
open(".w.safetensors.sft-journal", "wb").write(b + struct.pack("<Q", zlib.crc32(b)))
P
ln -s w.safetensors torn; cp w.safetensors w.keep
for c in "info torn" "ls torn" "check torn" "cat --as raw torn w" "hash torn" "diff whole.safetensors torn" \
    "repair torn -o repaired"; do
    $SFT $c >out 2>&1; echo "$c: $?, $(grep -c interrupted out) told"
done
cmp w.safetensors w.keep; ls repaired 2>/dev/null
echo "# in place of the old file of an interrupted replacement"
old=.$m.sft-0123abcv.old; mv $m elsewhere; ln -s elsewhere $old
$SFT meta recover $m; echo $?; ls $m; rm $old; mv elsewhere $m
cp $m .taken.sft-33333333.old; ln -s nowhere taken; $SFT repair --clean .; ls -A | grep -F .old
true
