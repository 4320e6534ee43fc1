# Every byte that a file's name may have comes back from the reference to its preview.
mkdir m out
python3 - <<'PY'
import os, shutil
for i in range(1, 256):
    if i == ord("/"):
        continue
    name = b"m/a" + bytes([i]) + b"b"
    shutil.copy("quantised.safetensors", name + b".safetensors")
    shutil.copy("lora/neon-city.preview.png", name + b".preview.png")
PY
catalog m -o out/c.html
page out/c.html 'json.dumps([one["href"] for one in rows["preview"]])' >hrefs
python3 - <<'PY'
import json, os, urllib.parse
with open("hrefs") as text:
    hrefs = json.load(text)
paths = {urllib.parse.unquote_to_bytes(href) for href in hrefs}
assert all(os.path.exists(b"out/" + path) for path in paths)
assert all(c.isalnum() or c in "-._~/%" for href in hrefs for c in href)
print(len(paths), hrefs[0])
PY
# Hostile names: nothing of them is markup, and all of it is kept.
mkdir h; cd h
x='"__metadata__":{"modelspec.title":"</script><script>alert(1)</script><!--\u2028\u202e","modelspec.description":"~1 & ~~ ]]> \u0000 \ud83d\ude00","modelspec.trigger_phrase":"<style>guangying</style>","modelspec.tags":"~0,a&amp;b,<b>","~0":"x","</script>":"y","modelspec.thumbnail":"data:image/svg+xml;base64,PHN2Zz4="}'
mkdir '<'; st '</script><img src=x onerror=alert(1)>.safetensors' "{$x,${one#?}" 8
st $'new\nline\t"quote" \'single\' `back` $(x) \\ ~ # ? % + ;.safetensors' "$one" 8
st $'\xff\xfe\x80.safetensors' "$one" 8; st '~0.safetensors' "$one" 8; st '-o.safetensors' "$one" 8
mkdir '<b>'; st '<b>/&lt;.safetensors' "$one" 8
cd ..
catalog h -o c.html --title $'</title><script>alert(1)</script>\xff\x01'
page c.html 'json.dumps(rows["file"])'
page c.html 'json.dumps([rows["name"], rows["dict"]["folder"], rows["words"], rows["dict"]["tag"]])'
page c.html 'next(json.dumps(one) for one in more if "img" in one["path"])'
page c.html 'json.dumps([one["path"] for one in more])'
page c.html 're.search("<title>.*</title>", text)[0]'
page c.html 're.search("<noscript>.*</noscript>", text, re.S)[0]'
