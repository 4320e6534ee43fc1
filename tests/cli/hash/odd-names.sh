# Names with characters to be escaped, there and back; programs read them as those of sha256sum.
mkdir odd
for name in 'a b' '(x) = 00' $'new\nline' $'re\rturn' 'back\slash' $'esc\e[31m' $'bad\xff' \
    $'dir\u202e' $'ta\tb' $'join\u200d\u200c\ufe0f'; do
    st "odd/$name.safetensors" "$one" 8
done
$SFT hash odd >sums
cat -v sums
sha256sum -c --quiet sums && echo all read
sha256sum odd/* | sort | cmp - <(sort sums) && echo the same lines
$SFT hash --algo crc32,autov2 odd >>sums
$SFT hash -c sums
# A terminal is shown escapes, which are read as well.
python3 - <<'P' >seen
import os, pty, subprocess, sys
master, slave = pty.openpty()
child = subprocess.Popen([os.environ["SFT"], "hash", "odd"], stdout=slave)
os.close(slave)
got = b""
while True:
    try:
        piece = os.read(master, 65536)
    except OSError:
        break
    got += piece
    if not piece:
        break
child.wait()
sys.stdout.buffer.write(got.replace(b"\r\n", b"\n"))
P
cat seen
$SFT hash -c seen
# Lists of them as others write them.
mkdir lists; cd lists
for name in plain 'a b' $'tab\there' $'new\nline' 'back\slash' $'cr\rhere' '(x) = 00'; do
    st "$name.safetensors" "$one" 8
done
set -- [!emq]*.safetensors
check() {
    $SFT hash -c "$1" >out; s=$?
    echo "$1: $s, $(grep -c OK out) OK"
}
$SFT hash "$@" >ours; check ours
$SFT hash --algo sha256,crc32 "$@" >named; check named
sha256sum "$@" >plain; check plain
sha256sum --tag "$@" >tagged; check tagged
sha256sum -b "$@" >binary; check binary
sed 's/$/\r/' plain >crlf; check crlf
{ printf '\357\273\277'; sed 's/$/\r/' tagged; } >bom; check bom
sed 's/^\(\\\?\)\([0-9a-f]*\)/\1\U\2/' plain >upper; check upper
head -c -1 plain >cut; check cut
