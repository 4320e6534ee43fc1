$SFT hash -h
