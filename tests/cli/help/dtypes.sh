# help dtypes: every dtype of the format and its other names, which are all taken; lines fit.
$SFT help dtypes
$SFT help dtypes | awk 'length($0) > 79 { print "too long" }'
for name in $($SFT help dtypes | tr ', ' '\n\n'); do
    $SFT ls --dtype "$name" every-dtype.safetensors >/dev/null 2>err || [ $? = 1 ] || cat err
done
$SFT convert every-dtype.safetensors -o x; $SFT convert every-dtype.safetensors --dtype zzz -o x
