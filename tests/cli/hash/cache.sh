# What is remembered is not computed again.
$SFT hash --cache cache --algo all -r . >first
head -1 cache
$SFT hash --cache cache --algo all -r . | cmp - first && echo same
$SFT hash --json --cache cache -r . | pyjson '[r["remembered"] for r in j["results"]]'
touch quantised.safetensors
$SFT hash --json --cache cache -r . | pyjson '[r["remembered"] for r in j["results"]]'
echo damaged >>cache
$SFT hash --cache cache quantised.safetensors 2>&1 | sed 's/byte [0-9]*/byte N/'
wc -l <cache
$SFT hash --cache /nowhere/cache quantised.safetensors
echo $?
