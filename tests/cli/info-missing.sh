$SFT info nosuch.safetensors every-dtype.safetensors | head -n 1
exit ${PIPESTATUS[0]}
