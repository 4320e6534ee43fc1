# A folder: a row of each model, details, a link to a preview, the same bytes when nothing changed.
mkdir m; mv lora sharded *.safetensors m; touch -d '2026-05-01T12:00:00Z' $(find m -type f)
catalog m -o catalogue.html
page catalogue.html '"\n".join("%s: %s" % (k, json.dumps(v)) for k, v in rows.items() if k != "generator")'
page catalogue.html 'json.dumps(more[1], indent=1)'
page catalogue.html 're.search("<noscript>.*</noscript>", text, re.S)[0]'
catalog m -o again.html
cmp catalogue.html again.html && echo the same bytes
catalog m -o again.html; echo $?
catalog m -o again.html --force --title 'Our <models> & "more"'
page again.html 'rows["title"], re.search("<title>.*</title>", text)[0]'
