# What cannot be read in a folder is counted in one line, whatever looks through it; the status says
# what was found. A file that is named is an error.
mkdir -p m/sub; cp every-dtype.safetensors quantised.safetensors m
echo x >m/sub/short.safetensors; head -c 100 every-dtype.safetensors >m/cut.safetensors
echo "version https://git-lfs.github.com/spec/v1" >m/sub/lfs.gguf
run() { echo "== $*"; "$SFT" "$@" >out 2>err; echo "status $?, $(wc -l <out) lines"; cat err; }
run find every -r m
run find -l --where kind=adapter -r m
run find 0123456789 -r m
run info -r m
run info -r -f path m
run info -r --json m
run ls -r m
run dup -r m
run meta list -r m
run catalog m -o page.html
run catalog m -o page.html --force --json; grep -o '"models":[0-9]*,"unreadable":[0-9]*' out
$SFT catalog m -o page.html --force 2>err | sed 's/, [0-9.]* .B//'
echo "$($SFT info -r --json m 2>err | grep -c '"ok":false')"
for c in find\ every info ls dup meta\ list; do run $c -v -r m | grep -v "^status"; done
# Named, with others or alone; nothing could be read at all.
run find every m/cut.safetensors m/every-dtype.safetensors
run info m/cut.safetensors m/every-dtype.safetensors
run ls m/cut.safetensors
run find every -r m/sub
run info -r m/sub
run ls -r m/sub
run dup -r m/sub
run catalog m/sub -o page.html --force
run catalog m/cut.safetensors m/every-dtype.safetensors -o page.html --force
run catalog m --where kind=vae -o page.html --force
# Judging and computing leave nothing out.
run check -r m
run hash -r --algo content m
run convert -r m --dtype bf16 -o half/
