for options in '--stats --tree' '--stats --fold' '--fold --reverse' '--fold --json' '--depth 1 --tsv' \
    '-n x' '--depth -1' '--stats --threads many' '--dtype f17' '--dtype F32,' '--dtype floot16'; do
    $SFT ls $options every-dtype.safetensors
    echo $?
done 2>&1 | grep -v 'help ls'
