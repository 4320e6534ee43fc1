$SFT help -a
