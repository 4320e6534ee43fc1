mkdir -p empty/sub
$SFT info empty
echo $?
$SFT info -r empty
