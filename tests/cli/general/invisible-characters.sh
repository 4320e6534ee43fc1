# What has no glyph comes out escaped in every format, but in the lines of hash, which sha256sum reads
# (hash-names); --csv-safe guards cells for a spreadsheet.
h=$'a\u200bb\u00adc\u2060d\ufeffe\U000e0041f\ufe0fg\u034fh'
st h.safetensors '{"__metadata__":{"modelspec.title":"'"$h"'","modelspec.author":"=cmd|x!A1","ss_tag_frequency":"{\"1_x\":{\"'"$h"'\":3}}","modelspec.license":"\"=1+1\"","modelspec.description":"'"$h"'"},"'"$h"'":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"=HYPERLINK(1)":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}' 2
cp h.safetensors "$h.safetensors"
for o in info "info -v" "info --tsv" "info --jsonl" "info --full --json" ls "ls --tree" "ls --json" "ls --tsv" \
    "meta list" "meta list --json" hash "hash --json" "check" "check --json" "find ." "dup ."; do
    case $o in find*) $SFT find "$h" . ;; dup*) $SFT dup . ;; *) $SFT $o "$h.safetensors" ;; esac >out 2>&1
    printf '%s: %s\n' "$o" "$(LC_ALL=C grep -c $'\xe2\x80\x8b\|\xc2\xad\|\xe2\x81\xa0\|\xef\xbb\xbf\|\xf3\xa0\x81\x81\|\xef\xb8\x8f\|\xcd\x8f' out)"
done
$SFT info --json "$h.safetensors" | pyjson 'j["results"][0]["model"]["name"]["value"] == "'"$h"'"'
$SFT ls "$h.safetensors" | sed -n '/U8/p' | head -1
$SFT hash "$h.safetensors" >sums
$SFT hash -c sums
$SFT ls --tsv --csv-safe h.safetensors
$SFT info --tsv --csv-safe -f path,author,license h.safetensors
$SFT info --tsv -f path,author,license h.safetensors
cp h.safetensors ./+1.safetensors
$SFT ls --tsv --csv-safe +1.safetensors | cut -f 1
for c in ls info; do
    $SFT $c --csv-safe h.safetensors
    echo $?
done
