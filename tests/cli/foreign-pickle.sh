python3 -c 'import pickle
open("f.safetensors", "wb").write(pickle.dumps({"a": list(range(100))}))'
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
