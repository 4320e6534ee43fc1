# Names, values and paths that would take over a terminal come out escaped.
name=$'evil[2J\u202e.safetensors'
st "$name" '{"__metadata__":{"k\u001b[31m":"v\u0007\u009b2J\u2028 \\ end","tab":"a\tb\nc"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT info "$name"
$SFT info -v "$name"
$SFT info "missing$name"
