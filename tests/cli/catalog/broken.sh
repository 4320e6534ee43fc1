# What cannot be read has a row with the reason; the page is written, and the status is 1.
mkdir m m/sub; cp every-dtype.safetensors m/good.safetensors
printf 'not a model' >m/bad.safetensors; printf '\x40\0\0\0\0\0\0\0{' >m/sub/cut.safetensors
cp sharded/model-0000[13]* sharded/*.json m/sub
catalog m -o c.html; echo $?
page c.html '"\n".join(map(str, zip(rows["name"], rows["flags"], rows["bytes"], rows["error"].values())))'
page c.html 'rows["error"]'
page c.html '[one.get("error", {}).get("code") for one in more]'
page c.html 're.search("<tr><td><bdi>bad.*", text)[0]'
$SFT catalog m/bad.safetensors -o d.html --json | sed -E 's/"bytes":[0-9]+,"emb/"bytes":N,"emb/'; echo ${PIPESTATUS[0]}

# A header length that is wrong is no file cut short.
mkdir w; printf '\x40\0\0\0\0\0\0\0{}\0' >w/long.safetensors; printf '\x40\0\0\0\0\0\0\0{}' >w/cut.safetensors
catalog w -o w.html
page w.html 'rows["name"], rows["fault"]'
