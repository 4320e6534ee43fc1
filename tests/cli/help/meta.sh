$SFT meta -h
