# Where links lead is not told, and what is there is not quoted.
mkdir m private; cp every-dtype.safetensors private/name.safetensors; echo 'password: secret' >private/key
ln -s ../private/name.safetensors m/a.safetensors; ln -s ../private/key m/b.safetensors
echo 'password: mine' >m/c.safetensors
catalog m -o c.html; echo $?
page c.html 'rows["error"], [one["path"] for one in more], "private" in text, "secret" in text, "mine" in text'
