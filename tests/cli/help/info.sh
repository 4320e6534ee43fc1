$SFT help info
