# --where, several folders, a page inside of a folder, standard output, --json.
mkdir -p a/models b/models; cp lora/* a/models; cp quantised.safetensors b/models
catalog . --where kind=adapter -o c.html; page c.html 'rows["name"]'
mkdir cut; head -c 100 lora/neon-city.safetensors >cut/x.safetensors
catalog lora cut --where kind=adapter -o cut.html; echo $?; page cut.html 'rows["file"]'
catalog a/models b/models -o c.html --force; page c.html 'rows["title"], rows["dict"]["folder"], rows["folder"], rows["roots"]'
catalog a b b/models -o c.html --force; page c.html 'rows["title"], rows["dict"]["folder"], rows["folder"]'
catalog a -o a/c.html; catalog a -o a/c.html --force; page a/c.html 'rows["file"], rows["preview"][0]["href"]'
$SFT catalog a -o - 2>log >d.html; sed -E 's/[0-9.]+ KB/SIZE/' log; page d.html 'rows["preview"][0]["href"]'
$SFT catalog a -o e.html --json | pyjson 'j["results"][0]["models"], j["results"][0]["unreadable"], sorted(j["results"][0])'
catalog a -o e.html --json; echo $?
catalog lora/neon-city.safetensors a/models/neon-city.safetensors -o f.html
page f.html 'rows["file"], rows["dict"]["folder"], rows["folder"]'
catalog -r a ./a "$PWD/a" b/models -o g.html; page g.html 'rows["title"], rows["dict"]["folder"]'
catalog https://127.0.0.1:9/x.safetensors a --offline -o h.html; echo $?; page h.html 'rows["file"], rows["error"]'
