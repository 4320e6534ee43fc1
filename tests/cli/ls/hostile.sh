st f.safetensors '{"\u0000nul":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u001b]0;title\u0007":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"tab\there\nline":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"\u202Ertl\u2066":{"dtype":"U8","shape":[1],"data_offsets":[3,4]},"\u009b31m":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},"日本":{"dtype":"U8","shape":[1],"data_offsets":[5,6]},"back\\slash":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}}' 7
$SFT ls f.safetensors
$SFT ls --tsv f.safetensors
$SFT ls --tree f.safetensors
$SFT ls --json f.safetensors | pyjson '[t["name"] for t in j["results"][0]["tensors"]]' | python3 -c 'import ast, sys; print(ascii(ast.literal_eval(sys.stdin.read())))'
$SFT ls --json f.safetensors | LC_ALL=C grep -c $'[\x01-\x08\x0b-\x1f\x7f]'
