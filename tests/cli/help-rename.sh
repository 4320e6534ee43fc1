$SFT rename -h
