pairs=$(for i in {1..30}; do printf '"k%d":"v%d",' $i $i; done)
st f.safetensors "{\"__metadata__\":{${pairs%,}}}"
$SFT info f.safetensors
$SFT info -v f.safetensors | tail -n 2
