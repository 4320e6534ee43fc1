# Links to files below the folders only, from the page's folder on.
mkdir -p m out 'odd #1%/ä'
for n in plain wide long 'sp ace#%&'; do cp quantised.safetensors "m/$n.safetensors"; done
png m/plain.preview.png 4 3
png m/wide.png 65535 65535; png 'm/sp ace#%&.png' 2 2
printf '{"preview_url":"\\\\\\\\server\\\\share\\\\x.png","file_path":"C:\\\\x.safetensors"}' >m/long.metadata.json
catalog m -o c.html
page c.html '"\n".join("%s %s" % two for two in zip(rows["file"], rows["preview"]))'
page c.html '[word in json.dumps([rows, more]) for word in ("server", "share", "C:")]'
catalog "$PWD/m" -o 'odd #1%/ä/c.html'
page 'odd #1%/ä/c.html' 'rows["preview"][1], more[1]["path"]'
cd m && catalog . -o ../out/c.html; page ../out/c.html 'rows["preview"][1], rows["roots"], more[1]["path"]'
mkdir sub; catalog plain.safetensors -o sub/c.html; page sub/c.html 'rows["preview"], rows["dict"]["folder"]'
