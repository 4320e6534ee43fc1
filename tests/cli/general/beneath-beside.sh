# What lies beside a model is read from its folder only: a link that leads out is told, not read;
# one of a Hub cache to its blobs is read.
st secret.safetensors "$one" 8
printf 'hidden words' >secret.txt
printf '{"sd version":"SDXL","description":"hidden words"}' >secret.json
printf -- '---\nlicense: hidden-words\n---\n' >secret.md
printf '\211PNG\r\n\032\n\0\0\0\015IHDR\0\0\0\001\0\0\0\001' >secret.png
mkdir m
st m/lora.safetensors "$one" 8
ln -s ../secret.txt m/lora.description.txt
ln -s "$PWD/secret.txt" m/lora.txt
ln -s ../secret.json m/lora.json
ln -s ../secret.json m/lora.civitai.info
ln -s ../secret.json m/lora.cm-info.json
ln -s ../secret.md m/README.md
ln -s ../secret.json m/config.json
ln -s ../secret.png m/lora.preview.png
ln -s "$PWD/secret.png" m/lora.png
mkfifo m/lora.metadata.json
echo "# links out"
for command in "info" "info --json" "info --full" "info -r" "check" "find words"; do
    timeout 20 $SFT $command m/lora.safetensors >out 2>err
    echo "$command: $? $(cat out err | grep -c hidden) found"
done
$SFT info --json m/lora.safetensors | pyjson '[(s["path"], s.get("error")) for s in j["results"][0]["sidecars"]]' \
    | tr '(' '\n' | grep lead | sed "s|, *\$||" | sort
$SFT info --json m/lora.safetensors | pyjson 'j["results"][0].get("previews")'
$SFT info --export-previews out-pictures m/lora.safetensors 2>/dev/null; ls out-pictures 2>/dev/null
echo "# links that stay"
rm m/*.txt m/*.json m/*.info m/*.md m/*.png
mkdir m/kept
printf 'kept words' >m/kept/text
ln -s kept/text m/lora.description.txt
$SFT info m/lora.safetensors | grep -c 'kept words'
echo "# a Hub cache"
repo=hub/models--some--thing
mkdir -p $repo/blobs $repo/snapshots/0123/unet hub/blobs/ab
cp secret.safetensors $repo/blobs/0123456789012345678901234567890123456789012345678901234567890123
cp secret.safetensors hub/blobs/ab/abcd
ln -s ../../blobs/ab/abcd $repo/blobs/shared
printf -- '---\nlicense: cached-words\n---\n' >$repo/blobs/readme
ln -s ../../blobs/readme $repo/snapshots/0123/README.md
ln -s ../../blobs/0123456789012345678901234567890123456789012345678901234567890123 \
    $repo/snapshots/0123/a.safetensors
ln -s ../../../blobs/shared $repo/snapshots/0123/unet/b.safetensors
printf '{"weight_map":{"a":"a.safetensors"}}' >$repo/blobs/index
ln -s ../../blobs/index $repo/snapshots/0123/model.safetensors.index.json
printf '{"weight_map":{"a":"unet/b.safetensors"}}' >$repo/snapshots/0123/b.safetensors.index.json
for index in model b; do
    $SFT ls $repo/snapshots/0123/$index.safetensors.index.json | grep -c F32
    (cd $repo/snapshots/0123 && $SFT check $index.safetensors.index.json)
done
$SFT info $repo/snapshots/0123/a.safetensors | grep -c cached-words
echo "# not those of another repository, nor what only looks like one"
mkdir -p hub/models--other--thing/snapshots/1 hub/models--other--thing/blobs
cd hub/models--other--thing/snapshots/1
for target in ../../../models--some--thing/blobs/shared ../../../../secret.safetensors \
    ../../blobs/../../models--some--thing/blobs/shared ../../blobs/out ../../blobs; do
    ln -sf ../../../secret.safetensors ../../blobs/out
    rm -f a.safetensors
    ln -s $target a.safetensors
    printf '{"weight_map":{"a":"a.safetensors"}}' >model.safetensors.index.json
    $SFT check model.safetensors.index.json
    echo $?
done
