# meta FILE lists; get of several keys; JSON inside values; the header; tables.
{
m=every-dtype.safetensors l=lora/neon-city.safetensors
$SFT meta $m; $SFT meta lsit $m; echo $?
$SFT meta get $l ss_output_name nosuch ss_network_dim; echo $?
$SFT meta get $l ss_output_nam; echo $?
$SFT meta get --json $l ss_output_name ss_network_dim
$SFT meta get --pretty $l ss_tag_frequency | head -5
$SFT meta list --pretty --json $l | grep -o '"ss_tag_frequency":{"[^"]*'
$SFT meta list $m quantised.safetensors
$SFT meta list --tsv $m quantised.safetensors
$SFT meta header $m | cut -c1-100
$SFT meta header --pretty $m | head -8
$SFT meta header --json $m | head -c 120; echo
$SFT meta header sharded | grep -c '^{'
# The text of a file as a value; keys by a glob.
cp $l c.safetensors; printf 'two\nlines' > notes.txt
$SFT meta set c.safetensors notes=@notes.txt author Ada; $SFT meta get c.safetensors notes
echo piped | $SFT meta set c.safetensors notes=@-; $SFT meta get c.safetensors notes
$SFT meta set c.safetensors notes=@nosuch.txt; echo $?
printf '\377' > bad.txt; $SFT meta set c.safetensors notes=@bad.txt; echo $?
$SFT meta rm c.safetensors 'ss_*' 'zz*' author; echo $?; $SFT meta c.safetensors | grep -c ^ss_
$SFT meta rm --pretty c.safetensors x; echo $?; $SFT meta get --tsv c.safetensors x; echo $?
python3 - <<'P'
import json, struct
deep = "[" * 100 + "1, {\"a\\\"]\" : [ ] , \"b\":{},\"c\":\"\\u001b[31m\"}" + "]" * 100
head = json.dumps({"__metadata__": {"deep": deep, "text": "{not json", "esc": "\x1b[31m"}, "t": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}).encode()
open("deep.safetensors", "wb").write(struct.pack("<Q", len(head)) + head)
P
$SFT meta list --pretty deep.safetensors | sed -n '98,112p'
} | plain
