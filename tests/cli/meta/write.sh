# The rules of commands that write.
m=every-dtype.safetensors; cp $m keep
$SFT meta set $m k v --dry-run | sed -E 's/updated( in place)? \(.*;/updated by METHOD;/'; cmp $m keep
$SFT meta set $m k v -o out.safetensors; cmp $m keep; $SFT meta get out.safetensors k
$SFT meta set $m k w -o out.safetensors; echo $?
$SFT meta set $m k w -o out.safetensors --force; $SFT meta get out.safetensors k
ln -s $m link; $SFT meta set link k v 2>&1 | sed "s,$PWD,HERE,"; cmp $m keep
$SFT meta set link k v --follow | sed -E 's/updated( in place)? \(.*;/updated by METHOD;/'; [ -L link ] && $SFT meta get link k
cp keep $m; ln $m hard; $SFT meta set $m k v; echo $?; cmp $m keep
$SFT meta set $m k v --force >/dev/null; $SFT meta get $m k
mkdir -p hub/blobs hub/snap; b=0123456789abcdef0123456789abcdef01234567; cp keep hub/blobs/$b
ln -s ../blobs/$b hub/snap/m.safetensors
$SFT meta set hub/snap/m.safetensors k v 2>&1 | sed "s,$PWD,HERE,"; cmp keep hub/blobs/$b
$SFT meta set hub/snap/m.safetensors k v -o copy.safetensors; $SFT meta get copy.safetensors k
$SFT meta set nosuch k v; echo $?
$SFT meta set lora/neon-city.json k v; echo $?
ls -A | grep sft-
true
