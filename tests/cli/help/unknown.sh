$SFT help chekc
echo $?
$SFT help zzzzzz
echo $?
$SFT help a b
