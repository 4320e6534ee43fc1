$SFT --version | sed -n '1p; s/:.*//p'
