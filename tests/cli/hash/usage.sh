for options in '' '--algo sha255 x' '--algo' '-c sums x' '--algo sha256,crc32 -c sums' '-c nope' \
               '--threads two x' '--threads= x'; do
    $SFT hash $options
    echo $?
done
