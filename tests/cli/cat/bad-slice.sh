for s in '[' '[0' '[0]]' '[9]' '[0,0,0]' '[::0]' '[a]' '[0][0]' '[..., ...]'; do $SFT cat every-dtype.safetensors "tensor.15.i32$s"; echo $?; done
