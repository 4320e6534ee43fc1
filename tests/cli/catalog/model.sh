# A page about one model: the columns of its tensors, and its facts with all metadata.
size() { sed -E 's/[0-9.]+ [KM]B/SIZE/'; }
page() {
    python3 -c 'import json, re, sys
block = re.search(r"id=\"model\">(.*?)</script>", open(sys.argv[1]).read(), re.S)[1]
assert not re.search("[<>&]", block)
j = json.loads(block); print(eval(sys.argv[2]))' "$@"
}
st f.safetensors '{"__metadata__":{"</script>":"<b>&"},"a.0.w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a.1.w":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"a.1.x":{"dtype":"U8","shape":[],"data_offsets":[16,17]},"e":{"dtype":"U8","shape":[0,3],"data_offsets":[17,17]}}' 17
$SFT catalog --model f.safetensors -o f.html | size
page f.html '{k: j[k] for k in j if k not in ("info", "generator", "id")}'
page f.html 'j["info"]["metadata"], j["info"]["path"], j["info"]["file"]["tensors"], "previews" in j["info"]'
$SFT catalog --model f.safetensors --title 'A <b> & more' -o titled.html | size
page titled.html 'j["title"]'
grep -c '<title>A &lt;b&gt; &amp; more</title>' titled.html
# Statistics.
printf '\000\000\200\077\000\000\000\300\000\000\300\177' >values
st g.safetensors '{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}}'
cat values >>g.safetensors
$SFT catalog --model g.safetensors --deep -o g.html | size
page g.html 'j["stats"]'
# The same bytes as long as nothing changes.
cp g.html before.html
$SFT catalog --model g.safetensors --deep -o g.html --force | size
cmp before.html g.html && echo same
# Shards, by their index and by their folder; from standard output.
$SFT catalog --model sharded -o sharded.html | size
page sharded.html 'j["files"], j["shard"]'
$SFT catalog --model sharded -o - 2>/dev/null | page /dev/stdin 'j["count"]'
# A model in another format.
foreign npz n.npz
$SFT catalog --model n.npz -o n.html | size
page n.html 'j["count"], j["info"]["import"]["format"]'
# The picture in a header is in the page, a block of its own.
png small.png 7 7; cp quantised.safetensors p.safetensors; $SFT meta set p.safetensors --thumbnail small.png >/dev/null
$SFT catalog --model p.safetensors -o p.html | size
page p.html 'j["info"]["pictures"]'
grep -c '<script type="application/json" id="embed-0">"data:image/png;base64,[A-Za-z0-9+/=]*"</script>' p.html
# Of a key that several shards have the first value counts.
$SFT meta set sharded/model-00002-of-00003.safetensors k two only second >/dev/null
$SFT meta set sharded/model-00001-of-00003.safetensors k one >/dev/null
$SFT catalog --model sharded -o keys.html | size
page keys.html 'j["info"]["metadata"]["k"], j["info"]["metadata"]["only"]'; grep -o '"k":"[a-z]*"' keys.html
