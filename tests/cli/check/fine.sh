$SFT check -r .
