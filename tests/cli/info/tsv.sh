# The default columns; what would break a line is escaped.
st tab.safetensors '{"__metadata__":{"modelspec.title":"a\tb\nc\\d\u001b[31m"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT info --tsv lora sharded ./tab*
