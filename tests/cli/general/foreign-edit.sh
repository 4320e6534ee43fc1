# What edits refuses another format, and names the command that converts it.
foreign state_dict model.ckpt; python3 -c 'open("x.npy", "wb").write(b"\x93NUMPY\x01\x00\x36\x00" + b"{\x27descr\x27: \x27|u1\x27, \x27fortran_order\x27: False, \x27shape\x27: (), }".ljust(53) + b"\n\x07")'; cp model.ckpt before
try() { "$@"; echo $?; }
try $SFT meta set model.ckpt a b
try $SFT meta list model.ckpt
try $SFT rename model.ckpt --strip-prefix encoder.
try $SFT rm-tensor model.ckpt encoder.bias
try $SFT put model.ckpt encoder.bias
try $SFT add model.ckpt x=x.npy
try $SFT repair model.ckpt -o x.safetensors
try $SFT convert model.ckpt --in-place
cmp model.ckpt before && ls x.safetensors 2>/dev/null
true
