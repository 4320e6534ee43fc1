# As a sidecar that is written, a link is refused: what it leads to may be another model's.
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
# Links to models are followed, those to folders are not.
mkdir -p t/sub t/layer2; st t/sub/y.safetensors "$one" 8; st t/layer2/m.safetensors "$one" 8
ln -s ../sub t/layer2/linked-folder
ln -s ../sub/y.safetensors t/layer2/linked-file.safetensors
ln -s . t/loop
$SFT info -r --jsonl t | python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["path"])'
