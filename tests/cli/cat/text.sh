$SFT cat every-dtype.safetensors tensor.15.i32
$SFT cat every-dtype.safetensors 'tensor.15.i32[1, ::3]'
$SFT cat every-dtype.safetensors 'tensor.15.i32[-1, -1]'
$SFT cat every-dtype.safetensors 'tensor.15.i32[::-1, ..., :2]'
