# --cache replaces caches only. What is none stays as it is, and nothing is hashed.
cp quantised.safetensors model.safetensors
sum=$(sha256sum <model.safetensors)
try() {
    $SFT "$@" --cache "$name" </dev/null
    echo "exit $?"
}
for name in model.safetensors text folder empty; do
    rm -rf text folder empty
    echo mine >text; mkdir folder; : >empty
    echo "$name:"
    try hash quantised.safetensors
    [ "$(sha256sum <model.safetensors)" = "$sum" ] && cat text || echo CHANGED
done
for c in "info --hash sha256" dup "find --compute 0123456789"; do
    name=model.safetensors
    try $c quantised.safetensors
    [ "$(sha256sum <model.safetensors)" = "$sum" ] || echo CHANGED
done
