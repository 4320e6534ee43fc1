m=lora/neon-city.safetensors; e=every-dtype.safetensors
$SFT meta --to-json $m | pyjson 'len(j), j["modelspec.title"]'
$SFT meta --to-json $m | $SFT meta --from-json - $e >/dev/null; [ "$($SFT meta --to-json $m | pyjson 'sorted(j.items())')" = "$($SFT meta list --to-json $e | pyjson 'sorted(j.items())')" ] && echo equal
echo '{"a":1.50,"b":null,"c":{"x":[1,2]},"d":"\u00e9\n","modelspec.title":null}' >j
$SFT meta set $e --from-json j extra "1"; $SFT meta get $e a; $SFT meta get $e c; $SFT meta get $e d; $SFT meta get $e modelspec.title; $SFT meta get $e extra
$SFT meta list $e --json | pyjson 'sorted(j["results"][0]), j["results"][0]["metadata"]["d"]'
$SFT meta list $e sharded nosuch --jsonl | cut -c1-60
$SFT meta set $e a 2 --json | pyjson '{k: v for k, v in j["results"][0].items() if k not in ("spare", "bytes", "header_bytes", "header_bytes_before")}'
$SFT meta rm $e a d --jsonl | pyjson 'j["removed"], j["method"], j["command"]'
$SFT meta get $e c --json | pyjson 'j["results"][0]["metadata"]'
echo '[1]' | $SFT meta set $e --from-json -; echo $?
echo '{"a"' | $SFT meta set $e --from-json -; echo $?
$SFT meta set $e --from-json nosuch; echo $?
