# --match and --algo add up, --exclude takes away; an option of one value is given once.
{
$SFT ls --tsv --match '*.weight' --match '*norm*' quantised.safetensors | cut -f2
echo; $SFT ls --tsv --match '*.weight' --exclude '*proj*' quantised.safetensors | cut -f2
echo; $SFT ls --exclude '*' quantised.safetensors; echo $?
$SFT hash --algo crc32 --algo sha256 quantised.safetensors | cut -c1-6
$SFT convert every-dtype.safetensors --dtype F16 --match '*.f32' --match '*.f64' --exclude '*32' -o a.safetensors
$SFT convert every-dtype.safetensors --dtype F16 --match '*.f32' --exclude '*32' -o b.safetensors; echo $?
$SFT convert every-dtype.safetensors --dtype F16 --dtype BF16 -o b.safetensors; echo $?
$SFT convert every-dtype.safetensors --dtype F16 --dtype F16 --match '*.f32' -o b.safetensors
$SFT rename every-dtype.safetensors --add-prefix x. --match '*.f*' --exclude '*.f8*' --dry-run | tail -3
} | plain
