# Floats only, unless --match says more; nothing is said when all is well.
$SFT convert every-dtype.safetensors -o out.safetensors --dtype bf16
echo $?
$SFT ls out.safetensors
$SFT check out.safetensors && echo valid
$SFT cat every-dtype.safetensors 'tensor.17.f32[0, :4]'
$SFT cat out.safetensors 'tensor.17.f32[0, :4]'
# Integers to integers, and by name whatever they are.
$SFT convert every-dtype.safetensors -o ints.safetensors -d I64 --saturate
$SFT ls --tsv --match '*.[0-9]*.[iu]*' ints.safetensors | cut -f 2,3
$SFT convert every-dtype.safetensors -o some.safetensors --dtype F64 --match 'tensor.0[0-4].*'
$SFT ls --tsv --match 'tensor.0*' some.safetensors | cut -f 2,3
# The same bytes with one thread and with three; metadata kept.
$SFT convert lora/neon-city.safetensors -o one.safetensors --dtype F32 --threads 1
$SFT convert lora/neon-city.safetensors -o three.safetensors --dtype F32 --threads 3 --keep-mtime
cmp one.safetensors three.safetensors && echo same
[ "$(stat -c %Y three.safetensors)" = "$(stat -c %Y lora/neon-city.safetensors)" ] && echo "same time"
metadata='import sys, json, struct; f = open(sys.argv[1], "rb"); n = struct.unpack("<Q", f.read(8))[0]; print(sorted(json.loads(f.read(n))["__metadata__"].items()))'
$SFT meta rm lora/neon-city.safetensors 'sshs_*_hash' modelspec.hash_sha256 -o bare.safetensors >/dev/null 2>&1
python3 -c "$metadata" one.safetensors | cmp - <(python3 -c "$metadata" bare.safetensors) && echo "same metadata"
$SFT convert one.safetensors -o one.safetensors --dtype F16 --force && $SFT check one.safetensors
$SFT convert one.safetensors -o less.safetensors --dtype F8_E4M3 --dry-run --lossy
ls -A | grep -c 'less\|sft-'
true
