printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4200000000\n' 0 >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
