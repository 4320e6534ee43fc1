# A link is refused: what it leads to may be another model's.
echo precious >precious; rm -f lora/neon-city.json lora/neon-city.civitai.info
ln -s ../precious lora/neon-city.json
ln -s neon-city.safetensors lora/neon-city.metadata.json
ln -s /nowhere/x lora/neon-city.civitai.info
for as in civitai lora-manager a1111; do $SFT info --save-as $as --force lora 2>err; echo $?; grep -o "found a symbolic link" err; done
cat precious; ls -A lora | grep -v preview
st x.safetensors "$one" 8
ln -s x.safetensors link.safetensors
echo '{"description":"Third","notes":"n"}' >link.json
$SFT info --save-as modelspec --force link.safetensors 2>err; echo $?; grep -o "found a symbolic link" err
