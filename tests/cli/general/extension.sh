# A name without its extension, as file managers show it.
mkdir d; $SFT info quantised; echo $?
$SFT quantised; echo $?
$SFT meta set quantised title x; echo $?
$SFT ls d quanti; echo $?
