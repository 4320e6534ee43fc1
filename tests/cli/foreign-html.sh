printf '<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body></body></html>\n' >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
