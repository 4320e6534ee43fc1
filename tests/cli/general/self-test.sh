# What this system does with files: nothing fails, whatever it lacks; nothing stays.
mkdir here; $SFT self-test here >report; echo $?
head -2 report; grep -v "^[a-z0-9]* *[0-9a-z]*: \|^$" report | grep -c "  ok$\|  not supported here$"; grep FAILED report
ls -A here; mkdir here/safetensors-self-test; $SFT self-test here; echo $?
$SFT self-test nosuch; echo $?
