# Lists as others write them; a line that cannot be read does not stop the others.
for name in plain 'a b' tab new back cr '(x) = 00'; do
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
# One or some of the lines are bad.
for bad in 'rubbish' '93a8  x' 'SHA512 (plain.safetensors) = 00' '\93a8b41fe3e4c74b1f4be6765e900045c8e2c22a51a0293c8088b33fffc0940f  bad\q' \
    "$(printf '%064d' 0)" "$(printf '%064d ' 0)" "$(printf '%064d  ' 0)" '\'; do
    { head -2 plain; printf '%s\n' "$bad"; tail -n +3 plain; } >some
    check some
done
{ cat plain; printf 'a\0b\n'; for i in {1..20}; do echo "bad $i"; echo; done; } >many; check many
$SFT hash --json -c many 2>/dev/null | pyjson '[(r["path"][:6], r["ok"], r.get("error", {}).get("message", "")[:48]) for r in j["results"]][-2:]'
$SFT hash --jsonl -c many 2>/dev/null | tail -1 | pyjson 'j["ok"], j["error"]["code"]'
# A difference and a file that is not there count as ever, bad lines or not.
{ echo bad; echo "$(printf '%064d' 0)  plain.safetensors"; } >differs; check differs
{ echo bad; cat plain; echo "$(printf '%064d' 0)  nowhere"; } >missing; check missing
# No line can be read, or there is no list.
printf 'bad\nworse\n' >none; check none
$SFT hash --json -c none 2>/dev/null | pyjson '[(r["path"], r["ok"], r["error"]["message"][:40]) for r in j["results"]]'
$SFT hash --json -c nowhere 2>/dev/null | pyjson '[(r["path"], r["ok"], r["error"]["code"]) for r in j["results"]]'
: >empty; check empty
