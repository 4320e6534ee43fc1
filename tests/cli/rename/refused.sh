m=every-dtype.safetensors; cp $m keep
$SFT rename $m; echo $?
$SFT rename $m --map nosuch=x; echo $?
$SFT rename $m --map nosuch; echo $?
$SFT rename $m --regex 's/a/b'; echo $?
$SFT rename $m --regex 's/(/b/'; echo $?
$SFT rename $m --regex 's/.*/same/'; echo $?
$SFT rename $m --map tensor.05.i8=tensor.04.u8; echo $?
$SFT rename $m --map tensor.05.i8=__metadata__; echo $?
$SFT rename sharded/model.safetensors.index.json --regex 's/.*/same/'; echo $?
cmp $m keep; $SFT check sharded; ls -A . sharded | grep sft-
true
