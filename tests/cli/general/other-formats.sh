# Files in other formats are counted, and nothing else is said of them.
mkdir -p m/sub one; cp every-dtype.safetensors m; cp quantised.safetensors m/sub; cp every-dtype.safetensors one
touch m/a.ckpt m/B.CKPT m/sub/c.gguf m/notes.txt one/pytorch_model.bin
$SFT info -r m
$SFT info m | tail -1
$SFT check -r m; echo $?
$SFT check -r m 2>/dev/null
$SFT info one | tail -1
$SFT info -r --json m | grep -c passed
$SFT info -r -f name m
$SFT ls -r m | grep -c passed
$SFT info every-dtype.safetensors quantised.safetensors | tail -1
# Models that cannot be read: on a terminal a row that fits, and a number at the end.
echo "version https://git-lfs.github.com/spec/v1" >m/a-pointer-of-git-lfs-with-a-name-that-is-rather-long.safetensors
echo x >m/sub/short.safetensors
fits() { python3 -c 'import sys; print(*("too long: " + l for l in open(sys.argv[2], encoding="utf-8") if len(l) - 1 > int(sys.argv[1])), sep="", end="")' "$1" "$2"; }
for columns in 60 80 200; do
    python3 "$(dirname "$BASH_ENV")/terminal.py" $columns $SFT info -r m >page; echo $?
    sed -i 's/\x1b\[[0-9;]*m//g' page
    fits $columns page; cat page
done
python3 "$(dirname "$BASH_ENV")/terminal.py" 80 $SFT info -r --sort name m | grep -c '^x '
$SFT info -r m; echo $?
# A fact that no model has is said.
$SFT info -f a1111 every-dtype.safetensors; echo $?
