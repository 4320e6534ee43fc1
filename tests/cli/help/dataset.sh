$SFT help dataset
$SFT dataset --help | head -3
