# Standard input is one model, not two.
for words in 'ls - -' 'info - -' 'hash - every-dtype.safetensors -' 'diff - -' 'merge - - -o out.safetensors' 'check - - -' 'dup - -' 'convert - - --dtype F32 -o out/' 'select - - --drop x -o out/'; do
    cat every-dtype.safetensors | $SFT $words 2>&1; echo $?
done
# Names of tensors and keys are no paths.
cat every-dtype.safetensors | $SFT cat - -; echo $?
cat every-dtype.safetensors | $SFT diff - every-dtype.safetensors; echo $?
ls out* 2>/dev/null
true
