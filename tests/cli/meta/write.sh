# The rules of commands that write.
m=every-dtype.safetensors; cp $m keep
$SFT meta set $m k v --dry-run | sed -E 's/updated( in place)? \(.*;/updated by METHOD;/'; cmp $m keep
$SFT meta set $m k v -o out.safetensors; cmp $m keep; $SFT meta get out.safetensors k
$SFT meta set $m k w -o out.safetensors; echo $?
$SFT meta set $m k w -o out.safetensors --force; $SFT meta get out.safetensors k
ln $m hard; $SFT meta set $m k v; echo $?; cmp $m keep
$SFT meta set $m k v --force >/dev/null; $SFT meta get $m k
$SFT meta set nosuch k v; echo $?
$SFT meta set lora/neon-city.json k v; echo $?
ls -A | grep sft-
true
