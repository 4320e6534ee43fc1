# -o - writes one stream to standard output, and nothing else; the report goes to stderr.
m=every-dtype.safetensors; i=sharded/model.safetensors.index.json
try() {
    $SFT "$@" -o - 2>err >out.safetensors; echo "$1: $?"; cat err
    $SFT check out.safetensors
}
try select $m --drop '*f8*'
$SFT select $m --drop '*f8*' -o want.safetensors >want.txt; cmp want.safetensors out.safetensors
try convert $m --dtype BF16
$SFT convert $m --dtype BF16 -o want2.safetensors >want.txt; cmp want2.safetensors out.safetensors
try merge $i
$SFT diff $i out.safetensors
try convert $i --dtype F16
try select $m
cmp $m out.safetensors && echo all of it
(cat $m; printf junk) >tail.safetensors
try repair tail.safetensors
try rm-tensor $m tensor.05.i8
try meta set $m a b a c ss_x y
$SFT meta get out.safetensors a ss_x; $SFT diff --no-metadata $m out.safetensors
cp out.safetensors set.safetensors
try meta rm set.safetensors 'ss_*' a none
$SFT meta out.safetensors
$SFT meta set set.safetensors 'a*' star modelspec.author /home/me/x
try meta rm set.safetensors 'a*'; $SFT meta get out.safetensors a
try meta scrub set.safetensors
$SFT select $m --keep 'tensor.05*' -o - --json 2>&1 >/dev/null | pyjson '[(r["output"], r["tensors"]) for r in j["results"]]'
echo "# what the shell has written stays; a dry run writes nothing; so does what fails"
{ echo first; $SFT select $m -o - 2>err; echo last; } >f; head -1 f; tail -c 5 f; tail -c +7 f | head -c "$(stat -c %s $m)" | cmp - $m
$SFT select $m --drop '*i*' -o - --dry-run 2>&1 >f; wc -c <f
$SFT select $m --drop '*' -o - >f; echo $?; wc -c <f
echo "# models come from standard input, too"
$SFT convert - --dtype F16 -o - <$m 2>err | cat >f; $SFT ls - <f | sed -n 2p; cat err
cat want2.safetensors | $SFT select - --keep '*f*' -o - 2>err | $SFT meta set - k v -o - 2>err2 | cat >f; $SFT meta get - k <f; cat err err2
cat $m | $SFT cat - tensor.05.i8 | head -1
cat $m | $SFT merge - -o m.safetensors; $SFT diff $m m.safetensors
cat $m | $SFT diff - $m; echo $?
cat $m | $SFT repair - -o r.safetensors; echo $?
$SFT select - --in-place --drop x <$m; echo $?
$SFT meta set - k v <$m; echo $?
# A file whose order is not the order of the result.
st apart.safetensors '{"b":{"dtype":"U8","shape":[9000],"data_offsets":[0,9000]},"a":{"dtype":"U8","shape":[9000],"data_offsets":[9000,18000]}}' 18000
cat apart.safetensors | $SFT merge - -o m2.safetensors; echo $?
$SFT merge - -o m2.safetensors <apart.safetensors; echo $?
echo "# no stream"
for c in "split $m" "rename $m --add-prefix x" "put $m tensor.05.i8" "meta set $i k v" "rename $i --add-prefix x" "select $m $m"; do
    $SFT $c -o - </dev/null >f; echo "$?"; wc -c <f
done
$SFT select $m --in-place -o -; echo $?
echo "# a terminal, a closed pipe, a full disk"
python3 - <<'P'
import os, pty, subprocess
sft = os.environ["SFT"]
for extra in ([], ["--to-terminal"]):
    master, slave = pty.openpty()
    child = subprocess.Popen([sft, "select", "every-dtype.safetensors", "-o", "-", *extra],
                             stdout=slave, stderr=subprocess.PIPE)
    os.close(slave)
    try:
        got = os.read(master, 100)
    except OSError:
        got = b""
    print(len(got) > 8, child.stderr.read().decode().strip(), child.wait())
P
st big.safetensors '{"a":{"dtype":"U8","shape":[4000000],"data_offsets":[0,4000000]}}' 4000000
$SFT select big.safetensors -o - | head -c 8 | od -An -tu1
[ -e /dev/full ] && $SFT select big.safetensors -o - >/dev/full; echo $?
