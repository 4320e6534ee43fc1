# Names and index as transformers has them; every byte is kept; the index comes last.
m=every-dtype.safetensors
$SFT split $m -o out --count 3; echo $?
ls out; cat out/model.safetensors.index.json
$SFT check out && $SFT diff $m out; echo $?
$SFT split $m -o sizes --max-size 500B; ls sizes | wc -l
$SFT split out -o again --max-size 1KiB --name other; ls again; $SFT diff out again; echo $?
$SFT split $m -o single; ls single; cmp $m single/model.safetensors && echo same
$SFT split sharded -o dry --count 2 --dry-run; ls dry 2>/dev/null; echo $?
