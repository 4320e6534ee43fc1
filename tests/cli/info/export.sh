# Previews and workflows to files: safe names, nothing replaced without --force.
mkdir out
$SFT info --export-preview out lora >/dev/null; echo $?
ls out; cmp out/* lora/neon-city.preview.png && echo same
$SFT info --export-preview out lora >/dev/null; echo $?
$SFT info --export-preview out --force lora >/dev/null; echo $?
png=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
h='{"__metadata__":{"modelspec.thumbnail":"data:image/png;base64,'$png'","workflow":"{\"nodes\":[]}"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
st '-e [2J ;+..safetensors' "$h" 1
st ...safetensors "$h" 1
mkdir names
$SFT info --export-preview names ./-e* ./...safetensors >/dev/null; echo $?
ls -A names
$SFT info --export-workflow w.json ./...safetensors >/dev/null; echo $?
cat w.json; echo
$SFT info --export-workflow w.json ./...safetensors >/dev/null; echo $?
$SFT info --export-workflow v.json lora >/dev/null; echo $?
$SFT info --export-workflow v.json lora quantised.safetensors; echo $?
$SFT info --json ./...safetensors | grep -c "$png"
