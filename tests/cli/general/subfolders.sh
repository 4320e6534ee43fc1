# Shards may stand in folders of their own; in a new folder for the model they do, too.
mkdir -p sharded/sub/deep; cd sharded
mv model-00001-of-00003.safetensors sub; mv model-00002-of-00003.safetensors sub/deep
sed -i 's#"model-00001#"sub/model-00001#; s#"model-00002#"sub/deep/model-00002#' model.safetensors.index.json
cd ..
for c in "rename sharded --add-prefix x. -o new" "repair sharded -o new"; do
    $SFT $c >out; echo $?; sed 's/updated.*/updated/' out; (cd new && find . | sort); $SFT check new && echo valid; rm -r new
done
mkdir empty; $SFT repair sharded -o empty >out; $SFT check empty && echo valid
# All of it goes again.
printf x | dd of=sharded/model-00003-of-00003.safetensors bs=1 seek=9 conv=notrunc 2>/dev/null
$SFT repair sharded -o new; echo $?; ls -d new 2>/dev/null
true
