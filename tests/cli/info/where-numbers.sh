# Numbers that nothing can have are refused; a size is bytes, except the field size.
for where in 'bytes>99999999999999999999999' 'bytes>99999999EB' 'rank=1e300' 'rank<-1e300' 'rank=1e999' 'bytes>18446744073709551615' 'kind=lora' 'size=big'; do
    $SFT info --where "$where" every-dtype.safetensors; echo "$where $?"
done
$SFT info -f name -f kind every-dtype.safetensors; echo $?
$SFT info -f name -f name every-dtype.safetensors; echo $?
# Models that are equal in what they are sorted by: by path, capitals among the others.
for n in b a C B2 c10 c9; do mkdir -p m; cp every-dtype.safetensors m/$n.safetensors; done
$SFT info --sort size -f path m
$SFT info --sort size --reverse -f path m | tr '\n' ' '; echo
$SFT info --sort rank -f path m | tr '\n' ' '; echo
