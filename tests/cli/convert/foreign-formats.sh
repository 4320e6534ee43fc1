# The other formats: ONNX with a file beside it, Flax; the numbers are those of the file.
mkdir onnx; foreign onnx onnx/model.onnx; foreign msgpack flax.msgpack
$SFT convert onnx/model.onnx -o onnx.safetensors
$SFT cat onnx.safetensors weight
$SFT convert flax.msgpack -o flax.safetensors
$SFT ls --tsv flax.safetensors | cut -f 2-4
rm onnx/weights.bin
$SFT convert onnx/model.onnx -o x.safetensors
echo $?
ls x.safetensors 2>/dev/null
true
