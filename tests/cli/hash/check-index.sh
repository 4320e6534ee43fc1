# A list of all files of a model: the line of its index is of that file, which has no shards' bytes.
index=sharded/model.safetensors.index.json
sha256sum sharded/* >sums
$SFT hash -c sums; echo $?
$SFT hash --algo content,crc32 sharded/model.safetensors.index.json | grep content >mixed
sha256sum --tag $index >>mixed
printf 'crc32 (%s) = 00000000\n' $index >>mixed
$SFT hash -c mixed; echo $?
$SFT hash --json -c mixed 2>/dev/null | pyjson '[(r["path"], sorted(r["computed"]), [(v["algo"], v["agrees"]) for v in r["verified"]]) for r in j["results"]]'
rm sharded/*-00002-*
sha256sum $index >one
$SFT hash -c one; echo $?
echo >>$index
$SFT hash -c one; echo $?
rm $index
$SFT hash -c one; echo $?
