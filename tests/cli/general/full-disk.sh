for what in info ls check\ --explain cat\ --as\ raw; do
    case $what in cat*) t=tensor.15.i32 ;; *) t= ;; esac
    $SFT $what every-dtype.safetensors $t >/dev/full
    echo $?
done
$SFT ls --json every-dtype.safetensors >/dev/full
echo $?
$SFT help >/dev/full
