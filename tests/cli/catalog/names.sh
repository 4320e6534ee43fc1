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
