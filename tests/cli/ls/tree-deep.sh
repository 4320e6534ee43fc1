dots=$(printf 'd.%.0s' {1..5000})
st f.safetensors "{\"${dots}w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}" 1
$SFT ls --tree f.safetensors | wc -l | tr -d ' '
$SFT ls --tree --json f.safetensors
