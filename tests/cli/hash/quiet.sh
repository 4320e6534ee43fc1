# A list from standard input; only what differs, or only the exit status.
$SFT hash every-dtype.safetensors quantised.safetensors > sums
$SFT hash -c - < sums; echo $?
$SFT hash -c sums --quiet; echo $?
sed 's/^..../0000/' sums | head -1 >> sums
$SFT hash -c sums --quiet; echo $?
$SFT hash -c sums --status; echo $?
$SFT hash --quiet sums; echo $?
echo nonsense | $SFT hash -c - --json; echo $?
(cat sums; echo nonsense) | $SFT hash -c - --json | cut -c1-120; echo $?
