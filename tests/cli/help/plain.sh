$SFT help
$SFT --help | cmp - <($SFT help) && $SFT -h | cmp - <($SFT help) && echo same
