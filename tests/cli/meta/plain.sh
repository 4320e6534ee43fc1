# list, get, set, rm on one file.
m=lora/neon-city.safetensors
$SFT meta list $m | head -3
$SFT meta get $m modelspec.title
before=$(stat -c %i $m); sum=$($SFT hash --algo autov3 $m)
$SFT meta set $m modelspec.title "Neon Town" new.key "two words"; echo $?
$SFT meta get $m modelspec.title; $SFT meta get $m new.key
$SFT meta set $m modelspec.title "Neon Town"; echo $?
$SFT meta rm $m new.key; echo $?
$SFT meta get $m new.key; echo $?
$SFT meta rm $m new.key; echo $?
[ "$sum" = "$($SFT hash --algo autov3 $m)" ] && echo same weights
[ "$before" = "$(stat -c %i $m)" ] && echo same file
$SFT check $m; ls -A lora | grep sft-
true
