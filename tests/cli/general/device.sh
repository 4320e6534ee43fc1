timeout 10 $SFT check /dev/zero /dev/null; echo $?
timeout 10 $SFT ls /dev/full
