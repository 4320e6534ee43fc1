$SFT dup -h
