# What does not fit makes the header grow, with spare bytes for the next change.
m=every-dtype.safetensors
method() { sed -E 's/updated( in place)? \(.*\); [0-9]*/updated by METHOD; N/'; }
touch -d 2020-02-02 $m
$SFT ls --tsv $m | cut -f 1-3 >before
$SFT meta set $m k "$(head -c 300 /dev/zero | tr '\0' x)" --keep-mtime | method
[ "$(stat -c %Y $m)" = "$(date -d 2020-02-02 +%s)" ] && echo same time
i=$(stat -c %i $m); $SFT meta set $m k2 "$(head -c 4000 /dev/zero | tr '\0' y)" | sed 's/; [0-9]*/; N/'
[ "$i" = "$(stat -c %i $m)" ] && echo same file
$SFT meta set $m k2 z --safe | method
[ "$i" = "$(stat -c %i $m)" ] || echo another file
$SFT ls --tsv $m | cut -f 1-3 | cmp - before && $SFT check $m && ls -A | grep sft-
true
