# What is there is kept: --force merges, files of others are refused.
side=lora/neon-city.json
cp $side mine.json
$SFT info --save-as a1111 lora; echo $?
rm $side
echo '{"description":"mine","rating":[5,"é"],"deep":{"a":1},"notes":"my note"}' >$side
cp $side before.json
$SFT info --save-as a1111 lora; echo $?
cmp $side before.json && echo untouched
$SFT info --save-as a1111 --force lora; echo $?
pyjson 'sorted(j.items())' <$side
$SFT info --save-as a1111 --force lora; echo $?
echo "== a BOM, blanks, what is no JSON"
printf '\xef\xbb\xbf\n {"description":"mine"}' >$side
$SFT info --save-as a1111 --force lora >/dev/null; pyjson 'j["description"], len(j)' <$side
echo '{"activation text": ' >$side
$SFT info --save-as a1111 lora; echo $?
$SFT info --save-as a1111 --force lora >/dev/null; pyjson 'j["activation text"]' <$side
echo "== files of others"
for other in '{"_class_name":"X","a":1}' '{"id":1,"modelId":2,"trainedWords":["x"]}'; do
    echo "$other" >$side
    $SFT info --save-as a1111 --force lora; echo $?
    cat $side
done
echo '{"id":1,"name":"n","modelVersions":[{"id":2}]}' >lora/neon-city.civitai.info
$SFT info --save-as civitai --force lora; echo $?
echo '{"file_name":"x","sha256":"'$(printf 'ab%.0s' {1..32})'","model_name":"Other"}' >lora/neon-city.metadata.json
$SFT info --save-as lora-manager --force --hash sha256 lora; echo $?
grep -c Other lora/neon-city.metadata.json
echo "== a skeleton"
rm -f lora/neon-city.metadata.json $side
echo '{"id":"","modelId":"","name":"","trainedWords":[],"skeleton_file":true,"extensions":{"x":1}}' >lora/neon-city.civitai.info
$SFT info --save-as civitai --force lora >/dev/null; echo $?
pyjson '"id" in j, "skeleton_file" in j, j["extensions"], j["model"]["name"]' <lora/neon-city.civitai.info
