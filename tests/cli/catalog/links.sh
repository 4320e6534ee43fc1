# Where links lead is not told, and what is there is not quoted.
mkdir m private; cp every-dtype.safetensors private/name.safetensors; echo 'password: secret' >private/key
ln -s ../private/name.safetensors m/a.safetensors; ln -s ../private/key m/b.safetensors
echo 'password: mine' >m/c.safetensors
catalog m -o c.html; echo $?
page c.html 'rows["error"], [one["path"] for one in more], "private" in text, "secret" in text, "mine" in text'
# Links to files below the folders only.
mkdir -p p/sub out
for n in 'a?b' link away; do cp quantised.safetensors "p/$n.safetensors"; done
png p/sub/real.png 5 5; png out/secret.png 6 6; png 'p/a?b.png' 2 2
ln -s sub/real.png p/link.preview.png; ln -s ../out/secret.png p/away.preview.png
catalog p -o c.html --force
page c.html '"\n".join("%s %s" % two for two in zip(rows["file"], rows["preview"])), "secret" in json.dumps([rows, more])'
# What is given twice, by a link, is listed once.
mkdir -p t/loras; cp every-dtype.safetensors t/loras/a.safetensors; cp every-dtype.safetensors t/b.safetensors
ln -s t/loras same; ln -s loras t/alias
try() { catalog "$@" -o c.html --force >/dev/null; page c.html 'rows["count"], sorted(one["path"] for one in more)'; }
try t same t/../t/loras
try same t/b.safetensors t/loras t/b.safetensors
# A pipe is not waited for.
mkfifo t/pipe.safetensors
catalog t -o c.html --force; echo $?
page c.html 'rows["error"], rows["bytes"], [one.get("error", {}).get("code") for one in more]'
