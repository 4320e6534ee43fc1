# compact drops what is shadowed and puts small shards together.
dataset kv kv
cp every-dtype.safetensors kv/mine.safetensors
$SFT dataset compact kv; echo $?
$SFT dataset verify --deep kv
$SFT dataset info kv | sed 's/libsafetensors .*/.../'
$SFT dataset compact kv
$SFT dataset compact --target 1MB --no-sync kv
$SFT dataset verify --deep kv
$SFT dataset ls kv | cut -d' ' -f1
$SFT check -r kv && ls kv | sed 's/-[0-9a-f-]*\.safetensors/.../'
dataset connector connector
$SFT dataset compact connector; echo $?
dataset batch batch
$SFT dataset compact --target 1GB batch; echo $?
