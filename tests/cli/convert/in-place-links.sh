# Another index reaches the old shard by a link, of its own or of a folder: it stays.
hide() { sed -E 's/-[0-9a-f]{8}\.safe/-XXXXXXXX.safe/g'; }
for how in symbolic hard folder none; do
    cp -r sharded $how
    (cd $how
    shard=$(ls *.safetensors | head -1)
    case $how in
    symbolic) ln -s $shard second.safetensors; name=second.safetensors ;;
    hard) ln $shard second.safetensors; name=second.safetensors ;;
    folder) ln -s . sub; name=sub/$shard ;;
    none) cp $shard second.safetensors; name=second.safetensors ;;
    esac
    sed "s#\"$shard\"#\"$name\"#" model.safetensors.index.json >other.safetensors.index.json
    # the other shards are the other index's alone
    $SFT convert model.safetensors.index.json --in-place --dtype F32 >/dev/null; echo $how $?
    $SFT ls other.safetensors.index.json >/dev/null && echo whole
    ls | hide)
done
