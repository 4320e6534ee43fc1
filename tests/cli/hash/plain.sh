# One algorithm reads as sha256sum's lines do, and sha256sum reads ours.
$SFT hash quantised.safetensors lora
$SFT hash -r . >sums
sha256sum --quiet -c sums && wc -l <sums
