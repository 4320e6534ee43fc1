# The report is a member of the result.
foreign training run.ckpt
$SFT convert run.ckpt -o out.safetensors --json >report.json
pyjson 'sorted(j["results"][0]["import"])' <report.json
pyjson '[(b["path"], b["tensors"], b["bytes"], b["chosen"]) for b in j["results"][0]["import"]["branches"]]' <report.json
pyjson '[(l["reason"], l["path"], l["bytes"]) for l in j["results"][0]["import"]["left_out"]]' <report.json
$SFT convert run.ckpt --list --json | pyjson 'j["results"][0]["format"], j["results"][0]["tensors"]'
$SFT info --json run.ckpt | pyjson 'j["results"][0]["import"]["title"]'
$SFT check --json run.ckpt | pyjson 'j["results"][0]["ok"], j["results"][0]["import"]["format"]'
