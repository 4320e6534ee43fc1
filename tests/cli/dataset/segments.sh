# The list of shards in segments, and back.
dataset kv kv
dataset batch batch
$SFT dataset compact --manifest lists batch; echo $?
$SFT dataset compact --manifest segments --dry-run batch; echo $?
$SFT dataset compact --manifest segments batch; echo $?
ls -A batch | sed 's/-[0-9a-f-]*\.safetensors/.../; s/segment-[0-9a-f]*$/segment-.../'
$SFT dataset info batch | sed 's/libsafetensors .*/.../'
$SFT dataset verify --deep batch
$SFT dataset compact --manifest segments batch; echo $?
$SFT dataset compact --json --manifest whole batch | tr , '\n' | grep segments
$SFT dataset verify --deep batch
$SFT dataset compact --target 1MB --manifest segments kv; echo $?
$SFT dataset ls kv | cut -d' ' -f1
$SFT dataset gc --grace 0 kv
echo x >>"$(echo kv/.dataset_segment-*)"
$SFT dataset verify kv | sed 's/segment-[0-9a-f]*/segment-.../'
$SFT dataset gc --delete --grace 0 kv 2>&1 | sed 's/segment-[0-9a-f]*/segment-.../'
rm kv/.dataset_segment-*
$SFT dataset info kv 2>&1 | sed 's/segment-[0-9a-f]*/segment-.../'
$SFT info kv 2>&1 | sed 's/segment-[0-9a-f]*/segment-.../'
