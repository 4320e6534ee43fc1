m=every-dtype.safetensors
$SFT meta set $m --thumbnail lora/neon-city.preview.png >/dev/null; $SFT meta get $m modelspec.thumbnail | cut -c1-40
$SFT meta get $m modelspec.thumbnail | cut -d, -f2 | base64 -d | cmp - lora/neon-city.preview.png && echo same picture
$SFT meta set $m --thumbnail lora/neon-city.json; echo $?
$SFT meta set $m --thumbnail nosuch.png; echo $?
for n in 0 1 2; do printf '\xff\xd8\xff%s' "$(head -c $n /dev/zero | tr '\0' a)" >p.jpg; $SFT meta set $m --thumbnail p.jpg >/dev/null; $SFT meta get $m modelspec.thumbnail | cut -d, -f2 | base64 -d | cmp - p.jpg; done
