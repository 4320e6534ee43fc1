$SFT cat --help
