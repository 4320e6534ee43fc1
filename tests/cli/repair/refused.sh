t='"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
st cut.safetensors "{$t}" 3
st shape.safetensors '{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}}' 4
st behind.safetensors "{$t}{}" 4
st broken.safetensors "{$t" 4
echo '<!DOCTYPE html><html>' >page.safetensors
for f in cut shape behind broken page nosuch; do
    $SFT repair $f.safetensors -o fixed.safetensors; echo $?
done
ls fixed.safetensors 2>/dev/null
st many.safetensors '{"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]},"b":{"dtype":"U8","shape":[4],"data_offsets":[6,10]},"c":{"dtype":"U8","shape":[4],"data_offsets":[11,15]},"d":{"dtype":"U8","shape":[4],"data_offsets":[16,20]},"e":{"dtype":"U8","shape":[4],"data_offsets":[21,25]},"f":{"dtype":"U8","shape":[4],"data_offsets":[26,30]}}  ' 30
$SFT repair many.safetensors -o x.safetensors --dry-run; ls x.safetensors 2>/dev/null
$SFT repair many.safetensors; echo $?
$SFT repair; echo $?
$SFT repair many.safetensors --clean .; echo $?
