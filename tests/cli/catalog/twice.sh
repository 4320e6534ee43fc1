# What is given twice, by another name or within a folder that is given too, is listed once.
mkdir -p m/loras m/.hidden; cp every-dtype.safetensors m/loras/a.safetensors; cp every-dtype.safetensors m/b.safetensors
cp every-dtype.safetensors m/.hidden/c.safetensors
try() { catalog "$@" -o c.html --force >/dev/null; page c.html 'rows["count"], sorted(one["path"] for one in more)'; }
try m m/ ./m
try m/loras m
try m m/../m/loras
try m/loras/ m/b.safetensors m/loras m/b.safetensors
try m m/.hidden
