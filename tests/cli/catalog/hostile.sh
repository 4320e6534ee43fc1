# Names and metadata of strangers: nothing of them is markup, and all of it is kept.
mkdir m; cd m
x='"__metadata__":{"modelspec.title":"</script><script>alert(1)</script><!--\u2028\u202e","modelspec.description":"~1 & ~~ ]]> \u0000 \ud83d\ude00","modelspec.trigger_phrase":"<style>guangying</style>","modelspec.tags":"~0,a&amp;b,<b>","~0":"x","</script>":"y","modelspec.thumbnail":"data:image/svg+xml;base64,PHN2Zz4="}'
st 'script.safetensors' "{$x,${one#?}" 8
st '&quot; '"'single'"' `back` $(x) ~ # % + ;.safetensors' "$one" 8
st '~0.safetensors' "$one" 8; st '-o.safetensors' "$one" 8
mkdir '&lt;b&gt;'; st '&lt;b&gt;/&lt;.safetensors' "$one" 8
cd ..
catalog m -o c.html --title $'</title><script>alert(1)</script>\x01'
page c.html 'json.dumps(rows["file"])'
page c.html 'json.dumps([rows["name"], rows["dict"]["folder"], rows["words"], rows["dict"]["tag"]])'
page c.html 'next(json.dumps(one) for one in more if "script" in one["path"])'
page c.html 'json.dumps([one["path"] for one in more])'
page c.html 're.search("<title>.*</title>", text)[0]'
page c.html 're.search("<noscript>.*</noscript>", text, re.S)[0]'
