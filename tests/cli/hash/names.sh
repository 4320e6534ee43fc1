# Names with characters to be escaped, there and back; programs read them as those of sha256sum.
mkdir odd
for name in 'a b' '(x) = 00' $'dir\u202e' $'join\u200d\u200c\ufe0f' ä 模型; do
    st "odd/$name.safetensors" "$one" 8
done
$SFT hash odd >sums
cat -v sums
sha256sum -c --quiet sums && echo all read
sha256sum odd/* | sort | cmp - <(sort sums) && echo the same lines
$SFT hash --algo crc32,autov2 odd >>sums
$SFT hash -c sums
# A terminal is shown escapes, which are read as well.
python3 "$(dirname "$BASH_ENV")/terminal.py" 200 $SFT hash odd >seen
cat seen
$SFT hash -c seen
