$SFT ls --tsv sharded | tail -n 1 | cut -f 1,2,3,4
t=$($SFT ls --tsv sharded | tail -n 1 | cut -f 2)
$SFT cat sharded "${t}[0]" | head -c 60
