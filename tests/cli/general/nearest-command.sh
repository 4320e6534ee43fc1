for word in chekc inof lss catt zzzzzzz; do $SFT $word; echo $?; done
