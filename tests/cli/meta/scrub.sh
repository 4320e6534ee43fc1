st s.safetensors '{"__metadata__":{"format":"pt","ss_session_id":"123","ss_dataset_dirs":"{\"10_me\":{}}","note":"trained in C:\\\\Users\\\\me\\\\loras","comment":"see https://example.org/home/x and 3/4","args":"--out=/home/me/x","p":"~/models/a","modelspec.title":"T","unc":"\\\\\\\\server\\\\share","workflow":"{}","prompt":"{}","img":"data:image/png;base64,/home/abcd","ot_config":"{}","pair":"a:/x"},"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' 4
cp s.safetensors t.safetensors
$SFT meta scrub s.safetensors --dry-run; cmp s.safetensors t.safetensors && echo untouched
$SFT meta scrub s.safetensors | sed 's/^sha256.*/sha256 X/'; $SFT meta list s.safetensors
[ "sha256 $(sha256sum <s.safetensors | cut -d' ' -f1)" = "$($SFT meta scrub s.safetensors | tail -1)" ] && echo right digest
$SFT meta scrub t.safetensors --keep 'ss_*' --keep note --json | pyjson 'j["results"][0]["removed"], len(j["results"][0]["sha256"])'
$SFT meta list t.safetensors | head -4
# What scrub made of the names of folders is private no more; t keeps them.
$SFT info --json s.safetensors t.safetensors | pyjson '[r["privacy"] for r in j["results"]]'
# Numbers are no names only where folders are, and only if nothing stands behind them.
st n.safetensors '{"__metadata__":{"comment":"{\"1\":\"me\"}","ot_config":"{\"1\":0}","ss_datasets":"{\"1\":{\"image_dir\":\"me\"}}","ss_dataset_dirs":"{\"1\":{}}{\"10_me\":{}}","ss_reg_dataset_dirs":"{\"1\":{}}"},"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT info --json n.safetensors | pyjson '[(p["key"], p["what"]) for p in j["results"][0]["privacy"]]'
$SFT meta scrub n.safetensors | sed 's/^sha256.*/sha256 X/'; $SFT meta list n.safetensors
