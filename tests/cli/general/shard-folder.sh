# A folder under a shard's or model's name is told.
mkdir -p f/folder
st f/own.safetensors "$one" 8
i=f/folder.safetensors.index.json
printf '{"weight_map":{"a":"own.safetensors","b":"folder"}}' >$i
for command in ls check "check --json" info hash "cat -m" "meta list --each-shard" \
    "meta set --each-shard --follow" "meta recover" put rm-tensor "repair -o o" dup; do
    rest=; case $command in meta\ set*) rest="k v";; put|rm-tensor) rest=b;; cat*) command=cat; rest=b;; esac
    $SFT $command $i $rest </dev/null >out 2>&1
    status=$?
    [ $status = 1 ] || [ $status = 2 ] || echo "$command: $status"
done
$SFT ls $i
rm $i; mkdir f/folder.safetensors
for command in "info -r" "check -r" "ls" "hash" "dup -r" "find word -r"; do
    $SFT $command f >out 2>err
    echo "$command: $?"
    sort err
done
