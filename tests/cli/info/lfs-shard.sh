# A shard that was never fetched: the message says which and why.
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4200000000\n' 0 >sharded/model-00002-of-00003.safetensors
$SFT info sharded
$SFT check sharded
