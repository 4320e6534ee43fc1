# Fields by the names that people know them by, and base models for which an architecture is meant.
st x.safetensors "$one" 8
for x in base trigger Triggers words weight strength tag title version creator dtype sha256 folder; do
    $SFT info -f "$x" x.safetensors
done
$SFT info --where base=SDXL x.safetensors
for x in sdxl SD15 flux wan; do
    $SFT info --where "base_model=$x" x.safetensors
done
