# --cache replaces neither links nor pipes, and trusts no file that others may write.
umask 022
echo mine >text; ln -s text link; mkfifo fifo; : >empty
printf '{"safetensors_hash_cache":2}\n' >open; chmod 666 open
for name in link fifo open empty; do
    echo "$name:"
    $SFT hash quantised.safetensors --cache $name </dev/null
    echo "exit $?"
    cat text && [ -h link ] && [ -p fifo ] || echo CHANGED
done
stat -c %a empty
