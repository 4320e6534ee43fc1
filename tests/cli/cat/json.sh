$SFT cat --as json every-dtype.safetensors 'tensor.15.i32[0:2, :3]'
$SFT cat --as=json every-dtype.safetensors 'tensor.15.i32[0, 0]' | pyjson 'j["results"][0]["shape"], j["results"][0]["values"]'
$SFT cat --as=json every-dtype.safetensors 'tensor.15.i32[0:0]' | pyjson 'j["results"][0]["shape"], j["results"][0]["values"]'
$SFT cat --as=json every-dtype.safetensors nosuch | pyjson 'j["results"][0]["error"]'
