# --cache replaces caches only. What is none stays as it is, and nothing is hashed.
umask 022
cp quantised.safetensors model.safetensors
sum=$(sha256sum <model.safetensors)
try() {
    $SFT "$@" --cache "$name" </dev/null
    echo "exit $?"
}
for name in model.safetensors text link fifo folder open empty; do
    rm -rf text link fifo folder open empty
    echo mine >text; ln -s text link; mkfifo fifo; mkdir folder; : >empty
    printf '{"safetensors_hash_cache":2}\n' >open; chmod 666 open
    echo "$name:"
    try hash quantised.safetensors
    [ "$(sha256sum <model.safetensors)" = "$sum" ] && cat text && [ -h link ] && [ -p fifo ] || echo CHANGED
done
for c in "info --hash sha256" dup "find --compute 0123456789"; do
    name=model.safetensors
    try $c quantised.safetensors
    [ "$(sha256sum <model.safetensors)" = "$sum" ] || echo CHANGED
done
stat -c %a empty
