# What has no end is not read to its end: as a list, in a list, as a value.
st m.safetensors "$one" 8
mkfifo pipe
hex=$(printf 'ab%.0s' {1..32})
printf '%s  %s\n' $hex /dev/zero $hex pipe $hex m.safetensors $hex none >list
timeout 20 $SFT hash -c list --algo sha256; echo "exit $?"
timeout 20 $SFT hash -c list --json --algo sha256 | pyjson '[(r["path"], r["ok"]) for r in j["results"]]'
(ulimit -v 1500000; timeout 20 $SFT hash -c /dev/zero; echo "exit $?"
timeout 20 $SFT meta set m.safetensors k=@/dev/zero; echo "exit $?"
timeout 20 $SFT rename --map-file /dev/zero m.safetensors; echo "exit $?")
