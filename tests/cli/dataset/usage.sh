# Wrong words.
dataset kv kv
$SFT dataset; echo $?
$SFT dataset verify; echo $?
$SFT dataset check kv; echo $?
$SFT dataset info /nowhere every-dtype.safetensors .; echo $?
$SFT dataset gc --grace never kv; echo $?
$SFT dataset gc --grace 1w kv; echo $?
$SFT dataset gc --grace 99999999999999 kv; echo $?
$SFT dataset compact --target small kv; echo $?
$SFT dataset verify --depp kv; echo $?
