# What would take over a terminal comes out escaped in every format, and in -v.
st e.safetensors '{"__metadata__":{"modelspec.title":"a\u001b[2J\u202eb\r\nc","modelspec.description":"<b>x</b>\u0007\u009b31m y","modelspec.trigger_phrase":"w\u001b]0;t\u0007","ss_network_args":"{\"k\u2028\":\"\u009b\"}","modelspec.author":"\u0000nul","modelspec.license":"'"$(printf 'l%.0s' {1..300})"'"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
for o in "" -v "--long e.safetensors" --tsv "-f name,trigger_words" --jsonl "-f name --json"; do
    $SFT info $o e.safetensors >out
    LC_ALL=C tr -d '\n\t -~\302-\364\200-\277' <out | od -c | head -n 3
    grep -c $'\u202e\|\u2028\|\u009b' out
done
$SFT info e.safetensors
