# Names and index as transformers has them; every byte is kept; the index comes last.
m=every-dtype.safetensors
$SFT split $m -o out --count 3; echo $?
ls out; cat out/model.safetensors.index.json
$SFT check out && $SFT diff $m out; echo $?
$SFT split $m -o sizes --max-size 500B; ls sizes | wc -l
$SFT split out -o again --max-size 1KiB --name other; ls again; $SFT diff out again; echo $?
$SFT split $m -o single; ls single; cmp $m single/model.safetensors && echo same
$SFT split sharded -o dry --count 2 --dry-run; ls dry 2>/dev/null; echo $?
for size in 12.5KB 0.0125MB '12.5 kb' 12.KB 1.0000001GB 0.0KB .5KB; do rm -rf sizes; $SFT split sharded -o sizes --max-size "$size" --dry-run | wc -l; done
