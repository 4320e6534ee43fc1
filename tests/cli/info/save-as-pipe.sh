# A pipe where a sidecar would be is refused, not waited for.
st m.safetensors "$one" 8
for suffix in civitai.info metadata.json json; do mkfifo m.$suffix; done
for as in civitai lora-manager a1111; do
    for force in "" --force; do
        timeout 20 $SFT info --save-as $as $force m.safetensors 2>&1; echo "$as $force: $?"
    done
done
