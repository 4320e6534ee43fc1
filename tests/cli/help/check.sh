$SFT check -h nosuch
