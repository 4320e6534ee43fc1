$SFT ls --help
