# Standard input has no time to be kept, standard output none to be set: refused, nothing written.
m=every-dtype.safetensors
for words in "convert - --dtype F16 --match *.f32" "select - --keep *.f32" "merge -" "split - --max-size 1MB"; do
    set -f; $SFT $words --keep-mtime -o out.safetensors <$m; echo $?; set +f
    ls | grep out
done
$SFT convert $m --dtype F16 --match '*.f32' --keep-mtime -o - | wc -c
$SFT meta set $m a b --keep-mtime -o - | wc -c
$SFT meta set - a b --keep-mtime -o - <$m | wc -c
# What standard input is changed to goes to standard output.
$SFT meta set - a b -o out.safetensors <$m; echo $?
$SFT meta rm - a <$m; echo $?
$SFT meta set - a b -o - <$m 2>/dev/null | $SFT meta get - a
# Commands that write to paths only do not offer standard output.
for c in put rename split; do $SFT help $c | grep -c -e 'standard output,' -e --to-terminal; done
$SFT rename $m --map tensor.17.f32=x -o -; echo $?
