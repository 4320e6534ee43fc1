# Every refusal says what was expected, and leaves nothing.
try() {
    $SFT convert "$@" 2>&1
    echo "exit $?"
}
cp every-dtype.safetensors in.safetensors
try in.safetensors -o out.safetensors
try in.safetensors -o out.safetensors --dtype F17
try in.safetensors -o out.safetensors --dtype C64
try in.safetensors --dtype F16
try in.safetensors -o in.safetensors --dtype F16
try in.safetensors -o out.safetensors --dtype F16 --match 'nothing*'
try in.safetensors -o out.safetensors --dtype F16 --match '*c64'
try in.safetensors -o out.safetensors --dtype F16 --threads many
try . -o out.safetensors --dtype F16
try none -o out.safetensors --dtype F16
st odd.safetensors '{"a":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]}}' 12
try odd.safetensors -o out.safetensors --dtype F4
st nan.safetensors '{"w":{"dtype":"F32","shape":[1,8],"data_offsets":[0,32]}}' 0
printf '\0\0\200\077\0\0\300\177\0\0\200\177\0\0\226\103\0\0\226\303\0\0\0\0\0\0\200\377\1\0\300\377' >>nan.safetensors
try nan.safetensors -o out.safetensors --dtype F6_E2M3
try nan.safetensors -o out.safetensors --dtype I8 --match '*'
try nan.safetensors -o out.safetensors --dtype I8 --match '*' --saturate
$SFT cat nan.safetensors w
$SFT cat out.safetensors w
$SFT convert nan.safetensors -o e4m3.safetensors --dtype F8_E4M3 && $SFT cat e4m3.safetensors w
$SFT convert nan.safetensors -o e4m3.safetensors --dtype F8_E4M3 --saturate --force && $SFT cat e4m3.safetensors w
$SFT convert nan.safetensors -o bool.safetensors --dtype BOOL --match w && $SFT cat bool.safetensors w
ls -A *.safetensors .*sft* 2>/dev/null
