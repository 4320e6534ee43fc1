$SFT hash --algo sha256,autov3 *.safetensors >sums
$SFT hash --algo autov3 lora >>sums
printf x >>quantised.safetensors
$SFT hash -c sums
echo $?
rm quantised.safetensors
$SFT hash -c sums >/dev/null
echo $?
$SFT hash --json -c sums 2>/dev/null | pyjson '[(r["path"], r["ok"], [v["agrees"] for v in r.get("verified", [])]) for r in j["results"]]'
