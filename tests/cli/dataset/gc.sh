# gc lists, --delete removes what is ours, old and named by no manifest; nothing else.
dataset kv kv
orphan=part-00009-0000-00000009-1111-4222-8333-444444444444.safetensors
job=_job-01234567-89ab-4def-8123-456789abcdef
cp kv/part-00000* kv/$orphan
mkdir kv/$job; cp kv/part-00001* kv/$job/
cp every-dtype.safetensors kv/mine.safetensors
cp every-dtype.safetensors kv/part-00008-0000-00000008-1111-4222-8333-444444444444.safetensors
touch -d '2 days ago' kv/part* kv/mine* kv/$job kv/$job/*
ls kv >before
$SFT dataset gc --grace 3d kv
$SFT dataset gc kv
ls kv | diff before - && echo as it was
$SFT dataset gc --delete kv; echo $?
ls kv | diff before -
$SFT dataset verify --deep kv
# Where the manifest is lost no shard is garbage.
rm kv/dataset_manifest.json
touch -d '2 days ago' kv/*
$SFT dataset gc --delete --grace 0 kv; echo $?; ls kv | wc -l
