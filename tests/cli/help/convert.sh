$SFT help convert
