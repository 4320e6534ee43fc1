# Options of the command may stand before it, with their values.
$SFT --json ls quantised.safetensors | cmp - <($SFT ls --json quantised.safetensors) && echo same
$SFT --color never --sort=size ls quantised.safetensors | head -3
$SFT -r --json check . | cmp - <($SFT check -r --json .) && echo same
# A word that is the value of an option is no command; a file stays a file.
$SFT --match ls ls quantised.safetensors
echo $?
$SFT --json quantised.safetensors | head -1
$SFT quantised.safetensors ls 2>&1 | tail -1
# The version, behind a command too.
$SFT ls -V | cmp - <($SFT --version) && $SFT -V | cmp - <($SFT --version) && echo same
$SFT --help ls | cmp - <($SFT help ls) && echo same
