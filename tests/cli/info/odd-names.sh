# Names that POSIX alone allows. A path that is not UTF-8.
name=$'caf\xe9 %.safetensors'
st "$name" "$one" 8
$SFT info --json "$name" | pyjson '[j["results"][0][k] for k in ("path", "path_bytes")]'
$SFT check --json "$name" | pyjson '[j["results"][0][k] for k in ("path", "path_bytes")]'
$SFT cat --as json "$name" a | pyjson '[j["results"][0][k] for k in ("path", "path_bytes", "values")]'
$SFT info "$name" | head -n 1
# They would take over a terminal: in what is printed,
name=$'evil\e[2J\u202e.safetensors'
st "$name" '{"__metadata__":{"k\u001b[31m":"v\u0007\u009b2J\u2028 \\ end","tab":"a\tb\nc"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT info "$name"
$SFT info -v "$name"
$SFT info "missing$name"
# in lists,
here=$(dirname "$BASH_ENV")
mkdir -p t/files
python3 - <<'END'
h = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
for name in ("line\nend", "esc\x1b[1m", "\u202etxt", "猫" * 60, "-rf", "a  b", "*", "n" * 240, "tab\t", "\udcff\udcfe"):
    with open("t/files/%s.safetensors" % name, "wb") as f:
        f.write(len(h).to_bytes(8, "little") + h + b"\0")
END
export NO_COLOR=1
for columns in 60 80 200; do
    python3 "$here/terminal.py" $columns $SFT info -r t >list; python3 "$here/info/fits.py" $columns t unnamed <list
done
python3 "$here/terminal.py" 80 $SFT info -r t
$SFT info -r t
# in columns,
st 'tab	\.safetensors' '{"__metadata__":{"modelspec.title":"a\tb\nc\\d\u001b[31m"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT info --tsv -f path,name ./tab*
# in the page of a repository,
mkdir -p $'models--ac\e[31mme--fox/snapshots/0123456789abcdef0123456789abcdef01234567'
cp quantised.safetensors $'models--ac\e[31mme--fox/snapshots/0123456789abcdef0123456789abcdef01234567/fox.safetensors'
$SFT info $'models--ac\e[31mme--fox/snapshots/0123456789abcdef0123456789abcdef01234567/fox.safetensors' | grep 'page\|repository'
# in words to be pasted,
emb='{"emb_params":{"dtype":"F32","shape":[2,768],"data_offsets":[0,6144]}}'
for name in 'a>b' 'a:b' $'a\nb' $'a\e[31mb'; do
    st "$name.safetensors" "$emb" 6144
    $SFT info -f a1111,comfy "./$name.safetensors"
done
# in names of files that are written.
png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
h='{"__metadata__":{"modelspec.thumbnail":"data:image/png;base64,'$png'","workflow":"{\"nodes\":[]}"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
st $'-e\e[2J:*|..safetensors' "$h" 1
st ...safetensors "$h" 1
mkdir names
$SFT info --export-preview names ./-e* ./...safetensors >/dev/null; echo $?
ls -A names
