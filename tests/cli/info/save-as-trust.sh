# Guesses are not written: names of files, labels that tensors do not show, texts' links.
t='{"lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_down.weight":{"dtype":"F16","shape":[4,2048],"data_offsets":[0,16384]},"lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_up.weight":{"dtype":"F16","shape":[640,4],"data_offsets":[16384,21504]}}'
mkdir d; st d/ponyStyle_v12-vpred.safetensors "$t" 21504
$SFT info -f architecture,base_model,name d
for as in civitai lora-manager a1111 modelspec; do $SFT info --save-as $as --dry-run --jsonl d | pyjson 'j["saved"]["content"]'; done
$SFT info --save-as civitai --min-trust 5 --dry-run --jsonl d | pyjson 'j["saved"]["content"]["model"]'
$SFT info --save-as civitai --min-trust 100 d; echo $?
ls d
echo "== inferred words"
h='{"__metadata__":{"ss_tag_frequency":"{\"10_mikumo\":{\"mikumo\":30,\"1girl\":28}}","ss_dataset_dirs":"{\"10_mikumo\":{\"n_repeats\":10,\"img_count\":30}}","ss_output_name":"mikumo"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
st d/m.safetensors "$h" 1
$SFT info --save-as a1111 --dry-run d/m.safetensors
$SFT info --save-as a1111 --min-trust 80 --dry-run d/m.safetensors
echo "== hostile texts"
printf '{"activation text":"a<lora:x:1>b \\u001b[31m(c)","description":"<script>alert(1)</script> & \\"x\\"\\nline","notes":"x"}' >d/m.json
$SFT info --save-as civitai d/m.safetensors
pyjson 'j["model"]["description"], j["trainedWords"]' <d/m.civitai.info
$SFT info --save-as lora-manager --dry-run d/m.safetensors | cat -v | grep -E 'trained|Desc'
