$SFT info nosuch.safetensors every-dtype.safetensors | head -n 1 | tr -s " "
exit ${PIPESTATUS[0]}
