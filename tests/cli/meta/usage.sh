m=every-dtype.safetensors
$SFT meta; echo $?
$SFT meta $m; echo $?
$SFT meta set $m; echo $?
$SFT meta set $m k; echo $?
$SFT meta get $m; echo $?
$SFT meta rm $m; echo $?
$SFT meta scrub $m $m -o x; echo $?
$SFT meta list lora nosuch.safetensors >/dev/null; echo $?
