# Models with the same weights.
mkdir m; for n in 1 2 3; do cp quantised.safetensors m/q$n.safetensors; done
cp every-dtype.safetensors m/e.safetensors; $SFT meta set m/q2.safetensors title Other >/dev/null
catalog m -o c.html; page c.html 'rows["copies"], rows["flags"]'
catalog m --hash content -o c.html --force; page c.html 'rows["file"], rows["copies"], rows["flags"]'
catalog m --hash sha256 -o c.html --force; page c.html 'rows["copies"], rows["flags"], rows["hash"]'
sha=$(sha256sum <m/q1.safetensors | cut -c1-64)
for n in q1 q3 e; do printf '{"sha256":"%s","size":%d}' $sha $(stat -c %s m/q1.safetensors) >m/$n.metadata.json; done
catalog m -o c.html --force; page c.html 'rows["copies"], rows["flags"]'
